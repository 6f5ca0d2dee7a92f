"""The oracle is torch's own convolution over all 50 characters of every word."""

import pytest
import torch
from torch.nn import functional

from elmo_tasks.bilm import character_encoder as character_encoder_module
from elmo_tasks.bilm.character_encoder import CharacterEncoder, word_lengths
from elmo_tasks.bilm.character_ids import encode_sentences
from elmo_tasks.bilm.options import BiLmOptions

WORDS = ["a", "word", "", "x" * 47, "x" * 48, "x" * 60, "Москва", "東京", "😀", "<S>", "</S>", "antidisestablishment"]


def make_encoder(activation="relu", num_highway_layers=2):
    torch.manual_seed(11)
    options = BiLmOptions(
        character_dim=4,
        filters=((1, 5), (2, 6), (7, 9)),
        activation=activation,
        num_highway_layers=num_highway_layers,
        max_characters_per_token=50,
        num_layers=1,
        cell_dim=3,
        projection_dim=8,
    )
    encoder = CharacterEncoder(options).double()
    with torch.no_grad():
        for name, parameter in encoder.named_parameters():
            if name.endswith("bias"):
                parameter.normal_(0.0, 0.5)
    return encoder


def plain_encoder(encoder, words, activation="relu"):
    function = {"relu": torch.relu, "tanh": torch.tanh}[activation]
    table = torch.cat([torch.zeros(1, 4, dtype=torch.float64), encoder.characters])
    # (num_words, character_dim, 50)
    vectors = table[words].transpose(1, 2)
    features = []
    for convolution in encoder.convolutions:
        convolved = functional.conv1d(vectors, convolution.weight.permute(2, 1, 0), convolution.bias)
        features.append(function(convolved.max(dim=2)[0]))
    features = torch.cat(features, dim=1)
    for highway in encoder.highways:
        transformed = torch.relu(functional.linear(features, highway.transform.weight, highway.transform.bias))
        gate = torch.sigmoid(functional.linear(features, highway.carry.weight, highway.carry.bias))
        features = gate * transformed + (1 - gate) * features
    return functional.linear(features, encoder.projection.weight, encoder.projection.bias)


@pytest.mark.parametrize("activation", ["relu", "tanh"])
@pytest.mark.parametrize("num_highway_layers", [0, 2])
@pytest.mark.parametrize("requires_grad", [False, True])
def test_vectors_equal_those_of_plain_convolutions(activation, num_highway_layers, requires_grad):
    encoder = make_encoder(activation, num_highway_layers).requires_grad_(requires_grad)
    words = encode_sentences([WORDS])[0]
    expected = plain_encoder(encoder, words, activation)
    torch.testing.assert_close(encoder(words), expected, rtol=0, atol=1e-12)
    # Without the longest words the character axis is cropped further.
    torch.testing.assert_close(encoder(words[:3]), expected[:3], rtol=0, atol=1e-12)


def test_a_filter_that_is_largest_on_padding_sees_the_padding():
    # The single filter fires on the padding character and on nothing else.
    encoder = make_encoder(num_highway_layers=0)
    with torch.no_grad():
        encoder.characters.zero_()
        encoder.characters[260] = 1.0
        for convolution in encoder.convolutions:
            convolution.weight.fill_(1.0)
            convolution.bias.zero_()
    words = encode_sentences([["x" * 30, "x" * 41, "x" * 44, "x" * 48]])[0]
    torch.testing.assert_close(encoder(words), plain_encoder(encoder, words), rtol=0, atol=1e-12)
    # Of the word of 48 bytes no window holds padding: only the projection's bias is left.
    torch.testing.assert_close(encoder(words)[3], encoder.projection.bias, rtol=0, atol=1e-12)


def test_rows_with_zeros_among_the_characters_are_convolved_too():
    encoder = make_encoder()
    words = encode_sentences([["word", "other"]])[0]
    words[0, 2] = 0
    words[1, 20:] = 0
    torch.testing.assert_close(encoder(words), plain_encoder(encoder, words), rtol=0, atol=1e-12)


@pytest.mark.parametrize("activation", ["relu", "tanh"])
def test_gradients_equal_those_of_plain_convolutions(activation):
    encoder = make_encoder(activation)
    words = encode_sentences([WORDS])[0]
    weights = torch.linspace(-1, 1, len(WORDS) * 8, dtype=torch.float64).view(len(WORDS), 8)
    ours = torch.autograd.grad((encoder(words) * weights).sum(), list(encoder.parameters()))
    theirs = torch.autograd.grad(
        (plain_encoder(encoder, words, activation) * weights).sum(), list(encoder.parameters())
    )
    for one, other in zip(ours, theirs):
        assert float(other.abs().max()) > 1e-6
        torch.testing.assert_close(one, other, rtol=0, atol=1e-12)


def test_small_groups_of_words_change_nothing(monkeypatch):
    encoder = make_encoder()
    words = encode_sentences([WORDS])[0]
    expected = encoder(words)
    monkeypatch.setattr(character_encoder_module, "WORDS_PER_CONVOLUTION", 2)
    monkeypatch.setattr(character_encoder_module, "WORDS_PER_HIGHWAY", 5)
    torch.testing.assert_close(encoder(words), expected, rtol=0, atol=1e-12)


def test_changed_weights_of_a_frozen_encoder_are_seen():
    encoder = make_encoder().requires_grad_(False)
    words = encode_sentences([WORDS])[0]
    encoder(words)
    for parameter in encoder.parameters():
        parameter.mul_(0.5)
        torch.testing.assert_close(encoder(words), plain_encoder(encoder, words), rtol=0, atol=1e-12)


def test_a_word_is_as_long_as_its_last_character_or_mark():
    words = encode_sentences([["", "abc", "x" * 48]])[0]
    assert word_lengths(words).tolist() == [2, 5, 50]
    words[0, 9] = 7
    assert word_lengths(words).tolist() == [10, 5, 50]


def test_half_precision_of_a_moment_is_not_kept():
    words = encode_sentences([WORDS])[0]
    expected = make_encoder().float().requires_grad_(False)(words)
    encoder = make_encoder().float().requires_grad_(False)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        encoder(words)
    assert torch.equal(encoder(words), expected)
