import copy
import json
from pathlib import Path

import numpy
import pytest
import torch
from allennlp.commands.train import train_model
from allennlp.common import Params
from allennlp.common.checks import ConfigurationError
from allennlp.models.archival import load_archive

from elmo_tasks.bilm import encode_sentences
from elmo_tasks.dataset_readers import BiLmTextReader
from elmo_tasks.training.token_vector_start import TokenVectorStartCallback

ROOT = Path(__file__).parents[2]
TEXT = str(ROOT / "fixtures/text/train.txt")
OPTIONS = {
    "lstm": {
        "use_skip_connections": True,
        "projection_dim": 8,
        "cell_clip": 3,
        "proj_clip": 3,
        "dim": 8,
        "n_layers": 2,
    },
    "char_cnn": {
        "activation": "relu",
        "filters": [[1, 16], [2, 32], [3, 64]],
        "n_highway": 1,
        "embedding": {"dim": 8},
        "n_characters": 262,
        "max_characters_per_token": 50,
    },
}


def start(**options):
    """The callback for a config, short enough for a test."""
    callback = {"type": "start_token_vectors", "reader": {"type": "bilm_text"}, "data_path": TEXT, "batch_size": 64}
    return {**callback, "num_steps": 150, **options}


def config(callback, network=None, **trainer):
    few = TEXT + "#:8"
    return Params(
        {
            "dataset_reader": {"type": "bilm_text"},
            "train_data_path": few,
            "vocabulary": {"type": "bilm_text", "reader": {"type": "bilm_text"}, "data_path": few},
            "model": {
                "type": "bilm_language_model",
                "network": network
                or {"type": "characters", "options": copy.deepcopy(OPTIONS), "train_token_vectors": False},
            },
            "data_loader": {"type": "bilm_text", "batch_size": 2},
            "trainer": {
                "num_epochs": 1,
                "optimizer": {"type": "adam", "lr": 0.01},
                "cuda_device": -1,
                "callbacks": [callback],
                **trainer,
            },
        }
    )


def counted(**options):
    return TokenVectorStartCallback("", BiLmTextReader(), TEXT, **options)._counted_vectors(8)


def token_vectors(model, words):
    with torch.no_grad():
        return model.network.bilm.character_encoder(encode_sentences([[word] for word in words]).flatten(0, 1))


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    folder = tmp_path_factory.mktemp("start") / "run"
    train_model(config(start()), str(folder))
    return load_archive(str(folder)).model


def test_character_encoder_gives_the_counted_vectors(trained):
    words, _, vectors = counted()
    given = token_vectors(trained, words).numpy()
    # Zeros would be off by 1. The network is far too small to learn 142 words by heart.
    assert numpy.square(given - vectors).mean() < 0.5
    capitalised = token_vectors(trained, [word.capitalize() for word in words]).numpy()
    assert numpy.square(capitalised - vectors).mean() < 0.75


def test_words_are_counted_in_small_letters_and_the_rare_ones_left_out(tmp_path):
    words, counts, vectors = counted()
    lines = Path(TEXT).read_text().lower().split()
    assert words == sorted(words, key=lambda word: -lines.count(word))
    assert counts.tolist() == [lines.count(word) for word in words]
    assert min(counts) == 8
    assert vectors.shape == (len(words), 8)


def test_only_the_encoder_is_touched_and_the_language_model_does_not_train_it(trained, tmp_path):
    (tmp_path / "plain").mkdir()
    train_model(config(start(num_steps=0)), str(tmp_path / "plain/run"))
    plain = load_archive(str(tmp_path / "plain/run")).model
    encoder = dict(plain.network.bilm.character_encoder.named_parameters())
    assert not any(parameter.requires_grad for parameter in encoder.values())
    started = dict(trained.network.bilm.character_encoder.named_parameters())
    assert all(not torch.equal(started[name], encoder[name]) for name in encoder)
    # What it draws are numbers of its own: the rest of the model begins as it would without it.
    fresh = {name: p for name, p in plain.named_parameters() if "layers" in name}
    assert fresh
    assert all(not torch.equal(p, trained.get_parameter(name)) for name, p in fresh.items())


@pytest.mark.slow
def test_resumed_run_goes_on_with_what_it_has(tmp_path):
    train_model(config(start()), str(tmp_path / "run"))
    before = load_archive(str(tmp_path / "run")).model.network.bilm.character_encoder.state_dict()
    stored = json.loads((tmp_path / "run/config.json").read_text())
    stored["trainer"]["num_epochs"] = 2
    # A second start would take this path, and fail.
    stored["trainer"]["callbacks"][0]["data_path"] = str(tmp_path / "nothing.txt")
    (tmp_path / "run/config.json").write_text(json.dumps(stored))
    train_model(Params(stored), str(tmp_path / "run"), recover=True)
    after = load_archive(str(tmp_path / "run")).model.network.bilm.character_encoder.state_dict()
    assert (tmp_path / "run/metrics_epoch_1.json").exists()
    assert all(torch.equal(before[name], after[name]) for name in before)


@pytest.mark.parametrize(
    ("callback", "network", "message"),
    [
        (start(reader={"type": "mr"}), None, "must be a `bilm_text`, but is a MrReader"),
        (start(min_count=500), None, "must have at least 8 words that occur 500 times"),
        (start(), {"type": "words", "projection_dim": 8, "cell_dim": 8}, "only a language model over characters"),
    ],
)
def test_what_cannot_be_started_is_refused(callback, network, message, tmp_path):
    with pytest.raises(ConfigurationError, match=message):
        train_model(config(callback, network), str(tmp_path / "run"))
