"""A token-dependent mix, by sentences whose weights are worked out from its definition."""

import json

import numpy
import pytest
import torch
from allennlp.common import Params
from allennlp.common.checks import ConfigurationError
from allennlp.data import Vocabulary
from allennlp.models import Model

from elmo_tasks.bilm import encode_sentences
from elmo_tasks.commands.mix_tokens import weights_of_tokens
from elmo_tasks.commands.mix_weights import read_mixes
from elmo_tasks.commands.sentence_file import SentenceFile
from elmo_tasks.modules import ElmoEmbedder, TokenDependentLayerMix

LINES = ["the film is the best", "", "a film"]


@pytest.fixture
def config(bilm_folder):
    """Of a classifier with a token-dependent mix."""
    embedder = {"type": "elmo", "pretrained": str(bilm_folder), "mix": {"type": "token_dependent"}}
    return {
        "dataset_reader": {"type": "mr"},
        "model": {
            "type": "elmo_sentence_classifier",
            "text_field_embedder": {"token_embedders": {"elmo": embedder}},
        },
    }


@pytest.fixture
def sentences(tmp_path):
    (tmp_path / "sentences.txt").write_text("\n".join(LINES) + "\n")
    return SentenceFile(str(tmp_path / "sentences.txt"))


@pytest.fixture
def trained(config, tmp_path):
    """The folder of a run whose mix gives tokens weights of their own, and the embedder in it."""
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(config))
    vocab = Vocabulary({"labels": {"0": 1, "1": 1}})
    vocab.save_to_files(str(folder / "vocabulary"))
    model = Model.from_params(Params(json.loads(json.dumps(config["model"]))), vocab=vocab)
    (embedder,) = [module for module in model.modules() if isinstance(module, ElmoEmbedder)]
    torch.manual_seed(0)
    for scorer in embedder.scalar_mix.scorers:
        torch.nn.init.normal_(scorer.weight)
    torch.nn.init.constant_(embedder.scalar_mix.gamma, 1.5)
    torch.save(model.state_dict(), folder / "best.th")
    return folder, embedder.eval()


def expected_weights(embedder):
    """Token by token, each sentence alone."""
    rows = []
    for line in filter(None, LINES):
        # (3, num_tokens, 64)
        layers = embedder.layers(encode_sentences([line.split()]))[:, 0]
        scores = [layer @ scorer.weight[0] + scorer.bias for layer, scorer in zip(layers, embedder.scalar_mix.scorers)]
        weights = torch.stack(scores, dim=-1).softmax(dim=-1).detach().numpy()
        rows += zip(line.split(), weights)
    return rows


def test_the_weights_of_a_token_are_the_mean_over_its_places(trained, sentences):
    _, embedder = trained
    mean, tokens = weights_of_tokens(embedder, embedder.scalar_mix, sentences)
    rows = expected_weights(embedder)
    numpy.testing.assert_allclose(mean, numpy.mean([row for _, row in rows], axis=0), atol=1e-5)
    assert {token.token: token.num_occurrences for token in tokens} == {"the": 2, "film": 2, "is": 1, "best": 1, "a": 1}
    for name, count, weights, difference in tokens:
        expected = numpy.mean([row for token, row in rows if token == name], axis=0)
        numpy.testing.assert_allclose(weights, expected, atol=1e-5)
        # What lies above the mean is what has moved.
        assert difference == pytest.approx(sum(max(0, a - b) for a, b in zip(weights, mean)), abs=1e-6)
        assert count >= 1
    differences = [token.difference for token in tokens]
    assert differences == sorted(differences, reverse=True)
    assert differences[0] > 0.01


def test_the_mean_is_what_training_reports_as_a_metric(trained, sentences):
    _, embedder = trained
    embedder(encode_sentences([line.split() for line in LINES]))
    metrics = embedder.scalar_mix.get_metrics()
    mean, _ = weights_of_tokens(embedder, embedder.scalar_mix, sentences)
    assert mean == pytest.approx([metrics[f"scalar_mix_layer_{layer}_weight"] for layer in range(3)], abs=1e-6)


def test_sentences_without_tokens_have_no_weights(trained, tmp_path):
    (tmp_path / "blank.txt").write_text("\n\n")
    _, embedder = trained
    blank = SentenceFile(str(tmp_path / "blank.txt"))
    assert weights_of_tokens(embedder, embedder.scalar_mix, blank) == ([0.0, 0.0, 0.0], [])


def test_a_run_is_read_with_its_own_embedder(trained, sentences):
    folder, embedder = trained
    (mix,) = read_mixes(str(folder), sentences)
    mean, tokens = weights_of_tokens(embedder, embedder.scalar_mix, sentences)
    assert mix.mix.endswith("token_embedder_elmo.scalar_mix")
    assert (mix.weights, mix.gamma, mix.tokens) == (mean, 1.5, tokens)


def test_a_fresh_mix_weighs_all_layers_alike_for_every_token(config, sentences, tmp_path):
    (tmp_path / "config.json").write_text(json.dumps(config))
    (mix,) = read_mixes(str(tmp_path / "config.json"), sentences)
    assert mix.weights == pytest.approx([1 / 3] * 3)
    assert [token.difference for token in mix.tokens] == pytest.approx([0.0] * 5)


def test_mixes_side_by_side_are_read_each_by_its_name(config, sentences, tmp_path):
    elmo = config["model"]["text_field_embedder"]["token_embedders"]["elmo"]
    single = {"type": "scalar", "initial": [0.2, 0.3, 0.5], "normalized": True}
    elmo["mix"] = {"type": "side_by_side", "mixes": [single, elmo["mix"]]}
    (tmp_path / "config.json").write_text(json.dumps(config))
    mixes = {mix.mix.rpartition("elmo.")[2]: mix for mix in read_mixes(str(tmp_path / "config.json"), sentences)}
    assert set(mixes) == {"scalar_mix.mixes.0", "scalar_mix.mixes.1"}
    assert mixes["scalar_mix.mixes.0"].weights == pytest.approx([0.2, 0.3, 0.5])
    assert mixes["scalar_mix.mixes.1"].weights == pytest.approx([1 / 3] * 3)
    assert len(mixes["scalar_mix.mixes.1"].tokens) == 5


def test_the_command_shows_the_tokens_that_differ_most(allennlp, trained, sentences, tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    folder, embedder = trained
    _, tokens = weights_of_tokens(embedder, embedder.scalar_mix, sentences)
    options = ["--sentences", sentences.path, "--num-tokens", 2, "--json", tmp_path / "mix.json"]
    text = allennlp("scalar-mix", folder, *options)
    rows = [[cell.strip() for cell in line.strip("│").split("│")] for line in text.splitlines() if "│" in line]
    assert rows[-2:] == [
        [
            token.token,
            str(token.num_occurrences),
            *(f"{weight:.4f}" for weight in token.weights),
            f"{token.difference:.4f}",
        ]
        for token in tokens[:2]
    ]
    (row,) = json.loads((tmp_path / "mix.json").read_text())["mixes"]
    assert row["tokens"] == [token._asdict() for token in tokens]


def test_sentences_are_asked_for(trained):
    with pytest.raises(ConfigurationError, match=r"token-dependent mix.*`--sentences FILE` must say for which"):
        read_mixes(str(trained[0]))


def test_the_weights_of_a_mix_are_those_that_it_mixes_with():
    torch.manual_seed(0)
    mix = TokenDependentLayerMix(num_representations=3, bilm_dim=4, layer_norm=True)
    for scorer in mix.scorers:
        torch.nn.init.normal_(scorer.weight)
    layers = [torch.randn(5, 4) for _ in range(3)]
    normalised = [torch.nn.functional.layer_norm(layer, (4,), eps=1e-12) for layer in layers]
    expected = sum(weight[:, None] * layer for weight, layer in zip(mix.weights(layers).unbind(dim=-1), normalised))
    torch.testing.assert_close(mix(layers), expected)
