"""
Our embedder against AllenNLP's on the same files.

Without states, AllenNLP's runs in float64: in float32 its own rounding error is larger than what is asked of ours.
"""

import random
from pathlib import Path

import pytest
import torch
from allennlp.common import Lazy, Params
from allennlp.modules.elmo import batch_to_ids
from allennlp.modules.token_embedders import ElmoTokenEmbedder

from elmo_tasks.modules import ActivationCache, ElmoEmbedder, ScalarLayerMix

FOLDER = Path(__file__).parents[2] / "fixtures" / "bilm"
FILES = {"options_file": str(FOLDER / "options.json"), "weight_file": str(FOLDER / "weights.hdf5")}

WORDS = ["the", "film", "Never", "lands", ",", "naïve", "жизнь", "日本語", "🎬" * 15, "x" * 60, "<S>", "don't", "1999"]


def random_sentences(num_sentences, seed=0, max_tokens=17):
    generator = random.Random(seed)
    return [[generator.choice(WORDS) for _ in range(generator.randrange(0, max_tokens))] for _ in range(num_sentences)]


def stateless_stock_embedder(**config):
    embedder = ElmoTokenEmbedder(**FILES, **config).double()
    embedder._elmo._elmo_lstm._elmo_lstm.stateful = False
    return embedder


def named_alike(gradients):
    """Gradients by name, without what stands before the mix's own names."""
    return {name.split("scalar_mix")[-1].replace("_0.", "."): value for name, value in gradients.items()}


def gradients_of(embedder):
    return {name: parameter.grad for name, parameter in embedder.named_parameters() if parameter.grad is not None}


SENTENCES = {
    "one token": [["film"]],
    "padding": [["a"], ["a", "b", "c", "d"]],
    "an empty sentence": [["a", "b"], [], ["c"]],
    "long words": [["x" * 47, "x" * 48, "x" * 49, "x" * 50, "x" * 60]],
    "mixed scripts": [["жизнь", "naïve", "日本語", "🎬"], ["Ω"]],
    "boundary tokens as words": [["<S>", "film", "</S>"]],
    "a batch of 32": random_sentences(32),
}


@pytest.mark.parametrize("sentences", SENTENCES.values(), ids=SENTENCES)
@pytest.mark.parametrize("state", ["no cache", "cold", "warm", "overflowing"])
def test_vectors_equal_those_of_the_stateless_stock_embedder(sentences, state):
    cache = None if state == "no cache" else ActivationCache(max_memory_bytes=5000 if state == "overflowing" else 10**8)
    ours = ElmoEmbedder(**FILES, cache=cache)
    character_ids = batch_to_ids(sentences)
    if state in ("warm", "overflowing"):
        ours.train()(character_ids)
    ours.eval()
    torch.testing.assert_close(
        ours(character_ids), stateless_stock_embedder().eval()(character_ids).float(), rtol=0, atol=1e-5
    )


@pytest.mark.parametrize("max_tokens", [4096, 40])
def test_layers_equal_those_of_the_stateless_stock_embedder(max_tokens):
    character_ids = batch_to_ids(random_sentences(32))
    stock = stateless_stock_embedder()._elmo._elmo_lstm(character_ids)["activations"]
    layers = ElmoEmbedder(**FILES, max_tokens_per_forward=max_tokens).layers(character_ids)
    mask = (character_ids > 0).any(dim=-1)
    for ours, theirs in zip(layers, stock):
        torch.testing.assert_close(ours[mask], theirs[:, 1:-1][mask].float(), rtol=0, atol=1e-5)


@pytest.mark.parametrize("cached", [False, True])
@pytest.mark.parametrize("config", [{}, {"projection_dim": 6}])
def test_training_drops_the_same_values_and_gives_the_mix_the_same_gradients(cached, config):
    character_ids = batch_to_ids(random_sentences(16))
    torch.manual_seed(0)
    stock = stateless_stock_embedder(**config)
    torch.manual_seed(0)
    ours = ElmoEmbedder(**FILES, **config, cache=ActivationCache() if cached else None)
    if config:
        ours._projection.load_state_dict(stock._projection.state_dict())
    outputs = []
    for embedder in (stock, ours):
        torch.manual_seed(1)
        outputs.append(embedder(character_ids))
        outputs[-1].sin().sum().backward()
    if not config:
        assert torch.equal(outputs[0] == 0, outputs[1] == 0)
    torch.testing.assert_close(outputs[1], outputs[0].float(), rtol=0, atol=1e-5)
    expected, found = named_alike(gradients_of(stock)), named_alike(gradients_of(ours))
    assert set(expected) == set(found)
    for name, gradient in expected.items():
        torch.testing.assert_close(found[name], gradient.float(), rtol=1e-4, atol=1e-4)


def test_given_mix_equals_the_stock_embedders():
    character_ids = batch_to_ids(random_sentences(8))
    for parameters in ([-9e10, 1.0, -9e10], [0.3, -1.0, 2.0]):
        stock = stateless_stock_embedder(scalar_mix_parameters=parameters).eval()
        ours = ElmoEmbedder(**FILES, scalar_mix_parameters=parameters).eval()
        torch.testing.assert_close(ours(character_ids), stock(character_ids).float(), rtol=0, atol=1e-5)
        mix = Lazy(ScalarLayerMix, params=Params({"initial": parameters}))
        assert torch.equal(ElmoEmbedder(**FILES, mix=mix).eval()(character_ids), ours(character_ids))


@pytest.mark.parametrize("max_tokens", [4096, 40])
def test_fine_tuning_gives_the_bilm_the_gradients_of_the_stock_embedder(max_tokens):
    """The projections, which both hold in the same layout, stand for all weights."""
    character_ids = batch_to_ids(random_sentences(12))
    stock = stateless_stock_embedder(requires_grad=True, dropout=0.0)
    ours = ElmoEmbedder(**FILES, requires_grad=True, dropout=0.0, max_tokens_per_forward=max_tokens)
    for embedder in (stock, ours):
        embedder(character_ids).sin().sum().backward()
    for layer in range(2):
        for direction, name in enumerate(("forward", "backward")):
            stock_layer = getattr(stock._elmo._elmo_lstm._elmo_lstm, f"{name}_layer_{layer}")
            ours_gradient = ours.bilm.layers[layer].projection.grad[direction]
            torch.testing.assert_close(
                ours_gradient, stock_layer.state_projection.weight.grad.float(), rtol=1e-4, atol=1e-4
            )
    assert all(parameter.grad is not None for parameter in ours.parameters())


def test_stateful_sequence_is_bit_for_bit_the_stock_embedders():
    stock = ElmoTokenEmbedder(**FILES)
    ours = ElmoEmbedder(**FILES, stateful=True)
    # Batches grow and shrink, and rows are empty, so that states are kept, added and left alone.
    for seed, batch_size in enumerate((4, 1, 7, 7, 3, 16)):
        character_ids = batch_to_ids(random_sentences(batch_size, seed))
        for training in (False, True):
            results = []
            for embedder in (stock, ours):
                torch.manual_seed(seed)
                results.append(embedder.train(training)(character_ids))
            assert torch.equal(results[0], results[1])
    for embedder in (stock, ours):
        embedder.eval()(character_ids).sin().sum().backward()
    for name, gradient in named_alike(gradients_of(stock)).items():
        torch.testing.assert_close(named_alike(gradients_of(ours))[name], gradient, rtol=1e-5, atol=1e-4)


def test_stateful_embedder_gives_equal_sentences_other_vectors_and_the_default_does_not():
    character_ids = batch_to_ids([["the", "film", "lands"]])
    stateful, stateless = ElmoEmbedder(**FILES, stateful=True).eval(), ElmoEmbedder(**FILES).eval()
    assert (stateful(character_ids) - stateful(character_ids)).abs().max() > 1e-3
    assert torch.equal(stateless(character_ids), stateless(character_ids))
