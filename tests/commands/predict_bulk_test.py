"""The command, with parts predicted in this process; `tests/reliability/bulk_test.py` has workers, and kills them."""

import importlib.util
import json
import tarfile

import pytest
import torch
from allennlp.common.checks import ConfigurationError

from elmo_tasks.commands import bulk_workers
from elmo_tasks.commands.predict_bulk import predict_bulk


@pytest.fixture
def predicted(monkeypatch):
    """The numbers of the parts that were predicted."""
    numbers = []

    def predict_parts(parts, settings, batch_size, num_workers, scheduler):
        for part in parts:
            numbers.append(part.number)
            yield part, bulk_workers.predict_part(settings, batch_size, part.places, part.payload)

    monkeypatch.setattr(bulk_workers, "predict_parts", predict_parts)
    return numbers


@pytest.fixture
def rows(tmp_path):
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(json.dumps({"sentence": f"film {n}", "id": n}) + "\n" for n in range(7)))
    return path


@pytest.fixture
def archive(trained_run):
    return trained_run / "model.tar.gz"


def outputs_of(folder):
    return "".join(path.read_text() for path in sorted(folder.glob("part-*.jsonl")))


def test_outputs_are_those_of_allennlp_predict(allennlp, archive, rows, tmp_path, predicted):
    allennlp("predict", archive, rows, "--output-file", tmp_path / "plain", "--batch-size", 2, "--silent")
    options = ("--batch-size", 2, "--part-size", 4)
    printed = allennlp("predict-bulk", archive, rows, "-s", tmp_path / "bulk", *options)
    assert outputs_of(tmp_path / "bulk") == (tmp_path / "plain").read_text()
    assert printed == f"7 rows are predicted: {tmp_path}/bulk/part-*.jsonl\n"
    again = allennlp("predict-bulk", archive, rows, "-s", tmp_path / "bulk", *options)
    assert again == f"7 rows are already predicted: {tmp_path}/bulk/part-*.jsonl\n"


def test_outputs_of_a_data_file_are_those_of_allennlp_predict(allennlp, archive, tmp_path, predicted):
    (tmp_path / "rows.txt").write_text("a film_!_1\n\nno separator\nodd_!_0\n")
    arguments = (archive, tmp_path / "rows.txt", "--use-dataset-reader", "--batch-size", 2)
    allennlp("predict", *arguments, "--output-file", tmp_path / "plain", "--silent")
    allennlp("predict-bulk", *arguments, "-s", tmp_path / "bulk", "--part-size", 2)
    assert outputs_of(tmp_path / "bulk") == (tmp_path / "plain").read_text()
    assert len(outputs_of(tmp_path / "bulk").splitlines()) == 4


def test_the_command_again_predicts_only_what_is_missing_or_changed(archive, rows, tmp_path, predicted):
    def run():
        predicted.clear()
        predict_bulk(str(archive), [str(rows)], str(tmp_path / "bulk"), part_size=2)
        return predicted

    assert run() == [0, 1, 2, 3]
    before = outputs_of(tmp_path / "bulk")
    assert run() == []
    (tmp_path / "bulk/part-000001.jsonl").unlink()
    assert run() == [1]
    assert outputs_of(tmp_path / "bulk") == before
    rows.write_text(rows.read_text().replace("film 5", "a film"))
    assert run() == [2]
    rows.write_text("".join(rows.read_text().splitlines(keepends=True)[:2]))
    assert run() == []
    assert outputs_of(tmp_path / "bulk").splitlines() == before.splitlines()[:2]


def test_a_row_that_fails_is_named_when_all_others_are_done(archive, rows, tmp_path, predicted, monkeypatch):
    predict = bulk_workers._predict

    def predict_but_one(predictor, batch):
        if any(row["id"] == 3 for row in batch):
            raise ValueError("out of luck")
        return predict(predictor, batch)

    monkeypatch.setattr(bulk_workers, "_predict", predict_but_one)
    with pytest.raises(
        ConfigurationError, match=r"(?s)but 1 of 4 parts have one that fails;.*line 4: ValueError: out of luck"
    ) as error:
        predict_bulk(str(archive), [str(rows)], str(tmp_path / "bulk"), part_size=2)
    assert f"{rows}, line 4" in str(error.value)
    assert [json.loads(line)["id"] for line in outputs_of(tmp_path / "bulk").splitlines()] == list("01456")

    monkeypatch.undo()
    monkeypatch.setattr(bulk_workers, "predict_parts", lambda parts, *_: ((p, outcome(p, archive)) for p in parts))
    predict_bulk(str(archive), [str(rows)], str(tmp_path / "bulk"), part_size=2)
    assert [json.loads(line)["id"] for line in outputs_of(tmp_path / "bulk").splitlines()] == list("0123456")


def outcome(part, archive):
    settings = bulk_workers.PredictorSettings(str(archive), digest="")
    return bulk_workers.predict_part(settings, 64, part.places, part.payload)


def test_a_folder_of_another_model_is_refused(archive, rows, tmp_path, predicted):
    predict_bulk(str(archive), [str(rows)], str(tmp_path / "bulk"))
    with tarfile.open(archive) as tar:
        tar.extractall(tmp_path / "same_model")
    with pytest.raises(ConfigurationError, match="but `archive` was '"):
        predict_bulk(str(tmp_path / "same_model"), [str(rows)], str(tmp_path / "bulk"))


def test_a_run_is_an_archive_too(trained_run, rows, tmp_path, predicted):
    predict_bulk(str(trained_run), [str(rows)], str(tmp_path / "bulk"))
    assert len(outputs_of(tmp_path / "bulk").splitlines()) == 7


def test_a_model_with_a_state_is_refused(archive, rows, tmp_path, predicted):
    elmo = "model.text_field_embedder.token_embedders.elmo"
    overrides = json.dumps({f"{elmo}.stateful": True, f"{elmo}.cache": None})
    with pytest.raises(ConfigurationError, match=r"must keep no state between batches, but `.*elmo` of .* does"):
        predict_bulk(str(archive), [str(rows)], str(tmp_path / "bulk"), overrides=overrides)
    assert not (tmp_path / "bulk").exists()


def test_a_missing_extra_is_named(archive, rows, tmp_path, monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ConfigurationError, match=r"must have Dask, but it is not installed: .* its extra `bulk`"):
        predict_bulk(str(archive), [str(rows)], str(tmp_path / "bulk"))


def test_a_missing_gpu_is_told_before_workers_start(archive, rows, tmp_path, predicted, monkeypatch):
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 0)
    with pytest.raises(ConfigurationError, match="specified a GPU but none is available"):
        predict_bulk(str(archive), [str(rows)], str(tmp_path / "bulk"), cuda_device=0)
    assert predicted == []
    assert not (tmp_path / "bulk").exists()


def test_a_file_in_place_of_the_folder_is_told_before_a_model_is_read(rows):
    with pytest.raises(ConfigurationError, match=f"{rows} must be a folder, new or not, but {rows} is a file"):
        predict_bulk("no_such_model", [str(rows)], str(rows))


@pytest.mark.parametrize("option", ["num_workers", "batch_size", "part_size"])
def test_counts_below_one_are_refused(archive, rows, tmp_path, option):
    with pytest.raises(ConfigurationError, match="must be at least 1, but is 0"):
        predict_bulk(str(archive), [str(rows)], str(tmp_path / "bulk"), **{option: 0})
