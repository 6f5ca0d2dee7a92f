import copy
import json
import logging

import pytest
import torch
from allennlp.common import Params
from allennlp.common.checks import ConfigurationError
from allennlp.models import Model
from allennlp.models.archival import load_archive

from elmo_tasks.bilm import save_weights
from elmo_tasks.dataset_readers import WordVocabulary

OPTIONS = {
    "lstm": {
        "use_skip_connections": True,
        "projection_dim": 4,
        "cell_clip": 3,
        "proj_clip": 3,
        "dim": 6,
        "n_layers": 2,
    },
    "char_cnn": {
        "activation": "relu",
        "filters": [[1, 4]],
        "n_highway": 1,
        "embedding": {"dim": 3},
        "n_characters": 262,
        "max_characters_per_token": 50,
    },
}
WORDS = ["<S>", "</S>", "<UNK>", "film", "good"]


def build(words=WORDS, seed=1, projection_dim=4, **overrides):
    options = copy.deepcopy(OPTIONS)
    options["lstm"]["projection_dim"] = projection_dim
    config = {"type": "bilm_language_model", "network": {"options": options}, **overrides}
    torch.manual_seed(seed)
    return Model.from_params(Params(config), vocab=WordVocabulary.from_words(words))


def equal(module, other):
    states = module.state_dict(), other.state_dict()
    return all(torch.equal(states[0][key], states[1][key]) for key in states[0])


@pytest.fixture
def earlier():
    return build(seed=2)


@pytest.fixture
def run(tmp_path, earlier):
    """The folder of a run of the earlier model."""
    folder = tmp_path / "run"
    folder.mkdir()
    reader = {"type": "bilm_text"}
    config = {
        "dataset_reader": reader,
        "vocabulary": {"type": "bilm_text", "reader": reader, "data_path": "gone.txt"},
        "model": {"type": "bilm_language_model", "network": {"options": OPTIONS}},
    }
    (folder / "config.json").write_text(json.dumps(config))
    earlier.vocab.save_to_files(str(folder / "vocabulary"))
    torch.save(earlier.state_dict(), folder / "best.th")
    return folder


@pytest.fixture
def bilm_folder(tmp_path, earlier):
    folder = tmp_path / "bilm"
    folder.mkdir()
    earlier.network.bilm.options.to_file(folder / "options.json")
    save_weights(earlier.network.bilm, str(folder / "weights.hdf5"))
    return folder


def test_with_the_same_words_network_and_softmax_go_on(run, earlier, caplog):
    with caplog.at_level(logging.INFO):
        model = build(pretrained_file=str(run))
    assert equal(model.network, earlier.network)
    assert equal(model.softmaxes, earlier.softmaxes)
    assert f"Network and softmax go on from {run}" in caplog.text


def test_with_other_words_the_softmax_starts_anew_and_says_so(run, earlier, caplog):
    model = build([*WORDS, "bad"], pretrained_file=str(run))
    assert equal(model.network, earlier.network)
    assert equal(model.softmaxes, build([*WORDS, "bad"]).softmaxes)
    assert "the softmax starts anew, since the words differ (6 here, 5 there)" in caplog.text


def test_the_same_words_in_another_order_are_other_words(run, caplog):
    build(["<S>", "</S>", "<UNK>", "good", "film"], pretrained_file=str(run))
    assert "the softmax starts anew" in caplog.text


def test_a_folder_of_official_files_gives_the_network(bilm_folder, earlier, caplog):
    model = build(pretrained_file=str(bilm_folder))
    assert equal(model.network, earlier.network)
    assert equal(model.softmaxes, build().softmaxes)
    assert "the softmax starts anew, since a biLM has none" in caplog.text


@pytest.mark.parametrize("source", ["run", "bilm_folder"])
def test_other_sizes_are_an_error(request, source):
    with pytest.raises(ConfigurationError, match=r"sizes of|options must be those of the file"):
        build(projection_dim=5, pretrained_file=str(request.getfixturevalue(source)))


def test_a_name_that_is_none_is_an_error():
    with pytest.raises(ConfigurationError, match="cannot go on from nowhere: a pretrained biLM must be one of"):
        build(pretrained_file="nowhere")


def test_official_files_are_no_network_over_words(bilm_folder):
    network = {"type": "words", "projection_dim": 4, "cell_dim": 6}
    with pytest.raises(ConfigurationError, match="the network must be `characters`, but is WordNetwork"):
        build(network=network, pretrained_file=str(bilm_folder))


def test_an_archive_that_went_on_from_files_loads_without_them(run, bilm_folder):
    """AllenNLP drops `pretrained_file` when it loads an archive; its weights are the trained ones anyway."""
    config = json.loads((run / "config.json").read_text())
    config["model"]["pretrained_file"] = "gone"
    (run / "config.json").write_text(json.dumps(config))
    assert load_archive(run).model.vocab.get_vocab_size("words") == 5
