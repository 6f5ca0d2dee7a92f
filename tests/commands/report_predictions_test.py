import json
import shutil

import pytest
from allennlp.models.archival import archive_model

from elmo_tasks.commands.report_predictions import NoPredictionsError, predict
from elmo_tasks.commands.report_runs import read_runs


def read_run(folder):
    (run,) = read_runs([str(folder)])
    return run


@pytest.fixture(scope="module")
def predictions(trained_run):
    return predict(read_run(trained_run), None, num_errors=4)


def test_rows_come_in_the_order_of_the_data(predictions, trained_run):
    lines = (trained_run.parent / "test.txt").read_text().splitlines()
    assert len(predictions.rows) == len(lines) == 12
    for number, (row, line) in enumerate(zip(predictions.rows, lines), start=1):
        text, _, label = line.partition("_!_")
        assert row.place == f"test.txt:{number}"
        assert row.texts == [text.split(" ")]
        assert row.true == {"0": "bad", "1": "<b>good</b>"}[label]


def test_accuracy_and_labels_are_those_of_allennlps_evaluation(predictions, trained_run):
    accuracy = sum(row.true == row.predicted for row in predictions.rows) / len(predictions.rows)
    assert accuracy == json.loads((trained_run / "metrics.json").read_text())["test_accuracy"] == 0.5
    assert predictions.labels == ["<b>good</b>", "bad"]


def test_errors_are_the_wrong_rows_of_highest_confidence(predictions):
    wrong = [row.confidence for row in predictions.rows if row.true != row.predicted]
    assert len(wrong) == 6
    assert [error.confidence for error in predictions.errors] == sorted(wrong, reverse=True)[:4]
    for error in predictions.errors:
        assert error.true != error.predicted
        assert 0.5 <= error.confidence <= 1
        assert [len(numbers) for numbers in error.saliency] == [len(error.texts[0])]


def test_the_other_rows_are_not_explained(predictions):
    assert all(row.saliency == [] for row in predictions.rows)


def test_other_data_can_be_given(trained_run):
    predictions = predict(read_run(trained_run), str(trained_run.parent / "train.txt"), num_errors=0)
    assert len(predictions.rows) == 6
    assert predictions.data.endswith("train.txt")
    assert predictions.errors == []


def test_label_that_the_training_data_lacked_is_one_more_label(trained_run, tmp_path):
    folder = tmp_path / "run"
    folder.mkdir()
    shutil.copytree(trained_run / "vocabulary", folder / "vocabulary")
    shutil.copy(trained_run / "best.th", folder)
    config = json.loads((trained_run / "config.json").read_text())
    config["dataset_reader"]["label_names"]["2"] = "middling"
    (folder / "config.json").write_text(json.dumps(config))
    data = tmp_path / "test.txt"
    data.write_text("a film_!_2\n")
    archive_model(folder)
    predictions = predict(read_run(folder), str(data), 1)
    assert predictions.labels == ["<b>good</b>", "bad", "middling"]
    assert predictions.errors[0].true == "middling"


def test_rows_without_labels_are_no_test(trained_run, tmp_path):
    data = tmp_path / "unlabelled.jsonl"
    data.write_text('{"sentence": "a film of quiet wonder"}\n{"sentence": "warm and odd"}\n')
    with pytest.raises(NoPredictionsError, match=r"The rows of .*unlabelled\.jsonl have no labels\."):
        predict(read_run(trained_run), str(data), 1)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"archive": None}, "The run has no archive yet."),
        ({"config": {"model": {"type": "elmo_sentence_classifier"}}}, "names no `test_data_path`"),
        ({"config": {"model": {"type": "bilm_language_model"}}}, "no classifier of this package"),
    ],
)
def test_why_there_are_no_predictions(trained_run, changes, sentence):
    with pytest.raises(NoPredictionsError, match=sentence):
        predict(read_run(trained_run)._replace(**changes), None, 1)
