"""What the biLM promises of itself; that its numbers are ELMo's is shown in `tests/parity`."""

import copy
import pickle
from pathlib import Path

import pytest
import torch

from elmo_tasks.bilm import BiLm, BiLmOptions, LstmState, encode_sentences, load_weights, lstm_steps
from elmo_tasks.bilm import network as network_module

FIXTURE = Path(__file__).parents[2] / "fixtures" / "bilm"

SENTENCES = [
    ["A", "small", "boat", "left", "the", "harbour", "at", "dawn", "."],
    ["Nobody", "waved", "."],
    [],
    ["the", "harbour", "slept"],
    ["fog"],
]


def load_fixture(precision="float32"):
    bilm = BiLm(BiLmOptions.from_file(str(FIXTURE / "options.json")), precision)
    load_weights(bilm, str(FIXTURE / "weights.hdf5"))
    return bilm.requires_grad_(False)


@pytest.fixture(scope="module")
def bilm():
    return load_fixture()


@pytest.fixture(scope="module")
def batch(bilm):
    return bilm(encode_sentences(SENTENCES))


def assert_close(one, other, tolerance=5e-6):
    torch.testing.assert_close(one, other, rtol=0, atol=tolerance)


def test_outputs_have_the_promised_shapes_and_zeros_at_padding(batch):
    assert batch.token_vectors.shape == (5, 11, 32)
    assert [layer.shape for layer in batch.contextual] == [(5, 11, 64)] * 2
    assert batch.mask.sum(dim=1).tolist() == [11, 5, 2, 5, 3]
    assert batch.mask.dtype == torch.bool
    for layer in (batch.token_vectors, *batch.contextual):
        assert torch.equal((layer != 0).any(dim=-1), batch.mask)


def test_a_word_that_spells_padding_is_a_word(bilm):
    output = bilm(encode_sentences([["<PAD>"], ["fog", "<PAD>", ""]]))
    assert output.mask.tolist() == [[True] * 3 + [False] * 2, [True] * 5]
    assert float(output.token_vectors[0, 1].abs().max()) > 0.1


def test_activations_are_the_token_vectors_twice_and_then_different_layers(bilm, batch):
    activations = batch.activations
    assert len(activations) == bilm.options.num_representations == 3
    assert torch.equal(activations[0], torch.cat([batch.token_vectors, batch.token_vectors], dim=-1))
    for one, other in ((0, 1), (0, 2), (1, 2)):
        assert float((activations[one] - activations[other]).abs().max()) > 0.1


def test_a_sentence_does_not_depend_on_those_beside_it(bilm, batch):
    for row, sentence in enumerate(SENTENCES):
        alone = bilm(encode_sentences([sentence]))
        for in_batch, single in zip(batch.activations, alone.activations):
            assert_close(in_batch[row, : len(sentence) + 2], single[0])
        assert_close(batch.state.memory[:, :, row], alone.state.memory[:, :, 0])


def test_the_order_of_sentences_does_not_matter(bilm, batch):
    order = [3, 0, 4, 2, 1]
    shuffled = bilm(encode_sentences([SENTENCES[row] for row in order]))
    for one, other in zip(batch.activations, shuffled.activations):
        assert_close(one[order], other)


def test_the_same_batch_twice_gives_the_same_numbers(bilm, batch):
    again = bilm(encode_sentences(SENTENCES))
    for one, other in zip(batch.activations, again.activations):
        assert torch.equal(one, other)


def test_forward_half_knows_only_the_words_before_and_backward_half_only_those_behind(bilm):
    one = bilm(encode_sentences([["the", "old", "boat", "sank"]]))
    other = bilm(encode_sentences([["the", "old", "ship", "sank"]]))
    changed = 3
    for left, right in zip(one.contextual, other.contextual):
        differs = (left - right)[0].abs() > 1e-6
        assert differs[:, :32].any(dim=1).tolist() == [position >= changed for position in range(6)]
        assert differs[:, 32:].any(dim=1).tolist() == [position <= changed for position in range(6)]


def test_only_empty_sentences_have_only_their_boundaries(bilm):
    expected = bilm(encode_sentences([[], ["fog"]]))
    # (batch_size, 0, 50), and (batch_size, 0) as AllenNLP pads a batch in which no sentence has a token.
    for character_ids in (encode_sentences([[], []]), torch.zeros(2, 0, dtype=torch.int64)):
        output = bilm(character_ids)
        assert output.mask.tolist() == [[True, True]] * 2
        for layer, expected_layer in zip(output.activations, expected.activations):
            assert_close(layer, expected_layer[:1, :2].expand(2, -1, -1))
    padded = bilm(torch.zeros(2, 3, 50, dtype=torch.int64))
    for layer, expected_layer in zip(padded.activations, expected.activations):
        assert_close(layer[:, :2], expected_layer[:1, :2].expand(2, -1, -1))
        assert float(layer[:, 2:].abs().max()) == 0.0


def test_no_sentences_give_no_rows(bilm):
    output = bilm(torch.zeros(0, 4, 50, dtype=torch.int64))
    assert [layer.shape for layer in output.activations] == [(0, 6, 64)] * 3
    assert output.state.hidden.shape == (2, 2, 0, 32)


@pytest.mark.parametrize("tokens_per_run", [1, 7, 12])
def test_many_small_runs_change_nothing(bilm, batch, monkeypatch, tokens_per_run):
    state = LstmState(0.1 * batch.state.hidden, 0.1 * batch.state.memory)
    expected = bilm(encode_sentences(SENTENCES), state)
    monkeypatch.setattr(network_module, "TOKENS_PER_RUN", tokens_per_run)
    output = bilm(encode_sentences(SENTENCES), state)
    for one, other in zip(expected.activations, output.activations):
        assert_close(one, other)
    for one, other in zip(expected.state, output.state):
        assert_close(one, other)


def test_runs_hold_at_most_the_tokens_they_may_and_every_sentence_once(monkeypatch):
    monkeypatch.setattr(network_module, "TOKENS_PER_RUN", 10)
    lengths = torch.tensor([3, 12, 2, 5, 4, 2])
    runs = list(network_module._runs(lengths, 12))
    assert [run.sentences.tolist() for run in runs] == [[1], [3, 4], [0, 2, 5]]
    assert [run.batch_sizes for run in runs] == [[1] * 12, [2, 2, 2, 2, 1], [3, 3, 1]]
    # Sentence 3 has tokens 0 to 4 at 36 to 40, sentence 4 its 0 to 3 at 48 to 51; backwards, from their ends.
    assert runs[1].positions[0].tolist() == [36, 48, 37, 49, 38, 50, 39, 51, 40]
    assert runs[1].positions[1].tolist() == [40, 51, 39, 50, 38, 49, 37, 48, 36]


def test_a_long_line_is_projected_in_windows(bilm, monkeypatch):
    sentence = [f"word{number}" for number in range(300)]
    expected = bilm(encode_sentences([sentence]))
    rows_per_product = []
    product = lstm_steps.Product

    class RecordingProduct(product):
        def __call__(self, inputs, addend=None):
            rows_per_product.append(len(inputs))
            return super().__call__(inputs, addend)

    monkeypatch.setattr(lstm_steps, "Product", RecordingProduct)
    monkeypatch.setattr(lstm_steps, "MAX_PROJECTED_BYTES", 50 * 256 * 4)
    output = load_fixture()(encode_sentences([sentence]))
    assert max(rows_per_product) == 50
    for one, other in zip(expected.activations, output.activations):
        assert_close(one, other)


def test_two_halves_with_the_state_between_are_the_forward_half_of_the_whole(bilm):
    """Boundaries stand around each half, so the state goes through them: here through the layer itself."""
    layer = bilm.layers[0]
    inputs = torch.randn(2, 6, 32, generator=torch.Generator().manual_seed(1))
    whole, whole_state = layer(inputs, [1] * 6)
    first, state = layer(inputs[:, :2], [1] * 2)
    second, state = layer(inputs[:, 2:], [1] * 4, state)
    assert_close(torch.cat([first, second], dim=1), whole)
    assert_close(state.memory, whole_state.memory)


def test_state_goes_on_row_by_row_and_idle_rows_keep_theirs(bilm):
    first = bilm(encode_sentences(SENTENCES[:3]))
    smaller = bilm(encode_sentences(SENTENCES[3:]), first.state)
    assert smaller.state.hidden.shape == (2, 2, 3, 32)
    assert torch.equal(smaller.state.memory[:, :, 2], first.state.memory[:, :, 2])
    larger = bilm(encode_sentences(SENTENCES), first.state)
    from_zero = bilm(encode_sentences(SENTENCES[3:]))
    for with_state, without in zip(larger.contextual, from_zero.contextual):
        assert_close(with_state[3:, :5], without)
    alone = bilm(encode_sentences(SENTENCES[1:2]), first.state.select_rows(slice(1, 2)))
    for together, single in zip(larger.contextual, alone.contextual):
        assert_close(together[1, :5], single[0])
        assert float((single[0] - bilm(encode_sentences(SENTENCES[1:2])).contextual[0][0]).abs().max()) > 1e-2


def test_a_state_handed_in_is_not_changed(bilm, batch):
    before = LstmState(batch.state.hidden.clone(), batch.state.memory.clone())
    bilm(encode_sentences(SENTENCES), batch.state)
    assert torch.equal(before.hidden, batch.state.hidden)
    assert torch.equal(before.memory, batch.state.memory)


def test_gradient_reaches_through_an_undetached_state_and_no_further_than_a_detached_one(bilm):
    bilm = copy.deepcopy(bilm).requires_grad_(True)
    ids = encode_sentences([["fog"]])
    for detach in (False, True):
        state = bilm(encode_sentences([["rain"]])).state
        hidden = state.hidden
        hidden.retain_grad()
        bilm(ids, state.detach() if detach else state).contextual[0].sum().backward()
        assert (hidden.grad is None) == detach


def test_training_and_frozen_weights_give_the_same_vectors(bilm, batch):
    trained = copy.deepcopy(bilm).requires_grad_(True)
    output = trained(encode_sentences(SENTENCES))
    assert all(layer.requires_grad for layer in output.activations)
    for one, other in zip(batch.activations, output.activations):
        assert_close(one, other.detach())


def test_every_parameter_gets_a_gradient(bilm):
    trained = copy.deepcopy(bilm).requires_grad_(True)
    output = trained(encode_sentences(SENTENCES))
    sum((layer**2).sum() for layer in output.activations).backward()
    for name, parameter in trained.named_parameters():
        assert float(parameter.grad.abs().max()) > 0.0, name


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_autocast_leaves_the_vectors_alone(bilm, batch, dtype):
    for requires_grad in (False, True):
        twin = copy.deepcopy(bilm).requires_grad_(requires_grad)
        with torch.autocast("cpu", dtype=dtype):
            output = twin(encode_sentences(SENTENCES))
        plain = twin(encode_sentences(SENTENCES))
        for one, other, expected in zip(output.activations, plain.activations, batch.activations):
            assert one.dtype == torch.float32
            assert_close(one.detach(), expected)
            assert_close(other.detach(), expected)


def test_a_bilm_in_double_precision_computes_in_it(bilm):
    """Equal to itself in another batch far more closely than with products in float32."""
    double = copy.deepcopy(bilm).double()
    outputs = []
    for requires_grad in (False, True):
        double.requires_grad_(requires_grad)
        outputs.append(double(encode_sentences(SENTENCES)))
    alone = double(encode_sentences(SENTENCES[:1]))
    for frozen, trained, single in zip(outputs[0].activations, outputs[1].activations, alone.activations):
        assert frozen.dtype == torch.float64
        assert_close(frozen, trained.detach(), 1e-12)
        assert_close(frozen[0], single[0].detach(), 1e-12)


def test_reduced_precision_is_near_and_returns_float32(batch):
    output = load_fixture("bfloat16")(encode_sentences(SENTENCES))
    assert output.token_vectors.dtype == output.state.memory.dtype == torch.float32
    for rounded, exact in zip(output.activations, batch.activations):
        difference = (rounded - exact)[batch.mask]
        scale = exact[batch.mask].std()
        assert 0.0 < float(difference.abs().mean() / scale) < 0.02


def test_reduced_precision_cannot_be_trained():
    bilm = load_fixture("bfloat16").requires_grad_(True)
    with pytest.raises(ValueError, match="`precision` must be float32 to train the biLM, but is bfloat16"):
        bilm(encode_sentences(SENTENCES))
    with torch.no_grad():
        bilm(encode_sentences(SENTENCES))


def test_an_unknown_precision_is_refused():
    with pytest.raises(ValueError, match=r"`precision` must be one of .* but is 'float8'"):
        load_fixture("float8")


@pytest.mark.parametrize(
    ("character_ids", "message"),
    [
        (
            torch.zeros(2, 3, 40, dtype=torch.int64),
            r"must have shape \(batch_size, num_tokens, 50\), but has \(2, 3, 40\)",
        ),
        (torch.zeros(2, 3, dtype=torch.int64), r"but has \(2, 3\)"),
        (torch.full((1, 1, 50), 1055), "must be between 0 and 261, but are between 1055 and 1055"),
        (torch.full((1, 1, 50), -1), "must be between 0 and 261"),
        (torch.full((1, 1, 50), 5.0), "must be integers, but are torch.float32"),
    ],
)
def test_wrong_character_ids_are_refused(bilm, character_ids, message):
    with pytest.raises(ValueError, match=message):
        bilm(character_ids)


def test_the_state_of_another_bilm_is_refused(bilm):
    other = BiLm(
        BiLmOptions.from_dict({**bilm.options.to_dict(), "lstm": {**bilm.options.to_dict()["lstm"], "dim": 8}})
    )
    state = other(encode_sentences([["fog"]])).state
    with pytest.raises(ValueError, match=r"`state.memory` must have shape \(2, 2, 'any', 64\), but has \(2, 2, 1, 8\)"):
        bilm(encode_sentences([["fog"]]), state)


def test_a_used_bilm_can_be_copied_and_pickled(bilm, batch):
    for twin in (copy.deepcopy(bilm), pickle.loads(pickle.dumps(bilm))):
        for one, other in zip(twin(encode_sentences(SENTENCES)).activations, batch.activations):
            assert torch.equal(one, other)


@pytest.mark.gpu
def test_a_gpu_gives_the_same_vectors_and_gradients(bilm, batch):
    outputs, gradients = [], []
    for device in ("cpu", "cuda"):
        twin = copy.deepcopy(bilm).requires_grad_(True).to(device)
        with torch.no_grad():
            outputs.append([layer.cpu() for layer in twin(encode_sentences(SENTENCES).to(device)).activations])
        layers = twin(encode_sentences(SENTENCES).to(device)).activations
        sum((layer**2).sum() for layer in layers).backward()
        gradients.append([parameter.grad.cpu() for parameter in twin.parameters()])
    for one, other in zip(*outputs):
        assert_close(one, other, 1e-5)
    for one, other in zip(*gradients):
        assert_close(one, other, 1e-4 * float(one.abs().max()))
