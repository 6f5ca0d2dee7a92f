"""Our biLM against AllenNLP's own on the same files. Where no state is carried, theirs is switched off."""

from pathlib import Path

import pytest
import torch
from allennlp.modules.elmo import Elmo, _ElmoBiLm, batch_to_ids

from elmo_tasks.bilm import BiLm, BiLmOptions, encode_sentences, load_weights, save_weights

FIXTURE = Path(__file__).parents[2] / "fixtures" / "bilm"

SENTENCES = [
    ["The", "last", "ferry", "had", "gone", ",", "so", "we", "slept", "on", "the", "pier", "."],
    ["rain"],
    [],
    ["w" * 60, "w" * 48, "w" * 47, "w" * 49],
    ["Паром", "ушёл", "。", "下雨", "了", "🚢", "déjà", "vu", "\u200b", "a\u0301"],
    ["<S>", "a", "</S>", "<UNK>", "\\", "\t", "\0"],
    ["pier", "the", "on", "slept", "we"],
]

# How far two float32 computations of the same vectors may be apart.
TOLERANCE = 1e-5


def load_stock(folder, stateful=False, requires_grad=False):
    stock = _ElmoBiLm(str(folder / "options.json"), str(folder / "weights.hdf5"), requires_grad=requires_grad)
    stock._elmo_lstm.stateful = stateful
    return stock


def load_ours(folder, precision="float32"):
    bilm = BiLm(BiLmOptions.from_file(str(folder / "options.json")), precision)
    load_weights(bilm, str(folder / "weights.hdf5"))
    return bilm.requires_grad_(False)


def assert_equal_outputs(ours, stock, tolerance=TOLERANCE):
    assert torch.equal(ours.mask, stock["mask"])
    assert len(ours.activations) == len(stock["activations"])
    for one, other in zip(ours.activations, stock["activations"]):
        torch.testing.assert_close(one, other, rtol=0, atol=tolerance)


def write_bilm(folder, num_layers, num_highway_layers, activation="relu", cell_clip=1.0, projection_clip=0.5):
    """A biLM with all parameters at random, written by our own exporter."""
    torch.manual_seed(num_layers + 10 * num_highway_layers)
    options = BiLmOptions(
        character_dim=6,
        filters=((1, 4), (2, 8), (3, 12), (7, 16)),
        activation=activation,
        num_highway_layers=num_highway_layers,
        max_characters_per_token=50,
        num_layers=num_layers,
        cell_dim=24,
        projection_dim=12,
        cell_clip=cell_clip,
        projection_clip=projection_clip,
    )
    bilm = BiLm(options)
    with torch.no_grad():
        for parameter in bilm.parameters():
            parameter.normal_(0.0, 0.3)
        for layer in bilm.layers:
            # AllenNLP adds one to the forget gate's bias in float32: without rounding, so that float64 can compare.
            layer.bias.mul_(1024).round_().div_(1024)
    options.to_file(str(folder / "options.json"))
    save_weights(bilm, str(folder / "weights.hdf5"))
    return bilm


@pytest.fixture(scope="module")
def stock_of_the_module():
    return load_stock(FIXTURE)


@pytest.fixture
def stock(stock_of_the_module):
    # Also where it does not use its state, it keeps one, and fails when the next batch is larger.
    stock_of_the_module._elmo_lstm.reset_states()
    return stock_of_the_module


@pytest.fixture(scope="module")
def ours():
    return load_ours(FIXTURE)


def test_our_character_ids_are_allennlps():
    assert torch.equal(encode_sentences(SENTENCES), batch_to_ids(SENTENCES))


def test_all_layers_of_a_mixed_batch_equal_allennlps(stock, ours):
    ids = batch_to_ids(SENTENCES)
    assert_equal_outputs(ours(ids), stock(ids))


@pytest.mark.parametrize("sentence", SENTENCES)
def test_a_batch_of_one_equals_allennlps(stock, ours, sentence):
    ids = encode_sentences([sentence])
    assert_equal_outputs(ours(ids), stock(ids))


def test_a_batch_of_32_equals_allennlps(stock, ours):
    sentences = [SENTENCES[row % 7][row % 5 :] for row in range(32)]
    ids = batch_to_ids(sentences)
    assert_equal_outputs(ours(ids), stock(ids))


def test_only_empty_sentences_equal_allennlps(stock, ours):
    for ids in (torch.zeros(3, 0, 50, dtype=torch.int64), torch.zeros(3, 4, 50, dtype=torch.int64)):
        assert_equal_outputs(ours(ids), stock(ids))


def test_padding_beyond_the_longest_sentence_equals_allennlps(stock, ours):
    ids = torch.cat([batch_to_ids(SENTENCES), torch.zeros(7, 5, 50, dtype=torch.int64)], dim=1)
    assert_equal_outputs(ours(ids), stock(ids))


def test_state_carried_over_batches_of_different_sizes_equals_allennlps(ours):
    stock = load_stock(FIXTURE, stateful=True)
    batches = [SENTENCES[:3], SENTENCES[3:5], SENTENCES[2:7], SENTENCES[:3], SENTENCES[3:4]]
    state = None
    for sentences in batches:
        ids = encode_sentences(sentences)
        output = ours(ids, state)
        state = output.state
        assert_equal_outputs(output, stock(ids))
        stock_hidden, stock_memory = stock._elmo_lstm._states
        for layer in range(2):
            for mine, theirs in ((state.hidden, stock_hidden), (state.memory, stock_memory)):
                both_directions = torch.cat([mine[layer, 0], mine[layer, 1]], dim=-1)
                torch.testing.assert_close(both_directions, theirs[layer], rtol=0, atol=TOLERANCE)


@pytest.mark.parametrize("activation", ["relu", "tanh"])
@pytest.mark.parametrize(("num_layers", "num_highway_layers"), [(1, 0), (1, 2), (3, 1), (2, 2), (3, 0)])
@pytest.mark.parametrize("clip", [True, False])
def test_our_exported_files_give_allennlp_our_vectors(tmp_path, num_layers, num_highway_layers, activation, clip):
    clips = (1.0, 0.5) if clip else (None, None)
    bilm = write_bilm(tmp_path, num_layers, num_highway_layers, activation, *clips)
    ids = batch_to_ids(SENTENCES)
    with torch.no_grad():
        output = bilm(ids)
    assert_equal_outputs(output, load_stock(tmp_path)(ids))
    assert_equal_outputs(load_ours(tmp_path)(ids), load_stock(tmp_path)(ids))
    if clip:
        assert float(output.state.memory.abs().max()) == 1.0
        assert float(output.state.hidden.abs().max()) == 0.5


def test_allennlp_reads_our_half_precision_file(tmp_path, ours):
    ours.options.to_file(str(tmp_path / "options.json"))
    save_weights(ours, str(tmp_path / "weights.hdf5"), dtype="float16")
    ids = batch_to_ids(SENTENCES)
    # AllenNLP adds one to the forget gate's bias in float16, which rounds once more; ours does not.
    assert_equal_outputs(load_ours(tmp_path)(ids), load_stock(tmp_path)(ids), tolerance=2e-2)


def test_a_mix_of_allennlps_elmo_over_our_layers_equals_its_own(ours):
    elmo = Elmo(
        str(FIXTURE / "options.json"),
        str(FIXTURE / "weights.hdf5"),
        num_output_representations=1,
        dropout=0.0,
        scalar_mix_parameters=[0.3, -0.2, 1.0],
    )
    ids = batch_to_ids(SENTENCES)
    theirs = elmo(ids)["elmo_representations"][0]
    output = ours(ids)
    mixed = elmo.scalar_mix_0(output.activations, output.mask)
    torch.testing.assert_close(
        (mixed * output.mask.unsqueeze(-1))[:, 1:-1][theirs != 0], theirs[theirs != 0], rtol=0, atol=TOLERANCE
    )


def stock_gradients_by_our_name(stock, options):
    """AllenNLP's gradients, in our layout: other axes, other order of gates, the negated carry."""
    gradients = {}
    encoder = stock._token_embedder
    gradients["character_encoder.characters"] = encoder._char_embedding_weights.grad[1:]
    for index in range(len(options.filters)):
        convolution = getattr(encoder, f"char_conv_{index}")
        gradients[f"character_encoder.convolutions.{index}.weight"] = convolution.weight.grad.permute(2, 1, 0)
        gradients[f"character_encoder.convolutions.{index}.bias"] = convolution.bias.grad
    for index, layer in enumerate(encoder._highways._layers):
        for kind in ("weight", "bias"):
            transform, carry = getattr(layer, kind).grad.chunk(2)
            gradients[f"character_encoder.highways.{index}.transform.{kind}"] = transform
            gradients[f"character_encoder.highways.{index}.carry.{kind}"] = -carry
    gradients["character_encoder.projection.weight"] = encoder._projection.weight.grad
    gradients["character_encoder.projection.bias"] = encoder._projection.bias.grad

    def in_our_order(gradient):
        input_gate, forget_gate, candidate, output_gate = gradient.chunk(4)
        return torch.cat([input_gate, candidate, forget_gate, output_gate])

    for index in range(options.num_layers):
        cells = [getattr(stock._elmo_lstm, f"{direction}_layer_{index}") for direction in ("forward", "backward")]
        for name, gradient in (
            ("input_kernel", lambda cell: in_our_order(cell.input_linearity.weight.grad)),
            ("recurrent_kernel", lambda cell: in_our_order(cell.state_linearity.weight.grad)),
            ("bias", lambda cell: in_our_order(cell.state_linearity.bias.grad)),
            ("projection", lambda cell: cell.state_projection.weight.grad),
        ):
            gradients[f"layers.{index}.{name}"] = torch.stack([gradient(cell) for cell in cells])
    return gradients


@pytest.mark.parametrize("num_layers", [1, 3])
def test_fine_tuning_gradients_of_every_parameter_equal_allennlps(tmp_path, num_layers):
    bilm = write_bilm(tmp_path, num_layers, num_highway_layers=2).double()
    stock = load_stock(tmp_path, requires_grad=True).double()
    ids = batch_to_ids(SENTENCES)
    for activations in (bilm(ids).activations, stock(ids)["activations"]):
        loss = 0.0
        for layer, activation in enumerate(activations):
            weights = torch.linspace(-1.0, 1.0 + layer, activation.numel(), dtype=torch.float64).view_as(activation)
            loss = loss + (activation * weights).sum()
        loss.backward()
    expected = stock_gradients_by_our_name(stock, bilm.options)
    assert set(expected) == {name for name, _ in bilm.named_parameters()}
    for name, parameter in bilm.named_parameters():
        assert float(expected[name].abs().max()) > 1e-6, name
        torch.testing.assert_close(
            parameter.grad, expected[name], rtol=1e-9, atol=1e-9, msg=lambda text, n=name: f"{n}: {text}"
        )
