"""Every pretraining config trains on the fixtures, with its network made small, and says what it should."""

import json
import runpy
from pathlib import Path

import pytest
from allennlp.commands.train import train_model
from allennlp.common import Params
from allennlp.common.params import evaluate_file
from allennlp.models.archival import load_archive

from elmo_tasks.bilm import BiLm, BiLmOptions
from elmo_tasks.commands.check_bilm import find_problems

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[1]
CONFIGS = ROOT / "training_configs/pretrain"
KNOBS = runpy.run_path(str(ROOT / "training_configs/write_json.py"))["KNOBS"]
SMOKE = json.loads(evaluate_file(str(ROOT / "training_configs/overrides/smoke.libsonnet")))

SMALL_LSTM = {
    "use_skip_connections": True,
    "projection_dim": 8,
    "cell_clip": 3,
    "proj_clip": 3,
    "dim": 16,
    "n_layers": 2,
}
SMALL_CHARACTERS = {
    "model.network.options.lstm": SMALL_LSTM,
    "model.network.options.char_cnn.filters": [[1, 8], [2, 8]],
}
SMALL_WORDS = {"model.network.projection_dim": 8, "model.network.cell_dim": 16}


@pytest.fixture(autouse=True)
def _in_the_checkout(monkeypatch):
    monkeypatch.chdir(ROOT)
    for knob in KNOBS:
        monkeypatch.setenv(knob.name, knob.default)


def load(name, **overrides):
    return Params.from_file(str(CONFIGS / f"{name}.jsonnet"), params_overrides=overrides)


def names():
    return sorted(path.stem for path in CONFIGS.glob("*.jsonnet"))


@pytest.mark.parametrize("name", names())
def test_config_trains_on_the_fixtures(name, tmp_path):
    config = load(name)
    small = SMALL_CHARACTERS if config["model"]["network"]["type"] == "characters" else SMALL_WORDS
    overrides = {**small, **SMOKE, "trainer.cuda_device": -1}
    if "distributed" in config:
        overrides["distributed"] = None
    for number, callback in enumerate(config["trainer"]["callbacks"]):
        if callback["type"] == "start_token_vectors":
            overrides[f"trainer.callbacks.{number}.num_steps"] = 20
    train_model(load(name, **overrides), serialization_dir=str(tmp_path / "run"))
    metrics = json.loads((tmp_path / "run/metrics.json").read_text())
    assert metrics["epoch"] == 1
    assert metrics["training_perplexity"] > 1
    assert ("best_validation_perplexity" in metrics) == (name != "mrpc_words")
    if small is SMALL_CHARACTERS:
        assert find_problems(str(tmp_path / "run/bilm")) == []
    else:
        assert not (tmp_path / "run/bilm").exists()


def num_parameters(name):
    options = BiLmOptions.from_dict(load(name)["model"]["network"]["options"].as_dict())
    return sum(parameter.numel() for parameter in BiLm(options).parameters())


@pytest.mark.parametrize(("name", "millions"), [("original", 93.6), ("small", 13.6)])
def test_published_sizes_are_those_of_their_authors(name, millions):
    """<https://allenai.org/allennlp/software/elmo> names 93.6 and 13.6 million parameters."""
    assert round(num_parameters(name) / 1e6, 1) == millions


def test_mini_fits_into_16_megabytes_in_half_precision():
    assert 2 * num_parameters("mini") < 15e6


def test_words_of_mrpc_have_their_numbers_replaced_and_their_pairs_bounded(tmp_path):
    overrides = {**SMALL_WORDS, "trainer.num_epochs": 1, "trainer.cuda_device": -1}
    train_model(load("mrpc_words", **overrides), serialization_dir=str(tmp_path / "run"))
    archive = load_archive(tmp_path / "run")
    words = archive.model.vocab.get_token_to_index_vocabulary("words")
    assert "<NUM>" in words
    assert not [word for word in words if word.replace(".", "").isdigit()]
    assert archive.config["dataset_reader"]["source"]["max_instances"] == 2000
