import json

import pytest
from allennlp.common.checks import ConfigurationError
from allennlp.interpret.saliency_interpreters import SimpleGradient
from allennlp.predictors import Predictor

from elmo_tasks.dataset_readers import PLACEHOLDER_TOKEN
from elmo_tasks.predictors import PairPredictor, SentencePredictor


@pytest.fixture(params=["sentence_archive", "pair_archive"], ids=["sentence", "pair"])
def archive(request):
    return request.getfixturevalue(request.param)


@pytest.fixture
def predictor(archive):
    return Predictor.from_path(archive.path, import_plugins=False)


def close(line):
    """The same, up to rounding of the probabilities."""
    return {**line, "label_probabilities": pytest.approx(line["label_probabilities"], abs=1e-6)}


def test_default_predictor_is_found_by_the_archive(archive, predictor):
    expected = SentencePredictor if "sentence" in archive.inputs[0] else PairPredictor
    assert type(predictor) is expected


def test_prediction_has_id_label_probabilities_and_words(archive, predictor):
    output = predictor.predict_json({**archive.inputs[0], "id": 17})
    words = [key for key in output if key.endswith("tokens")]
    assert list(output) == ["id", "label", "label_probabilities", *words]
    assert output["id"] == "17"
    assert output["label"] == max(output["label_probabilities"], key=output["label_probabilities"].get)
    assert set(output["label_probabilities"]) in ({"positive", "negative"}, {"0", "1"})
    assert sum(output["label_probabilities"].values()) == pytest.approx(1.0)
    assert [output[key] for key in words] == [text.split() for text in archive.inputs[0].values()]


@pytest.mark.parametrize("label", ["1", 0, None, "no label of the vocabulary"])
def test_label_is_accepted_and_changes_nothing(archive, predictor, label):
    unlabelled = predictor.predict_json(archive.inputs[0])
    assert predictor.predict_json({**archive.inputs[0], "label": label}) == unlabelled


def test_rows_with_and_without_label_go_into_one_batch(archive, predictor):
    inputs = [{**archive.inputs[0], "label": "1"}, archive.inputs[1]]
    together = predictor.predict_batch_json(inputs)
    assert [close(line) for line in map(predictor.predict_json, inputs)] == together


def test_instances_with_label_are_predicted_as_without(archive, predictor):
    reader = predictor._dataset_reader
    labelled = reader.text_to_instance(*archive.inputs[0].values(), label="1")
    assert "label" in labelled.fields
    assert predictor.predict_instance(labelled) == predictor.predict_json(archive.inputs[0])
    assert "label" in labelled.fields


def test_output_is_the_same_for_every_batch_size_and_in_order(archive, allennlp, json_lines):
    inputs = [{**row, "id": str(number)} for number, row in enumerate([*archive.inputs, *reversed(archive.inputs)])]
    path = json_lines(inputs)
    expected = allennlp("predict", archive.path, path, "--silent")
    assert [line["id"] for line in expected] == [row["id"] for row in inputs]
    for batch_size in (2, 3, 64):
        lines = allennlp("predict", archive.path, path, "--silent", "--batch-size", str(batch_size))
        assert [close(line) for line in lines] == expected


def test_limit_of_a_trial_run_does_not_hold_for_predictions(archive, allennlp):
    limit = '{"dataset_reader.max_instances": 1}'
    lines = allennlp("predict", archive.path, archive.data, "--silent", "--use-dataset-reader", "--overrides", limit)
    assert len(lines) == len(archive.inputs) > 1


@pytest.mark.parametrize("batch_size", [1, 2, 64])
def test_blank_texts_get_a_line_like_all_others(archive, allennlp, json_lines, batch_size):
    blank = [{**archive.inputs[0], next(iter(archive.inputs[0])): text} for text in ("", "  ")]
    path = json_lines([blank[0], archive.inputs[0], blank[1]])
    lines = allennlp("predict", archive.path, path, "--silent", "--batch-size", str(batch_size))
    assert len(lines) == 3
    assert close(lines[0]) == lines[2]
    words = next(key for key in lines[0] if key.endswith("tokens"))
    assert [line[words] == [PLACEHOLDER_TOKEN] for line in lines] == [True, False, True]


def test_raw_data_file_gives_one_line_per_row(archive, allennlp):
    for flags in ([], ["--batch-size", "2"]):
        lines = allennlp("predict", archive.path, archive.data, "--silent", "--use-dataset-reader", *flags)
        assert len(lines) == len(archive.inputs)
    predictor = Predictor.from_path(archive.path, import_plugins=False)
    for line, inputs in zip(lines, archive.inputs):
        expected = predictor.predict_json(inputs)
        assert close({**line, "id": None}) == expected
        assert line["id"] is not None


def test_blank_and_malformed_rows_of_a_data_file_keep_their_place(archive, allennlp, tmp_path):
    rows = archive.data.read_text().splitlines()
    damaged = tmp_path / archive.data.name
    damaged.write_text("\n".join([*rows[:2], "", "no columns", *rows[2:]]) + "\n")
    expected = allennlp("predict", archive.path, archive.data, "--silent", "--use-dataset-reader")
    lines = allennlp("predict", archive.path, damaged, "--silent", "--use-dataset-reader")
    num_headers = len(rows) - len(archive.inputs)
    inserted = [lines.pop(2 - num_headers) for _ in range(2)]
    # Ids may tell the line, which has moved.
    assert [{**line, "id": None} for line in lines] == [close({**line, "id": None}) for line in expected]
    words = next(key for key in inserted[0] if key.endswith("tokens"))
    assert inserted[0][words] == [PLACEHOLDER_TOKEN]
    assert len(inserted) == 2
    every = allennlp("predict", archive.path, damaged, "--silent", "--use-dataset-reader")
    batched = allennlp("predict", archive.path, damaged, "--silent", "--use-dataset-reader", "--batch-size", "8")
    assert [close(line) for line in batched] == every


@pytest.mark.parametrize(("choice", "num_words"), [("train", 5), ("validation", 2)])
def test_either_reader_of_the_archive_can_be_chosen(sentence_archive, allennlp, choice, num_words):
    validation_reader = {
        "type": "mr",
        "label_names": {"0": "negative", "1": "positive"},
        "token_indexers": {"words": {"type": "single_id"}},
        "max_tokens": 2,
    }
    lines = allennlp(
        "predict",
        sentence_archive.path,
        sentence_archive.data,
        "--silent",
        "--use-dataset-reader",
        "--dataset-reader-choice",
        choice,
        "--overrides",
        json.dumps({"validation_dataset_reader": validation_reader}),
    )
    assert len(lines) == len(sentence_archive.inputs)
    assert len(lines[0]["tokens"]) == num_words


def test_data_file_without_the_flag_is_an_error_that_names_it(archive, allennlp):
    with pytest.raises(ConfigurationError, match=r"line 1 of the input.*--use-dataset-reader"):
        allennlp("predict", archive.path, archive.data, "--silent")


def test_wrong_key_is_an_error_that_names_line_and_accepted_keys(archive, allennlp, json_lines):
    path = json_lines([archive.inputs[0], {"text": "a film"}])
    key = next(iter(archive.inputs[0]))
    with pytest.raises(ConfigurationError, match=rf'line 2 of the input.*"{key}": .*has no \'{key}\'.*\[\'text\'\]'):
        allennlp("predict", archive.path, path, "--silent")


@pytest.mark.parametrize("text", [None, 5, ["a", "film"]])
def test_text_that_is_no_string_is_an_error_that_names_the_line(archive, allennlp, json_lines, text):
    key = next(iter(archive.inputs[0]))
    path = json_lines([archive.inputs[0], {**archive.inputs[0], key: text}])
    with pytest.raises(ConfigurationError, match=rf"'{key}' must be a string, but is .* in line 2"):
        allennlp("predict", archive.path, path, "--silent")


@pytest.mark.parametrize("line", ['["a film"]', '"a film"', "17"])
def test_line_that_is_no_object_is_an_error(archive, allennlp, json_lines, line):
    with pytest.raises(ConfigurationError, match=r"line 1 of the input .* must be a JSON object"):
        allennlp("predict", archive.path, json_lines([line]), "--silent")


def test_wrong_key_is_an_error_without_a_file_too(predictor):
    with pytest.raises(ConfigurationError, match="the input must be a JSON object"):
        predictor.predict_json({"text": "a film"})


def test_other_keys_and_a_byte_order_mark_do_no_harm(archive, predictor):
    line = "\ufeff" + json.dumps({**archive.inputs[0], "stars": 4})
    assert predictor.predict_json(predictor.load_line(line)) == predictor.predict_json(archive.inputs[0])


def test_missing_id_is_null(archive, predictor):
    assert json.loads(predictor.dump_line(predictor.predict_json(archive.inputs[0])))["id"] is None


def test_evaluate_writes_the_lines_of_predict_with_the_true_label(archive, allennlp):
    evaluated = allennlp("evaluate", archive.path, archive.data)
    predicted = allennlp("predict", archive.path, archive.data, "--silent", "--use-dataset-reader")
    for line in evaluated:
        assert line.pop("gold_label") in line["label_probabilities"]
    assert [close(line) for line in evaluated] == predicted


@pytest.mark.filterwarnings("ignore:Using a? ?non-full backward hook")
def test_saliency_of_what_the_model_predicts(archive, predictor):
    saliency = SimpleGradient(predictor).saliency_interpret_from_json(archive.inputs[0])["instance_1"]
    assert len(saliency) == len(archive.inputs[0])
    for weights in saliency.values():
        assert sum(weights) == pytest.approx(1.0)


def test_archive_of_a_machine_with_gpu_predicts_on_one_without(archive, allennlp):
    config = json.dumps({"trainer.cuda_device": 0})
    lines = allennlp("predict", archive.path, archive.data, "--silent", "--use-dataset-reader", "-o", config)
    assert len(lines) == len(archive.inputs)


def test_missing_gpu_is_an_error_before_the_archive_is_loaded(allennlp):
    with pytest.raises(ConfigurationError, match="cuda_device"):
        allennlp("predict", "no archive", "no data", "--silent", "--cuda-device", "99")
