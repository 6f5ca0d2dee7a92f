"""`allennlp train --recover` after `kill -9`, at moments that matter."""

import json
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
CONFIG = "training_configs/mr.jsonnet"
OVERRIDES = json.dumps(
    {
        "trainer.num_epochs": 3,
        "trainer.callbacks": [{"type": "kill_for_test"}],
        "dataset_reader.max_instances": 64,
        "data_loader.batch_sampler.batch_size": 8,
    }
)


@pytest.fixture(scope="module")
def train(allennlp):
    def run(directory, *arguments, config=CONFIG, overrides=OVERRIDES, **options):
        return allennlp(
            *("train", config, "-s", directory, "-o", overrides, "--include-package", "observers", *arguments),
            **options,
        )

    return run


@pytest.fixture(scope="module")
def whole(train, tmp_path_factory):
    """The directory of a run that nothing interrupted."""
    directory = tmp_path_factory.mktemp("recover") / "whole"
    train(directory)
    return directory


def metrics_of(directory, name="metrics.json"):
    metrics = json.loads((directory / name).read_text())
    return {key: value for key, value in metrics.items() if not key.endswith(("duration", "memory_MB"))}


@pytest.mark.parametrize(
    ("moment", "config"), [("batch", str(ROOT / CONFIG)), ("model_state", CONFIG)], ids=["in epoch 2", "while saving"]
)
def test_a_killed_run_recovers_to_the_run_that_nothing_interrupted(moment, config, whole, train, complaints, tmp_path):
    run = tmp_path / "run"
    train(run, killed=True, KILL_AT=moment)
    assert (run / "model_state_e1_b0.th").is_file()
    assert (run / "model_state_e2_b0.th.partial").is_file() == (moment == "model_state")
    assert not (run / "model.tar.gz").exists()

    assert complaints(train(run, "--recover", config=config)) == []
    assert metrics_of(run) == metrics_of(whole)
    assert metrics_of(run)["epoch"] == 2
    assert metrics_of(run, "metrics_epoch_1.json") == metrics_of(whole, "metrics_epoch_1.json")
    assert (run / "model.tar.gz").is_file()
    assert not list(run.glob("*.partial"))
    assert (run / "vocabulary/labels.txt").read_text() == (whole / "vocabulary/labels.txt").read_text()


def test_a_finished_run_can_be_trained_longer(whole, train):
    """AllenNLP refuses `--recover` with another config; the run's own config is the one to change."""
    config_file = whole / "config.json"
    config = json.loads(config_file.read_text())
    config["trainer"]["num_epochs"] = 4
    config_file.write_text(json.dumps(config))
    train(whole, "--recover", config=config_file, overrides="")
    assert metrics_of(whole)["epoch"] == 3
