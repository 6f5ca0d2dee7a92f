"""Archives stand alone: train, delete the files of the biLM, predict."""

import json
import logging
import shutil
import socket
import tarfile
from pathlib import Path

import h5py
import numpy
import pytest
import torch
from allennlp.commands.train import train_model
from allennlp.common import Params
from allennlp.common.checks import ConfigurationError
from allennlp.models import load_archive
from allennlp.predictors import Predictor

import elmo_tasks  # noqa: F401 registers the parts of the configs
from elmo_tasks.modules import ElmoEmbedder, elmo_embedder
from elmo_tasks.modules.bilm_record import BiLmRecord, load_mapped

FIXTURES = Path(__file__).parents[2] / "fixtures"
SENTENCES = [{"sentence": text} for text in ("a warm and funny film .", "it drags .", "a warm and funny film .", "Ω")]


@pytest.fixture
def bilm_folder(tmp_path):
    return Path(shutil.copytree(FIXTURES / "bilm", tmp_path / "bilm"))


@pytest.fixture
def train(tmp_path):
    """Trains a small classifier on the sample; gives the folder of the run."""
    runs = []

    def train(embedder, num_epochs=1):
        config = {
            "dataset_reader": {"type": "mr", "max_instances": 16},
            "train_data_path": str(FIXTURES / "mr" / "rt_train.txt"),
            "validation_data_path": str(FIXTURES / "mr" / "rt_val.txt"),
            "model": {
                "type": "elmo_sentence_classifier",
                "text_field_embedder": {"token_embedders": {"elmo": {"type": "elmo", "dropout": 0.0, **embedder}}},
            },
            "data_loader": {"batch_size": 8},
            "trainer": {
                "num_epochs": num_epochs,
                "optimizer": {"type": "adam", "lr": 0.05},
                "cuda_device": -1,
            },
        }
        run = tmp_path / f"run{len(runs)}"
        runs.append(run)
        train_model(Params(config), str(run))
        return run

    return train


def predictions(archive, batch_size=2, **overrides):
    predictor = Predictor.from_archive(load_archive(str(archive), **overrides))
    results = []
    for start in range(0, len(SENTENCES), batch_size):
        results += predictor.predict_batch_json(SENTENCES[start : start + batch_size])
    return [list(result["label_probabilities"].values()) for result in results]


def embedder_in(model):
    (embedder,) = [module for module in model.modules() if isinstance(module, ElmoEmbedder)]
    return embedder


def sources(folder):
    options = json.loads((folder / "options.json").read_text())
    files = {"options_file": str(folder / "options.json"), "weight_file": str(folder / "weights.hdf5")}
    return {
        "a folder": {"pretrained": str(folder)},
        "two files": files,
        "options in the config": {"options": options, "pretrained_file": files["weight_file"]},
        "fine-tuned": {**files, "requires_grad": True},
        "with states": {**files, "stateful": True},
        "with a cache": {**files, "cache": {}},
    }


@pytest.mark.parametrize("source", sources(FIXTURES / "bilm"))
def test_archive_predicts_the_same_after_the_files_are_gone(source, train, bilm_folder, tmp_path, monkeypatch):
    run = train(sources(bilm_folder)[source])
    expected = predictions(run / "model.tar.gz")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    shutil.move(str(run / "model.tar.gz"), str(elsewhere))
    shutil.rmtree(run)
    shutil.rmtree(bilm_folder)

    def no_network(*args, **kwargs):
        raise AssertionError("an archive must not look for other machines")

    monkeypatch.setattr(socket.socket, "connect", no_network)
    monkeypatch.setattr(socket, "getaddrinfo", no_network)
    assert predictions(elsewhere / "model.tar.gz") == expected


def test_archive_whose_config_names_a_url_asks_no_network(train, bilm_folder, tmp_path, monkeypatch):
    run = train(sources(bilm_folder)["two files"])
    expected = predictions(run / "model.tar.gz")
    with tarfile.open(run / "model.tar.gz") as archive:
        archive.extractall(tmp_path / "unpacked")
    config_path = tmp_path / "unpacked" / "config.json"
    config = config_path.read_text().replace(str(bilm_folder), "https://elmo.example.org")
    config_path.write_text(config)
    assert "https://elmo.example.org/weights.hdf5" in config
    shutil.rmtree(bilm_folder)
    assert predictions(tmp_path / "unpacked") == expected


def test_run_without_an_archive_stands_in_for_files_that_are_gone(train, bilm_folder):
    run = train(sources(bilm_folder)["two files"])
    expected = predictions(run / "model.tar.gz")
    (run / "model.tar.gz").unlink()
    assert predictions(run) == expected
    shutil.rmtree(bilm_folder)
    assert predictions(run) == expected


@pytest.mark.parametrize("source", ["a folder", "two files", "with a cache", "fine-tuned"])
def test_predictions_are_the_same_for_every_batch_size(source, train, bilm_folder):
    archive = train(sources(bilm_folder)[source]) / "model.tar.gz"
    expected = predictions(archive, batch_size=1)
    for batch_size in (2, 3, 64):
        numpy.testing.assert_allclose(predictions(archive, batch_size), expected, rtol=0, atol=1e-6)
    assert expected[0] == expected[2]


def test_archive_keeps_trained_weights_and_not_those_of_the_files(train, bilm_folder):
    run = train(sources(bilm_folder)["fine-tuned"])
    original = ElmoEmbedder(pretrained=str(bilm_folder))
    embedder = embedder_in(load_archive(str(run / "model.tar.gz")).model)
    for ours, before in zip(embedder.bilm.parameters(), original.bilm.parameters()):
        assert not torch.equal(ours, before)


def test_missing_files_without_an_archive_are_named(tmp_path):
    files = {"options_file": str(tmp_path / "options.json"), "weight_file": str(tmp_path / "weights.hdf5")}
    with pytest.raises(ConfigurationError, match=r"options\.json"):
        ElmoEmbedder(**files)
    with pytest.raises(ConfigurationError, match=r"a folder with options\.json"):
        ElmoEmbedder(pretrained="no such model")
    with pytest.raises(ConfigurationError, match="`pretrained_file` must name the weights"):
        ElmoEmbedder(options={"lstm": {}})


def test_files_that_do_not_fit_are_refused(bilm_folder):
    options = json.loads((bilm_folder / "options.json").read_text())
    options["lstm"]["dim"] += 1
    (bilm_folder / "options.json").write_text(json.dumps(options))
    with pytest.raises(ConfigurationError, match="do options and weights belong together"):
        ElmoEmbedder(pretrained=str(bilm_folder))


# Weights left out


def test_weights_can_be_left_out_of_checkpoints_and_archives(train, bilm_folder, tmp_path):
    whole = train({"pretrained": str(bilm_folder)})
    lean = train({"pretrained": str(bilm_folder), "save_bilm_weights": False})
    assert predictions(lean / "model.tar.gz") == predictions(whole / "model.tar.gz")
    for name in ("best.th", "model_state_e1_b0.th"):
        assert not any(".bilm." in key for key in load_mapped(str(lean / name)))
        assert (lean / name).stat().st_size < 0.1 * (whole / name).stat().st_size
    (record,) = [value for key, value in load_mapped(str(lean / "best.th")).items() if key.endswith("bilm_record")]
    assert BiLmRecord.from_tensor(record).source == {"pretrained": str(bilm_folder)}


def test_archive_without_weights_refuses_another_bilm(train, bilm_folder):
    run = train({"pretrained": str(bilm_folder), "save_bilm_weights": False})
    with h5py.File(bilm_folder / "weights.hdf5", "r+") as weights:
        weights["CNN_proj/b_proj"][0] += 1.0
    with pytest.raises(ConfigurationError, match=r"needs the biLM with digest \w+, from .*bilm.*, but the one at hand"):
        load_archive(str(run / "model.tar.gz"))


def test_archive_without_weights_says_when_its_bilm_is_gone(train, bilm_folder):
    run = train({"pretrained": str(bilm_folder), "save_bilm_weights": False})
    shutil.rmtree(bilm_folder)
    with pytest.raises(ConfigurationError, match=r"the biLM cannot be had.*bilm"):
        load_archive(str(run / "model.tar.gz"))


def test_archive_without_weights_takes_the_same_bilm_from_another_place(train, bilm_folder, tmp_path):
    run = train({"pretrained": str(bilm_folder), "save_bilm_weights": False})
    expected = predictions(run / "model.tar.gz")
    moved = shutil.move(str(bilm_folder), str(tmp_path / "moved"))
    key = "model.text_field_embedder.token_embedders.elmo.pretrained"
    assert predictions(run / "model.tar.gz", overrides={key: moved}) == expected


def test_state_without_weights_loads_strictly_and_leaves_the_weights_alone(bilm_folder):
    embedder = ElmoEmbedder(pretrained=str(bilm_folder), save_bilm_weights=False)
    before = {name: value.clone() for name, value in embedder.bilm.state_dict().items()}
    state = embedder.state_dict()
    state["scalar_mix.gamma"] = torch.tensor([2.5])
    another = ElmoEmbedder(pretrained=str(bilm_folder), save_bilm_weights=False)
    another.load_state_dict(state, strict=True)
    assert another.scalar_mix.gamma.item() == 2.5
    for name, value in another.bilm.state_dict().items():
        assert torch.equal(value, before[name])


def test_missing_weights_are_missed_where_none_were_left_out(bilm_folder):
    embedder = ElmoEmbedder(pretrained=str(bilm_folder))
    state = {name: value for name, value in embedder.state_dict().items() if not name.startswith("bilm.layers")}
    with pytest.raises(RuntimeError, match=r"Missing key.*bilm\.layers"):
        embedder.load_state_dict(state, strict=True)


# Several in one model


def test_two_bilms_in_one_archive_are_told_apart(bilm_folder, tmp_path):
    other_folder = tmp_path / "other"
    shutil.copytree(bilm_folder, other_folder)
    with h5py.File(other_folder / "weights.hdf5", "r+") as weights:
        weights["CNN_proj/b_proj"][0] += 1.0
    embedders = torch.nn.ModuleDict({name: ElmoEmbedder(pretrained=str(tmp_path / name)) for name in ("bilm", "other")})
    (tmp_path / "archive").mkdir()
    torch.save(embedders.state_dict(), tmp_path / "archive" / "weights.th")
    shutil.rmtree(bilm_folder)
    shutil.rmtree(other_folder)
    for name in ("bilm", "other"):
        embedder = ElmoEmbedder(pretrained=str(tmp_path / name), serialization_dir=str(tmp_path / "archive"))
        for found, expected in zip(embedder.parameters(), embedders[name].parameters()):
            assert torch.equal(found, expected)


# The choice of states


def test_other_choice_of_states_than_in_training_warns(train, bilm_folder):
    messages = []
    # Of our own: a training run replaces the handlers of the root logger, and with them pytest's.
    handler = logging.Handler(logging.WARNING)
    handler.emit = lambda record: messages.append(record.getMessage())
    elmo_embedder.logger.addHandler(handler)
    key = "model.text_field_embedder.token_embedders.elmo.stateful"
    for trained in (False, True):
        run = train({"pretrained": str(bilm_folder), "stateful": trained})
        assert json.loads((run / "metrics.json").read_text())["validation_elmo_stateful"] == float(trained)
        for now in (False, True):
            messages.clear()
            load_archive(str(run / "model.tar.gz"), overrides={key: now})
            assert ["`stateful`" in message for message in messages] == [True] * (trained != now)
    elmo_embedder.logger.removeHandler(handler)


# Training runs


def test_training_with_the_cache_gives_the_losses_of_training_without(train, bilm_folder, tmp_path):
    def losses(run):
        metrics = [json.loads((run / f"metrics_epoch_{epoch}.json").read_text()) for epoch in range(3)]
        return [epoch[name] for epoch in metrics for name in ("training_loss", "validation_loss")]

    plain = losses(train({"pretrained": str(bilm_folder)}, num_epochs=3))
    cache = {"directory": str(tmp_path / "cache")}
    cold = losses(train({"pretrained": str(bilm_folder), "cache": dict(cache)}, num_epochs=3))
    warm = losses(train({"pretrained": str(bilm_folder), "cache": dict(cache)}, num_epochs=3))
    assert cold == pytest.approx(plain, abs=1e-5)
    assert warm == pytest.approx(plain, abs=1e-5)
    assert plain[0] != plain[-2]


def test_metrics_of_each_epoch_carry_the_mix(train, bilm_folder):
    run = train({"pretrained": str(bilm_folder)}, num_epochs=2)
    last = json.loads((run / "metrics_epoch_1.json").read_text())
    weights = [last[f"training_scalar_mix_layer_{layer}_weight"] for layer in range(3)]
    assert sum(weights) == pytest.approx(1.0)
    assert weights != pytest.approx([1 / 3] * 3, abs=1e-4)
