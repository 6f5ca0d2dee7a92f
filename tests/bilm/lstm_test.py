"""The oracle is a loop of plain torch operations over one sentence at a time; autograd gives its gradient."""

import copy
import pickle

import pytest
import torch

from elmo_tasks.bilm import lstm as lstm_module
from elmo_tasks.bilm import lstm_steps
from elmo_tasks.bilm.lstm import ClippedLstm, LstmState

# Four sentences, of 5, 3, 3 and 1 tokens.
BATCH_SIZES = [4, 3, 3, 1, 1]


@pytest.fixture(autouse=True, params=["one direction after the other", "both at once"])
def directions(request, monkeypatch):
    """As on a processor, and as on a GPU."""
    chosen = {"one direction after the other": [0, 1], "both at once": [slice(None)]}[request.param]
    monkeypatch.setattr(lstm_module, "_directions", lambda device: chosen)


def make_lstm(dtype=torch.float64, input_dim=3, cell_dim=5, projection_dim=4, cell_clip=0.4, projection_clip=0.2):
    torch.manual_seed(7)
    lstm = ClippedLstm(input_dim, cell_dim, projection_dim, cell_clip, projection_clip).to(dtype)
    with torch.no_grad():
        for parameter in lstm.parameters():
            parameter.normal_(0.0, 0.7)
    return lstm


def make_inputs(lstm, num_tokens=12, batch_size=4, seed=3):
    generator = torch.Generator().manual_seed(seed)
    dtype = lstm.projection.dtype
    _, projection_dim, cell_dim = lstm.projection.shape
    inputs = torch.randn(2, num_tokens, lstm.input_kernel.size(-1), dtype=dtype, generator=generator)
    hidden = 0.1 * torch.randn(2, batch_size, projection_dim, dtype=dtype, generator=generator)
    memory = 0.1 * torch.randn(2, batch_size, cell_dim, dtype=dtype, generator=generator)
    return inputs, LstmState(hidden, memory)


def packed_positions(batch_sizes, row):
    """Where the tokens of a sentence are."""
    starts = [sum(batch_sizes[:step]) for step in range(len(batch_sizes))]
    return [start + row for start, batch_size in zip(starts, batch_sizes) if row < batch_size]


def plain_lstm(lstm, inputs, batch_sizes, state):
    """One sentence, one direction, one step at a time, after the formula in the docstring of `ClippedLstm`."""

    def clip(tensor, bound):
        return tensor if bound is None else torch.clamp(tensor, -bound, bound)

    outputs = [[None] * sum(batch_sizes) for _ in range(2)]
    last_hidden, last_memory = ([[None] * batch_sizes[0] for _ in range(2)] for _ in range(2))
    for direction in range(2):
        for row in range(batch_sizes[0]):
            hidden, memory = state.hidden[direction, row], state.memory[direction, row]
            for position in packed_positions(batch_sizes, row):
                gates = lstm.input_kernel[direction] @ inputs[direction, position] + lstm.bias[direction]
                gates = gates + lstm.recurrent_kernel[direction] @ hidden
                i, j, f, o = gates.chunk(4)
                memory = torch.sigmoid(f + 1) * memory + torch.sigmoid(i) * torch.tanh(j)
                memory = clip(memory, lstm.cell_clip)
                hidden = clip(
                    lstm.projection[direction] @ (torch.sigmoid(o) * torch.tanh(memory)), lstm.projection_clip
                )
                outputs[direction][position] = hidden
            last_hidden[direction][row], last_memory[direction][row] = hidden, memory
    stacked = [torch.stack([torch.stack(rows) for rows in pair]) for pair in (outputs, last_hidden, last_memory)]
    return stacked[0], LstmState(stacked[1], stacked[2])


def assert_close(ours, theirs, tolerance=1e-12):
    torch.testing.assert_close(ours, theirs, rtol=0.0, atol=tolerance)


@pytest.mark.parametrize("clips", [(0.4, 0.2), (None, None), (0.4, None), (None, 0.2)])
def test_outputs_and_state_equal_those_of_a_plain_loop(clips):
    lstm = make_lstm(cell_clip=clips[0], projection_clip=clips[1])
    inputs, state = make_inputs(lstm)
    expected_outputs, expected_state = plain_lstm(lstm, inputs, BATCH_SIZES, state)
    with torch.no_grad():
        outputs, new_state = lstm(inputs, BATCH_SIZES, state)
    assert_close(outputs, expected_outputs)
    assert_close(new_state.hidden, expected_state.hidden)
    assert_close(new_state.memory, expected_state.memory)


def test_the_test_inputs_meet_both_clips():
    lstm = make_lstm()
    inputs, state = make_inputs(lstm)
    with torch.no_grad():
        outputs, new_state = lstm(inputs, BATCH_SIZES, state)
    for values, bound in ((outputs, 0.2), (new_state.memory, 0.4)):
        share_at_bound = (values.abs() == bound).double().mean()
        assert 0.1 < share_at_bound < 0.9


def test_no_state_means_a_state_of_zeros():
    lstm = make_lstm()
    inputs, _ = make_inputs(lstm)
    zeros = LstmState(torch.zeros(2, 4, 4, dtype=torch.float64), torch.zeros(2, 4, 5, dtype=torch.float64))
    with torch.no_grad():
        assert torch.equal(lstm(inputs, BATCH_SIZES)[0], lstm(inputs, BATCH_SIZES, zeros)[0])


def loss_of(outputs, state):
    """Weighs every number differently."""
    total = 0.0
    for number, tensor in enumerate((outputs, state.hidden, state.memory)):
        weights = torch.linspace(-1.0, 2.0 + number, tensor.numel(), dtype=tensor.dtype).view_as(tensor)
        total = total + (tensor * weights).sum()
    return total


@pytest.mark.parametrize("clips", [(0.4, 0.2), (None, None)])
@pytest.mark.parametrize("batch_sizes", [BATCH_SIZES, [2, 2, 2], [3]])
def test_gradients_equal_those_of_a_plain_loop(batch_sizes, clips):
    lstm = make_lstm(cell_clip=clips[0], projection_clip=clips[1])
    gradients = []
    for run in (lstm, lambda *arguments: plain_lstm(lstm, *arguments)):
        inputs, state = make_inputs(lstm, sum(batch_sizes), batch_sizes[0])
        wanted = [tensor.requires_grad_() for tensor in (inputs, *state)] + list(lstm.parameters())
        outputs, new_state = run(inputs, batch_sizes, LstmState(*wanted[1:3]))
        gradients.append(torch.autograd.grad(loss_of(outputs, new_state), wanted))
    for ours, theirs in zip(*gradients):
        assert float(theirs.abs().max()) > 1e-3
        assert_close(ours, theirs)


def test_gradient_on_the_bound_itself_passes_as_through_clamp():
    # One cell, one step: all gates but the candidate's are 0.5, and the memory is exactly 0.5 * tanh(1) = the bound.
    bound = float(0.5 * torch.tanh(torch.tensor(1.0, dtype=torch.float64)))
    for clip, expected in ((bound, 1.0), (bound * 0.999, 0.0)):
        lstm = ClippedLstm(1, 1, 1, cell_clip=clip).double()
        with torch.no_grad():
            for parameter in lstm.parameters():
                parameter.zero_()
            lstm.bias[:, 1] = 1.0
        inputs, state = torch.zeros(2, 1, 1, dtype=torch.float64), lstm.initial_state(1)
        _, new_state = lstm(inputs, [1], state)
        new_state.memory.sum().backward()
        through_candidate = 0.5 * (1.0 - (2 * bound) ** 2)
        assert lstm.bias.grad[0, 1].item() == pytest.approx(expected * through_candidate)


def test_only_wanted_gradients_are_computed():
    lstm = make_lstm()
    lstm.requires_grad_(False)
    inputs, state = make_inputs(lstm)
    inputs.requires_grad_()
    lstm(inputs, BATCH_SIZES, state)[0].sum().backward()
    assert inputs.grad is not None
    assert all(parameter.grad is None for parameter in lstm.parameters())


def test_gradients_can_be_taken_twice_from_a_retained_graph():
    lstm = make_lstm()
    inputs, state = make_inputs(lstm)
    loss = loss_of(*lstm(inputs, BATCH_SIZES, state))
    first = torch.autograd.grad(loss, list(lstm.parameters()), retain_graph=True)
    second = torch.autograd.grad(loss, list(lstm.parameters()))
    for one, other in zip(first, second):
        assert torch.equal(one, other)


def test_gradients_cross_from_one_call_to_the_next_through_the_state():
    lstm = make_lstm()
    inputs, state = make_inputs(lstm, num_tokens=8, batch_size=2)
    whole = torch.autograd.grad(loss_of(*lstm(inputs, [2] * 4, state)), list(lstm.parameters()))
    first_outputs, middle_state = lstm(inputs[:, :4], [2, 2], state)
    second_outputs, last_state = lstm(inputs[:, 4:], [2, 2], middle_state)
    loss = loss_of(torch.cat([first_outputs, second_outputs], dim=1), last_state)
    for one, other in zip(whole, torch.autograd.grad(loss, list(lstm.parameters()))):
        assert_close(one, other)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_rows_that_repeat_inputs_give_what_copies_of_the_inputs_give(dtype):
    lstm = make_lstm(dtype)
    inputs, state = make_inputs(lstm, num_tokens=3)
    rows = torch.tensor([[0, 1, 2, 0, 1, 1, 1, 2, 0, 0, 2, 1], [2, 2, 1, 0, 0, 0, 1, 2, 1, 2, 0, 1]])
    copies = torch.stack([inputs[0, rows[0]], inputs[1, rows[1]]])
    with torch.no_grad():
        repeated = lstm(inputs, BATCH_SIZES, state, rows=rows)
        copied = lstm(copies, BATCH_SIZES, state)
    assert_close(repeated[0], copied[0], 1e-6)
    assert_close(repeated[1].memory, copied[1].memory, 1e-6)
    repeated_gradient = torch.autograd.grad(loss_of(*lstm(inputs, BATCH_SIZES, state, rows=rows)), lstm.parameters())
    copied_gradient = torch.autograd.grad(loss_of(*lstm(copies, BATCH_SIZES, state)), lstm.parameters())
    for one, other in zip(repeated_gradient, copied_gradient):
        assert torch.equal(one, other)


@pytest.mark.parametrize("max_rows", [1, 4, 7])
@pytest.mark.parametrize("with_rows", [False, True])
def test_windows_over_long_input_change_nothing(monkeypatch, max_rows, with_rows):
    lstm = make_lstm()
    inputs, state = make_inputs(lstm)
    rows = torch.stack([torch.arange(12), torch.arange(11, -1, -1)]) if with_rows else None
    with torch.no_grad():
        expected, _ = lstm(inputs, BATCH_SIZES, state, rows=rows)
        monkeypatch.setattr(lstm_steps, "MAX_PROJECTED_BYTES", max_rows * 8 * 4 * 5)
        outputs, _ = lstm(inputs, BATCH_SIZES, state, rows=rows)
    assert_close(outputs, expected)


def test_reduced_precision_stays_near_and_returns_float32():
    lstm = make_lstm(torch.float32, 32, 64, 32, 3.0, 3.0)
    with torch.no_grad():
        for parameter in lstm.parameters():
            parameter.mul_(0.2)
    inputs, state = make_inputs(lstm)
    with torch.no_grad():
        exact, exact_state = lstm(inputs, BATCH_SIZES, state)
        rounded, rounded_state = lstm(inputs, BATCH_SIZES, state, dtype=torch.bfloat16)
    assert rounded.dtype == rounded_state.memory.dtype == torch.float32
    assert 0.0 < float((rounded - exact).abs().max()) < 0.02
    assert float((rounded_state.memory - exact_state.memory).abs().max()) < 0.02


def test_gradients_in_reduced_precision_stay_near_and_are_float32():
    """Rounded factors: within two hundredths of each gradient's length, and not equal."""
    gradients = []
    for dtype in (torch.float32, torch.bfloat16):
        lstm = make_lstm(
            torch.float32, cell_dim=64, projection_dim=32, input_dim=32, cell_clip=3.0, projection_clip=3.0
        )
        with torch.no_grad():
            for parameter in lstm.parameters():
                parameter.mul_(0.2)
        inputs, state = make_inputs(lstm)
        inputs.requires_grad_()
        outputs, _ = lstm(inputs, BATCH_SIZES, state, dtype=dtype)
        outputs.sin().sum().backward()
        gradients.append([inputs.grad, *(parameter.grad for parameter in lstm.parameters())])
    for exact, rounded in zip(*gradients):
        assert rounded.dtype == torch.float32
        assert 0 < (rounded - exact).norm() < 0.02 * exact.norm()


def test_changed_weights_change_the_outputs_whether_frozen_or_not():
    lstm = make_lstm(torch.float32)
    inputs, state = make_inputs(lstm)
    for requires_grad in (True, False):
        lstm.requires_grad_(requires_grad)
        with torch.no_grad():
            before, _ = lstm(inputs, BATCH_SIZES, state)
            lstm.recurrent_kernel.mul_(0.5)
            after, _ = lstm(inputs, BATCH_SIZES, state)
            expected, _ = plain_lstm(lstm, inputs, BATCH_SIZES, state)
        assert float((after - before).abs().max()) > 1e-3
        assert_close(after, expected, 1e-6)


def test_a_moving_average_written_to_data_is_seen():
    lstm = make_lstm(torch.float32)
    inputs, state = make_inputs(lstm)
    with torch.no_grad():
        lstm(inputs, BATCH_SIZES, state)
        lstm.recurrent_kernel.data.copy_(0.5 * lstm.recurrent_kernel.data)
        after, _ = lstm(inputs, BATCH_SIZES, state)
        assert_close(after, plain_lstm(lstm, inputs, BATCH_SIZES, state)[0], 1e-6)


def test_a_used_frozen_layer_can_be_copied_and_pickled():
    lstm = make_lstm(torch.float32)
    lstm.requires_grad_(False)
    inputs, state = make_inputs(lstm)
    expected, _ = lstm(inputs, BATCH_SIZES, state)
    for twin in (copy.deepcopy(lstm), pickle.loads(pickle.dumps(lstm))):
        assert torch.equal(twin(inputs, BATCH_SIZES, state)[0], expected)
    assert set(lstm.state_dict()) == {"input_kernel", "recurrent_kernel", "bias", "projection"}


def test_autocast_around_forward_and_backward_changes_no_gradient():
    lstm = make_lstm(torch.float32)
    gradients = []
    for enabled in (False, True):
        inputs, state = make_inputs(lstm)
        loss = loss_of(*lstm(inputs, BATCH_SIZES, state))
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=enabled):
            gradients.append(torch.autograd.grad(loss, list(lstm.parameters())))
    for one, other in zip(*gradients):
        assert torch.equal(one, other)


def test_initial_values_lie_within_tensorflows_bounds():
    lstm = ClippedLstm(6, 10, 4).requires_grad_(False)
    assert float(lstm.input_kernel.abs().max()) <= (6.0 / (6 + 4 + 40)) ** 0.5
    assert float(lstm.projection.abs().max()) <= (6.0 / (10 + 4)) ** 0.5
    assert float(lstm.bias.abs().max()) == 0.0
    assert float(lstm.input_kernel.std()) == pytest.approx((6.0 / 50 / 3) ** 0.5, rel=0.2)


def test_a_layer_that_was_made_without_memory_is_whole_once_its_weights_are_there():
    lstm = make_lstm(torch.float32)
    with torch.device("meta"):
        another = ClippedLstm(3, 5, 4, 0.4, 0.2)
    another.to_empty(device="cpu").load_state_dict(lstm.state_dict())
    inputs, state = make_inputs(lstm)
    assert torch.equal(another(inputs, BATCH_SIZES, state)[0], lstm(inputs, BATCH_SIZES, state)[0])
    assert list(another.buffers()) == []
