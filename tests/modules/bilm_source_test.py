"""Archives stand alone: train, delete the files of the biLM, predict."""

import json
import os
import shutil
import socket
import subprocess
import sys
import tarfile
from pathlib import Path

import numpy
import pytest
import torch
from allennlp.common.checks import ConfigurationError
from allennlp.models import load_archive

from elmo_tasks.bilm import BiLm, BiLmOptions, weights_digest
from elmo_tasks.modules import ElmoEmbedder
from elmo_tasks.modules.activation_cache import ActivationCache
from elmo_tasks.modules.bilm_record import RECORD_NAME, BiLmRecord

BILM_FOLDER = Path(__file__).parents[2] / "fixtures" / "bilm"


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
        "untrained": {**files, "untrained_seed": 3},
    }


@pytest.mark.parametrize("source", sources(BILM_FOLDER))
def test_archive_predicts_the_same_after_the_files_are_gone(
    source, train, bilm_folder, tmp_path, monkeypatch, predictions
):
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


def test_archive_whose_config_names_a_url_asks_no_network(train, bilm_folder, tmp_path, monkeypatch, predictions):
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


def test_run_without_an_archive_stands_in_for_files_that_are_gone(train, bilm_folder, predictions):
    run = train(sources(bilm_folder)["two files"])
    expected = predictions(run / "model.tar.gz")
    (run / "model.tar.gz").unlink()
    assert predictions(run) == expected
    shutil.rmtree(bilm_folder)
    assert predictions(run) == expected


@pytest.mark.parametrize("source", ["a folder", "two files", "with a cache", "fine-tuned"])
def test_predictions_are_the_same_for_every_batch_size(source, train, bilm_folder, predictions):
    archive = train(sources(bilm_folder)[source]) / "model.tar.gz"
    expected = predictions(archive, batch_size=1)
    for batch_size in (2, 3, 64):
        numpy.testing.assert_allclose(predictions(archive, batch_size), expected, rtol=0, atol=1e-6)
    assert expected[0] == expected[2]


PREDICT = """
import json, sys
from allennlp.models import load_archive
from allennlp.predictors import Predictor
import elmo_tasks

rows = [{"sentence": text} for text in json.loads(sys.argv[1])]
outputs = Predictor.from_archive(load_archive(sys.argv[2])).predict_batch_json(rows)
print(json.dumps([list(output["label_probabilities"].values()) for output in outputs]))
"""


@pytest.mark.slow
def test_another_process_predicts_the_same_also_after_a_warm_up(train, bilm_folder, predictions):
    """What was read to warm the states up is in the archive; without states, the order does not matter either."""
    texts = ["a warm and funny film .", "it drags .", "a warm and funny film .", "Ω"]
    stateless = train({"pretrained": str(bilm_folder)}) / "model.tar.gz"
    warmed_up = {"stateful": True, "warm_up_sentences": ["A quiet film with a loud heart .", "Skip it"]}
    stateful = train({"pretrained": str(bilm_folder), **warmed_up}) / "model.tar.gz"

    def in_another_process(texts, archive):
        command = [sys.executable, "-c", PREDICT, json.dumps(texts), str(archive)]
        environment = {**os.environ, "PYTHONPATH": str(BILM_FOLDER.parents[1]), "OMP_NUM_THREADS": "1"}
        done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
        return numpy.array(json.loads(done.stdout.splitlines()[-1]))

    reversed_order = in_another_process(texts[::-1], stateless)[::-1]
    numpy.testing.assert_allclose(reversed_order, predictions(stateless), rtol=0, atol=1e-6)
    numpy.testing.assert_allclose(
        in_another_process(texts, stateful), predictions(stateful, batch_size=4), rtol=0, atol=1e-6
    )


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


def weights(embedder):
    return {name: value.clone() for name, value in embedder.bilm.state_dict().items()}


def test_an_untrained_bilm_has_the_size_of_the_named_one_and_weights_of_its_seed(bilm_folder):
    pretrained = ElmoEmbedder(pretrained=str(bilm_folder))
    torch.manual_seed(5)
    untrained = ElmoEmbedder(pretrained=str(bilm_folder), untrained_seed=3)
    drawn_next = torch.rand(3)
    torch.manual_seed(6)
    again = ElmoEmbedder(pretrained=str(bilm_folder), untrained_seed=3)
    other = ElmoEmbedder(pretrained=str(bilm_folder), untrained_seed=4)

    assert untrained.bilm.options == pretrained.bilm.options
    for name, value in weights(untrained).items():
        assert torch.equal(value, weights(again)[name])
    assert weights_digest(untrained.bilm) == weights_digest(again.bilm)
    assert len({weights_digest(embedder.bilm) for embedder in (pretrained, untrained, other)}) == 3
    assert not any(parameter.requires_grad for parameter in untrained.bilm.parameters())
    torch.manual_seed(5)
    assert torch.equal(torch.rand(3), drawn_next)


def test_untrained_weights_are_those_that_pretraining_starts_from(bilm_folder):
    torch.manual_seed(3)
    fresh = BiLm(BiLmOptions.from_file(str(bilm_folder / "options.json")))
    assert weights_digest(ElmoEmbedder(pretrained=str(bilm_folder), untrained_seed=3).bilm) == weights_digest(fresh)


def test_options_are_enough_for_an_untrained_bilm(bilm_folder):
    options = json.loads((bilm_folder / "options.json").read_text())
    alone = ElmoEmbedder(options=options, untrained_seed=3)
    assert weights_digest(alone.bilm) == weights_digest(
        ElmoEmbedder(pretrained=str(bilm_folder), untrained_seed=3).bilm
    )


def test_a_cache_tells_an_untrained_bilm_from_the_pretrained_one(bilm_folder, tmp_path, to_ids):
    ids = to_ids([["a", "quiet", "film"]])

    def layers(with_cache=True, **options):
        cache = ActivationCache(directory=str(tmp_path / "cache")) if with_cache else None
        embedder = ElmoEmbedder(pretrained=str(bilm_folder), cache=cache, dropout=0.0, **options)
        embedder(ids)  # in training: fills the cache
        return embedder.layers(ids)

    pretrained, untrained = layers(), layers(untrained_seed=3)
    torch.testing.assert_close(untrained, layers(with_cache=False, untrained_seed=3))
    torch.testing.assert_close(pretrained, layers(with_cache=False))
    assert not torch.allclose(pretrained, untrained, atol=1e-2)


def test_archive_without_weights_draws_the_untrained_ones_again(train, bilm_folder, predictions):
    run = train({"pretrained": str(bilm_folder), "untrained_seed": 3, "save_bilm_weights": False})
    whole = train({"pretrained": str(bilm_folder), "untrained_seed": 3})
    assert predictions(run / "model.tar.gz") == predictions(whole / "model.tar.gz")


def test_a_huge_bilm_beside_a_small_file_is_refused_before_memory_is_taken(bilm_folder):
    options_file = bilm_folder / "options.json"
    options = json.loads(options_file.read_text())
    options["lstm"]["dim"] = 2**40
    options_file.write_text(json.dumps(options))
    with pytest.raises(ConfigurationError, match=r"weights.hdf5 must hold the [\d,]+ weights of this biLM, but has"):
        ElmoEmbedder(pretrained=str(bilm_folder))


def test_a_huge_bilm_recorded_in_small_weights_is_refused_before_memory_is_taken(tmp_path):
    state = ElmoEmbedder(pretrained=str(BILM_FOLDER)).state_dict()
    record = BiLmRecord.from_tensor(state[RECORD_NAME])
    record.options["lstm"]["dim"] = 2**40
    torch.save({**state, RECORD_NAME: record.to_tensor()}, tmp_path / "weights.th")
    with pytest.raises(ConfigurationError, match=r"weights.th must hold the [\d,]+ weights of this biLM, but has"):
        ElmoEmbedder(pretrained=str(BILM_FOLDER), serialization_dir=str(tmp_path))
