"""Whole sweeps: of a model whose accuracy is a function of its settings, and of the shipped config on the sample."""

import importlib.util
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Dict, Iterable

import optuna
import pytest
import torch
from allennlp.commands.train import train_model
from allennlp.common import Params
from allennlp.common.checks import ConfigurationError
from allennlp.data import DatasetReader, Instance
from allennlp.data.fields import TensorField
from allennlp.models import Model

from elmo_tasks.commands.search_space import SearchSpace
from elmo_tasks.commands.sweep import sweep

ROOT = Path(__file__).parents[2]


@DatasetReader.register("noting_for_test")
class NotingReader(DatasetReader):
    """One instance for each part, and a list of what was read."""

    read_paths = []

    def _read(self, file_path) -> Iterable[Instance]:
        self.read_paths.append(file_path)
        yield Instance({"x": TensorField(torch.ones(2))})


@Model.register("peaked_for_test")
class PeakedModel(Model):
    """Its accuracy is 1 less the distance of its place from 0.3, less 0.5 unless its shape is round."""

    def __init__(self, vocab, place: float, shape: Dict[str, bool], **kwargs) -> None:
        super().__init__(vocab, **kwargs)
        self.weight = torch.nn.Parameter(torch.ones(2))
        self.accuracy = 1 - abs(place - 0.3) - (0 if shape["round"] else 0.5)

    def forward(self, x):
        return {"loss": (x * self.weight).sum()}

    def get_metrics(self, reset: bool = False) -> Dict[str, float]:
        return {"accuracy": self.accuracy}


SPACE = {
    "model.place": {"type": "float", "low": 0, "high": 1},
    "model.shape": {"type": "categorical", "choices": {"ball": {"round": True}, "cube": {"round": False}}},
}


@pytest.fixture
def write(tmp_path):
    def write(name, content):
        path = tmp_path / name
        path.write_text(json.dumps(content))
        return str(path)

    return write


@pytest.fixture
def config(write):
    NotingReader.read_paths.clear()
    return write(
        "config.json",
        {
            "dataset_reader": {"type": "noting_for_test"},
            "train_data_path": "rows#train",
            "validation_data_path": "rows#dev",
            "test_data_path": "rows#test",
            "evaluate_on_test": True,
            "model": {"type": "peaked_for_test", "place": 0.9, "shape": {"round": False}},
            "data_loader": {"batch_size": 1},
            "trainer": {
                "num_epochs": 2,
                "cuda_device": -1,
                "validation_metric": "+accuracy",
                "optimizer": {"type": "sgd", "lr": 0.0},
            },
        },
    )


@pytest.fixture
def space(write):
    return write("space.json", SPACE)


@pytest.fixture
def directory(tmp_path):
    return tmp_path / "sweep"


def figures(directory):
    return [json.loads(path.read_text()) for path in sorted(directory.glob("trial_*/metrics.json"))]


def test_the_test_part_is_never_read(config, space, directory):
    sweep(config, space, str(directory), num_trials=3)
    assert NotingReader.read_paths == ["rows#train", "rows#dev"] * 3
    assert len(figures(directory)) == 3
    for metrics in figures(directory):
        assert not [name for name in metrics if name.startswith("test_")]
    assert '"test_data_path"' not in (directory / "trial_0/config.json").read_text()


def test_the_best_settings_train_the_best_trial_again_and_test_it(config, space, directory, tmp_path):
    settings = sweep(config, space, str(directory), num_trials=4)
    accuracies = [metrics["best_validation_accuracy"] for metrics in figures(directory)]

    params = Params.from_file(config, f"import '{directory}/best.libsonnet'")
    model = params["model"].as_dict(quiet=True)
    assert model == {"type": "peaked_for_test", "place": settings["model.place"], "shape": settings["model.shape"]}
    train_model(params, str(tmp_path / "run"))
    metrics = json.loads((tmp_path / "run/metrics.json").read_text())
    assert metrics["best_validation_accuracy"] == max(accuracies)
    assert metrics["test_accuracy"] == max(accuracies)


def test_the_console_shows_the_best_trials_and_what_to_do_with_them(config, space, directory, capsys):
    overrides = "{ 'trainer.num_epochs': 1 }"
    sweep(config, space, str(directory), num_trials=2, overrides=overrides)
    captured = capsys.readouterr()
    assert "the best of 2 trials" in captured.out
    command = f"allennlp train {config} -s OUT -o \"({overrides}) + import '{directory}/best.libsonnet'\""
    assert f"  {command}\n" in captured.out
    assert f"//   {command}\n" in (directory / "best.libsonnet").read_text()
    assert "2/2" in captured.err
    assert "INFO" not in captured.out + captured.err
    # It is a command indeed.
    settings = Params.from_file(config, command.partition('-o "')[2][:-1])
    assert settings["trainer"]["num_epochs"] == 1


def test_a_command_with_json_overrides_survives_the_shell(config, space, directory, capsys):
    sweep(config, space, str(directory), num_trials=1, overrides='{"trainer.num_epochs": 1}')
    command = capsys.readouterr().out.splitlines()[-1].strip()
    words = subprocess.run(["sh", "-c", f"printf '%s\\n' {command}"], capture_output=True, text=True, check=True).stdout
    assert words.splitlines()[-1] == f'({{"trainer.num_epochs": 1}}) + import "{directory}/best.libsonnet"'


def test_an_optuna_program_finds_the_trials(config, space, directory):
    sweep(config, space, str(directory), num_trials=2, study_name="peak", storage=f"sqlite:///{directory.parent}/s.db")
    study = optuna.load_study(study_name="peak", storage=f"sqlite:///{directory.parent}/s.db")
    assert len(study.trials) == 2
    assert set(study.best_params) == set(SPACE)


def test_without_optuna_it_is_said_how_to_install_it(config, space, directory, monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ConfigurationError, match="must have Optuna, but it is not installed: pip install 'optuna"):
        sweep(config, space, str(directory))
    assert not directory.exists()


def test_a_file_in_place_of_the_folder_is_told_before_the_config_is_read(directory):
    directory.touch()
    with pytest.raises(
        ConfigurationError, match=f"{directory} must be a folder, new or not, but {directory} is a file"
    ):
        sweep("no_config", "no_space", str(directory))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"num_trials": 0}, "`--trials` must be at least 1, but is 0"),
        ({"overrides": "{'validation_data_path': 'rows#test'}"}, "must be other data than `test_data_path`"),
        (
            {"overrides": "{'model.shape': {round: true}}", "space_path": {"model.shape.x": SPACE["model.place"]}},
            "room",
        ),
        ({"space_path": {"model.modell.x": SPACE["model.place"]}}, "`model.modell.x` of the search space must"),
        ({"space_path": {"model.place": {"type": "float", "low": 1, "high": 0}}}, "`low` must be at most `high`"),
    ],
)
def test_what_is_wrong_is_told_before_anything_is_written(config, space, directory, write, options, message):
    if "space_path" in options:
        options = {**options, "space_path": write("wrong.json", options["space_path"])}
    with pytest.raises(ConfigurationError, match=message):
        sweep(**{"config_path": config, "space_path": space, "directory": str(directory), **options})
    assert not directory.exists()
    assert NotingReader.read_paths == []


SMALL = {"trainer.num_epochs": 1, "trainer.cuda_device": -1}
MR = "training_configs/mr.jsonnet"
MR_SPACE = "training_configs/sweeps/mr.libsonnet"


def shipped_choices():
    space = SearchSpace.from_file(str(ROOT / MR_SPACE))
    return [(name, value) for name in ("head", "mix") for value in space.parameters[name].examples()]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "value"), shipped_choices())
def test_each_choice_of_the_shipped_space_trains(name, value, tmp_path, monkeypatch):
    monkeypatch.chdir(ROOT)
    overrides = SearchSpace.from_file(MR_SPACE).parameters[name].overrides(name, value)
    params = Params.from_file(MR, {**overrides, **SMALL, "dataset_reader.max_instances": 32})
    train_model(params, str(tmp_path / "run"))
    assert "test_accuracy" in json.loads((tmp_path / "run/metrics.json").read_text())


@pytest.mark.slow
def test_two_processes_share_a_sweep_and_a_killed_one_leaves_its_trial_to_the_other(directory, tmp_path):
    nltk_data = tmp_path / "nltk_data"
    (nltk_data / "tokenizers/punkt").mkdir(parents=True)
    environment = {**os.environ, "NLTK_DATA": str(nltk_data), "CUDA_VISIBLE_DEVICES": ""}
    # The script, other than `python -m`, leaves it to AllenNLP to look into the working directory.
    command = [str(Path(sys.executable).with_name("allennlp")), "sweep", MR, MR_SPACE]
    command += ["-s", str(directory), "--trials", "4", "-o", json.dumps({**SMALL, "trainer.num_epochs": 20})]

    def start():
        return subprocess.Popen(
            command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )

    killed = start()
    # In the middle of a training.
    wait_until(lambda: (directory / "trial_0/metrics_epoch_0.json").is_file() or killed.poll() is not None)
    killed.send_signal(signal.SIGKILL)
    killed.communicate()
    assert killed.returncode == -signal.SIGKILL

    processes = [start(), start()]
    outputs = [process.communicate()[0] for process in processes]
    assert [process.returncode for process in processes] == [0, 0], outputs
    assert all("the best of" in output for output in outputs)

    study = optuna.load_study(
        study_name="sweep",
        storage=optuna.storages.JournalStorage(
            optuna.storages.journal.JournalFileBackend(str(directory / "study.journal"))
        ),
    )
    states = [trial.state.name for trial in study.trials]
    assert states[0] == "FAIL"
    assert states.count("COMPLETE") == 4
    assert "RUNNING" not in states
    assert len(figures(directory)) == 4
    best = max(metrics["best_validation_accuracy"] for metrics in figures(directory))
    assert study.best_value == best
    assert f"// best_validation_accuracy {best:.6g}: " in (directory / "best.libsonnet").read_text()


def wait_until(holds, seconds=300):
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.05)
