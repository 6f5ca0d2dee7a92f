"""Whole studies: of a model whose accuracies are scripted, and of the shipped config on the sample."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Dict, Iterable, List, Optional

import pytest
import torch
from allennlp.commands.train import train_model
from allennlp.common import Params
from allennlp.common.checks import ConfigurationError
from allennlp.data import DatasetReader, Instance
from allennlp.data.fields import MetadataField, TensorField
from allennlp.models import Model

from elmo_tasks.commands import study_runner
from elmo_tasks.commands.cross_validate import cross_validate
from elmo_tasks.commands.study import Study
from elmo_tasks.dataset_readers.data_path import parse_path

ROOT = Path(__file__).parents[2]


@DatasetReader.register("parts_for_test")
class PartsReader(DatasetReader):
    """One instance, that knows its part and fold, for each part."""

    def __init__(self, fold: Optional[int] = None, num_folds: int = 10) -> None:
        super().__init__()
        self.fold = fold

    def _read(self, file_path) -> Iterable[Instance]:
        _, part = parse_path(file_path)
        origin = {"part": part, "fold": self.fold or 0}
        yield Instance({"x": TensorField(torch.ones(2)), "origin": MetadataField(origin)})


@Model.register("scripted_for_test")
class ScriptedModel(Model):
    """Its accuracy on a part after so many epochs is written in the config; fold and seed are added to it."""

    def __init__(self, vocab, accuracies: Dict[str, List[float]], **kwargs) -> None:
        super().__init__(vocab, **kwargs)
        self.weight = torch.nn.Parameter(torch.ones(2))
        self.register_buffer("num_epochs", torch.tensor(0))
        self.accuracies = accuracies
        self.accuracy = 0.0

    def forward(self, x, origin):
        if self.training:
            self.num_epochs += 1
        else:
            script = self.accuracies[origin[0]["part"]]
            seed = torch.initial_seed()
            self.accuracy = script[int(self.num_epochs) - 1] + origin[0]["fold"] / 10 + seed / 100
        return {"loss": (x * self.weight).sum()}

    def get_metrics(self, reset: bool = False) -> Dict[str, float]:
        return {"accuracy": self.accuracy}


# The dev part is best after the second epoch, the test part after the first.
DISAGREEING = {"dev": [0.5, 0.6, 0.4], "test": [0.65, 0.3, 0.55]}


@pytest.fixture
def write_config(tmp_path):
    def write(accuracies=None, **changes):
        config = {
            "dataset_reader": {"type": "parts_for_test"},
            "train_data_path": "rows",
            "model": {"type": "scripted_for_test", "accuracies": accuracies or DISAGREEING},
            "data_loader": {"batch_size": 1},
            "trainer": {
                "num_epochs": 3,
                "cuda_device": -1,
                "validation_metric": "+accuracy",
                "optimizer": {"type": "sgd", "lr": 0.0},
            },
            **changes,
        }
        path = tmp_path / "config.json"
        path.write_text(json.dumps(config))
        return str(path)

    return write


@pytest.fixture
def directory(tmp_path):
    return tmp_path / "study"


def test_every_fold_is_tested_with_the_epoch_that_its_dev_part_selects(write_config, directory):
    results = cross_validate(write_config(), str(directory), num_folds=3, num_seeds=2)
    accuracy = results["metrics"]["test_accuracy"]
    # 0.3, not the 0.65 that the test part itself would select, plus a tenth of the fold and a hundredth of the seed.
    assert accuracy["values"] == [
        pytest.approx([0.30, 0.31]),
        pytest.approx([0.40, 0.41]),
        pytest.approx([0.50, 0.51]),
    ]
    assert accuracy["mean"] == pytest.approx(0.405)
    assert accuracy["standard_deviation"] == pytest.approx(0.1)
    assert accuracy["by_fold"] == pytest.approx([0.305, 0.405, 0.505])
    assert results["metrics"]["best_validation_accuracy"]["values"][0] == pytest.approx([0.6, 0.61])
    assert [run["metrics"]["best_epoch"] for run in results["runs"]] == [1] * 6
    assert json.loads((directory / "cross_validation.json").read_text()) == results


def test_each_run_has_the_folder_of_a_training_without_its_checkpoints(write_config, directory):
    cross_validate(write_config(), str(directory), num_folds=2)
    for fold in range(2):
        names = set(os.listdir(directory / f"fold_{fold}/seed_0"))
        assert {"config.json", "metrics.json", "model.tar.gz", "best.th", "out.log", "metrics_epoch_2.json"} <= names
        assert not [name for name in names if "_state_" in name]


def test_the_console_shows_tables_and_no_logs(write_config, directory, capsys):
    cross_validate(write_config(), str(directory), num_folds=2, num_seeds=2)
    captured = capsys.readouterr()
    assert "over 2 folds, each the mean of 2 seeds" in captured.out
    assert f"all figures: {directory}/cross_validation.json" in captured.out
    assert "INFO" not in captured.out + captured.err
    assert "4/4" in captured.err


@pytest.fixture
def trained(monkeypatch):
    """The folders of the runs that were trained, and whether they were recovered."""
    calls = []

    def noting(params, serialization_dir, recover, **kwargs):
        calls.append((str(Path(serialization_dir).relative_to(Path(serialization_dir).parents[1])), recover))
        return train_model(params, serialization_dir, recover=recover, **kwargs)

    monkeypatch.setattr(study_runner, "train_model", noting)
    return calls


def test_what_is_finished_is_not_trained_again(write_config, directory, trained):
    first = cross_validate(write_config(), str(directory), num_folds=2)
    assert cross_validate(write_config(), str(directory), num_folds=2) == first
    assert trained == [("fold_0/seed_0", False), ("fold_1/seed_0", False)]


def test_seeds_can_be_added(write_config, directory, trained):
    cross_validate(write_config(), str(directory), num_folds=2)
    results = cross_validate(write_config(), str(directory), num_folds=2, num_seeds=2)
    assert trained[2:] == [("fold_0/seed_1", False), ("fold_1/seed_1", False)]
    assert results["metrics"]["test_accuracy"]["by_seed"] == pytest.approx([0.35, 0.36])


class Killed(BaseException):
    """Nothing handles it, as nothing handles `kill -9`."""


def test_an_interrupted_study_ends_as_one_that_was_not(write_config, directory, tmp_path, trained, monkeypatch):
    whole = cross_validate(write_config(), str(tmp_path / "whole"), num_folds=2)
    del trained[:]

    forward = ScriptedModel.forward

    def killing(self, x, origin):
        if self.training and origin[0]["fold"] == 1 and self.num_epochs == 2:
            raise Killed
        return forward(self, x, origin)

    monkeypatch.setattr(ScriptedModel, "forward", killing)
    with pytest.raises(Killed):
        cross_validate(write_config(), str(directory), num_folds=2)
    assert not (directory / "cross_validation.json").exists()
    finished = directory / "fold_0/seed_0/metrics.json"
    written_at = finished.stat().st_mtime_ns

    monkeypatch.setattr(ScriptedModel, "forward", forward)
    results = cross_validate(write_config(), str(directory), num_folds=2)
    assert trained == [("fold_0/seed_0", False), ("fold_1/seed_0", False), ("fold_1/seed_0", True)]
    assert finished.stat().st_mtime_ns == written_at
    assert results["metrics"] == whole["metrics"]
    assert [run["metrics"].keys() for run in results["runs"]] == [run["metrics"].keys() for run in whole["runs"]]


def test_a_study_is_not_continued_with_another_config(write_config, directory, trained):
    cross_validate(write_config(), str(directory), num_folds=2)
    with pytest.raises(ConfigurationError, match=r"`trainer\.num_epochs` was 3, but is 5"):
        cross_validate(write_config(), str(directory), num_folds=2, overrides='{"trainer.num_epochs": 5}')
    with pytest.raises(ConfigurationError, match=r"`test_data_path` was 'rows#test', but is 'others#test'"):
        cross_validate(write_config(), str(directory), num_folds=2, data="others")
    assert len(trained) == 2


def test_without_folds_the_parts_of_the_config_are_trained_with_each_seed(write_config, directory):
    config = write_config(
        train_data_path="a#train",
        validation_data_path="a#dev",
        test_data_path="a#test",
    )
    results = cross_validate(config, str(directory), num_seeds=3)
    accuracy = results["metrics"]["test_accuracy"]
    assert accuracy["by_seed"] == pytest.approx([0.30, 0.31, 0.32])
    assert accuracy["standard_deviation"] == pytest.approx(0.01)
    assert (directory / "seed_2/metrics.json").is_file()


def test_two_studies_are_compared_fold_by_fold(write_config, directory, tmp_path, capsys):
    better = {"dev": [0.5, 0.6, 0.4], "test": [0.0, 0.34, 0.0]}
    cross_validate(write_config(), str(tmp_path / "base"), num_folds=2)
    capsys.readouterr()
    results = cross_validate(
        write_config(better), str(directory), num_folds=2, num_seeds=3, other_directory=str(tmp_path / "base")
    )
    # 0.04 more than the base, and 0.01 for the mean of the seeds 0, 1, 2.
    accuracy = results["comparison"]["metrics"]["test_accuracy"]
    assert accuracy["differences"] == pytest.approx([0.05, 0.05])
    assert "+0.0500" in capsys.readouterr().out
    assert json.loads((directory / "cross_validation.json").read_text())["comparison"]["other"] == str(
        tmp_path / "base"
    )


def test_studies_that_cannot_be_compared_are_told_before_anything_is_trained(
    write_config, directory, tmp_path, trained
):
    with pytest.raises(ConfigurationError, match="must be the folder of a finished study"):
        cross_validate(write_config(), str(directory), num_folds=2, other_directory=str(tmp_path / "nowhere"))
    cross_validate(write_config(), str(tmp_path / "base"), num_folds=2)
    with pytest.raises(ConfigurationError, match="same number of folds"):
        cross_validate(write_config(), str(directory), num_folds=3, other_directory=str(tmp_path / "base"))
    assert len(trained) == 2


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"num_folds": 1}, "`--folds` must be at least 2, but is 1"),
        ({"num_folds": 2, "num_seeds": 0}, "`--seeds` must be at least 1, but is 0"),
        ({"num_folds": 2, "num_workers": 0}, "`--workers` must be at least 1, but is 0"),
        ({"data": "rows"}, "`--data` must come with `--folds`"),
        ({}, "`validation_data_path` must be set"),
        ({"num_folds": 2, "overrides": '{"trainer.num_epoch": 3}'}, "`trainer.num_epoch` must be one of the options"),
    ],
)
def test_wrong_options_are_told_before_anything_is_written(write_config, directory, options, message):
    with pytest.raises(ConfigurationError, match=message):
        cross_validate(write_config(), str(directory), **options)
    assert not directory.exists()


def test_a_file_in_place_of_the_folder_is_told_before_the_config_is_read(directory):
    directory.touch()
    with pytest.raises(
        ConfigurationError, match=f"{directory} must be a folder, new or not, but {directory} is a file"
    ):
        cross_validate("no_config", str(directory))


SMALL = {"trainer.num_epochs": 2, "trainer.cuda_device": -1}


@pytest.fixture
def _in_the_checkout(monkeypatch):
    monkeypatch.chdir(ROOT)


@pytest.mark.slow
@pytest.mark.usefixtures("_in_the_checkout")
def test_a_run_of_a_study_is_the_training_that_the_shipped_overrides_describe(directory, tmp_path):
    config = "training_configs/mr.jsonnet"
    cross_validate(config, str(directory), num_folds=3, num_seeds=2, overrides=json.dumps(SMALL))

    overrides = (
        "(import 'training_configs/overrides/mr_fold.libsonnet')(2) + "
        "(import 'training_configs/overrides/seed.libsonnet')(1) + "
        f"{json.dumps(SMALL)} + {{'dataset_reader.num_folds': 3}}"
    )
    train_model(Params.from_file(config, overrides), str(tmp_path / "run"))
    expected = json.loads((tmp_path / "run/metrics.json").read_text())
    found = Study(directory, {}, 3, 2).run(2, 1).metrics()
    figures = [name for name in expected if name.startswith(("test_", "best_validation_"))]
    assert "test_accuracy" in figures
    # The activations are stored for all runs: the same numbers, added up in batches of another make.
    assert {name: found[name] for name in figures} == pytest.approx(
        {name: expected[name] for name in figures}, abs=1e-5
    )
    assert found["test_accuracy"] == expected["test_accuracy"]


@pytest.mark.slow
def test_a_killed_study_leaves_no_worker_behind_and_is_finished_by_the_same_command(directory, tmp_path):
    nltk_data = tmp_path / "nltk_data"
    (nltk_data / "tokenizers/punkt").mkdir(parents=True)
    environment = {**os.environ, "NLTK_DATA": str(nltk_data), "CUDA_VISIBLE_DEVICES": ""}
    # The script, other than `python -m`, leaves it to AllenNLP to look into the working directory.
    command = [str(Path(sys.executable).with_name("allennlp")), "cross-validate", "training_configs/mr.jsonnet"]
    command += ["-s", str(directory), "--folds", "3", "--workers", "2", "-o", json.dumps(SMALL)]

    process = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    runs = Study(directory, {}, 3, 1).runs
    wait_until(lambda: any(run.is_finished for run in runs) or process.poll() is not None)
    workers = children_of(process.pid)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert len(workers) >= 2
    wait_until(lambda: not any(Path(f"/proc/{worker}").exists() for worker in workers), seconds=20)
    finished = {run.directory: run.metrics() for run in runs if run.is_finished}
    assert 0 < len(finished) < 3

    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    assert "over 3 folds" in done.stdout
    assert " - INFO - " not in (done.stdout + done.stderr).partition("Plugin elmo_tasks available")[2]
    results = json.loads((directory / "cross_validation.json").read_text())
    assert len(results["metrics"]["test_accuracy"]["by_fold"]) == 3
    for run in runs:
        assert run.is_finished
        assert run.directory not in finished or run.metrics() == finished[run.directory]


def wait_until(holds, seconds=300):
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.1)


def children_of(pid):
    return [
        int(path.name)
        for path in Path("/proc").glob("[0-9]*")
        if (path / "stat").exists() and int((path / "stat").read_text().rpartition(")")[2].split()[1]) == pid
    ]
