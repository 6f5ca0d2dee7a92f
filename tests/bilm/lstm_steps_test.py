"""What the layer makes of the steps is tested in `lstm_test.py`, against a plain loop."""

import pytest
import torch

from elmo_tasks.bilm import lstm_steps
from elmo_tasks.bilm.lstm_steps import Clips, Step, StepProducts, clip, project_inputs, run_steps, take_rows
from elmo_tasks.bilm.products import Product

BATCH_SIZES = [4, 3, 3, 1, 1]
INPUT_DIM, CELL_DIM, PROJECTION_DIM = 3, 5, 4


def draw(*shape):
    return torch.randn(*shape, dtype=torch.float64)


@pytest.fixture
def weights():
    """Input kernel, recurrent kernel, bias and projection of both directions."""
    torch.manual_seed(7)
    return [
        draw(2, 4 * CELL_DIM, INPUT_DIM),
        draw(2, 4 * CELL_DIM, PROJECTION_DIM),
        draw(2, 4 * CELL_DIM),
        draw(2, PROJECTION_DIM, CELL_DIM),
    ]


def run_one(weights, inputs, state, direction, rows=None, tape=None):
    products = StepProducts.of([weight[direction] for weight in weights])
    gates = project_inputs(inputs[direction], None if rows is None else rows[direction], BATCH_SIZES, products.input)
    return run_steps(gates, *(tensor[direction] for tensor in state), BATCH_SIZES, products, Clips(0.4, 0.2), tape)


@pytest.mark.parametrize("rows", [None, torch.tensor([[0, 1, 2] * 4, [2, 0, 1] * 4])])
def test_both_directions_in_one_run_give_what_two_runs_give(weights, rows):
    """A GPU runs both directions at once; the same code takes them so on a processor."""
    inputs = draw(2, 12 if rows is None else 3, INPUT_DIM)
    state = (0.1 * draw(2, 4, PROJECTION_DIM), 0.1 * draw(2, 4, CELL_DIM))
    together = run_one(weights, inputs, state, slice(None), rows)
    one_by_one = [run_one(weights, inputs, state, direction, rows) for direction in range(2)]
    for ours, theirs in zip(together, zip(*one_by_one)):
        torch.testing.assert_close(ours, torch.stack(theirs), rtol=0, atol=1e-12)


def test_the_next_steps_have_less_room_on_a_processor_than_the_distinct_inputs(weights, monkeypatch):
    """Four rows of the gates, of 8 * 4 * 5 bytes each, at a time."""
    rows_of_products = []

    class RecordingProduct(Product):
        def __call__(self, inputs, addend=None):
            rows_of_products.append(len(inputs))
            return super().__call__(inputs, addend)

    product = RecordingProduct(weights[0][0], weights[2][0])
    inputs = draw(12, INPUT_DIM)
    expected = torch.cat(list(project_inputs(inputs, None, BATCH_SIZES, product)))
    monkeypatch.setattr(lstm_steps, "MAX_WINDOW_BYTES_ON_CPU", 4 * 8 * 4 * CELL_DIM)
    in_windows = torch.cat(list(project_inputs(inputs, None, BATCH_SIZES, product)))
    at_once = torch.cat(list(project_inputs(inputs, torch.arange(12), BATCH_SIZES, product)))
    assert rows_of_products == [12, 4, 3, 4, 1, 12]
    for found in (in_windows, at_once):
        torch.testing.assert_close(found, expected, rtol=0, atol=1e-12)


def test_the_tape_holds_each_step_before_the_clips(weights):
    inputs, state = draw(2, 12, INPUT_DIM), (draw(2, 4, PROJECTION_DIM), draw(2, 4, CELL_DIM))
    tape: list[Step] = []
    outputs, _, last_memory = run_one(weights, inputs, state, 0, tape=tape)
    assert [len(step.gates) for step in tape] == BATCH_SIZES
    assert torch.equal(torch.cat([clip(step.output, 0.2) for step in tape]), outputs)
    assert torch.equal(clip(tape[-1].memory, 0.4)[0], last_memory[0])
    assert torch.cat([step.output for step in tape]).abs().max() > 0.2
    for step in tape:
        _, candidate, *others = step.gates.chunk(4, dim=-1)
        assert candidate.abs().max() <= 1
        assert candidate.min() < 0
        assert all(gate.min() >= 0 and gate.max() <= 1 for gate in others)


def test_rows_are_taken_from_the_vectors_of_their_direction():
    vectors = torch.tensor([[[1.0], [2.0]], [[3.0], [4.0]]])
    rows = torch.tensor([[0, 0, 1], [1, 0, 1]])
    assert take_rows(vectors, rows).tolist() == [[[1.0], [1.0], [2.0]], [[4.0], [3.0], [4.0]]]
    assert take_rows(vectors[1], rows[1]).tolist() == [[4.0], [3.0], [4.0]]


def test_a_bound_of_none_leaves_numbers_as_they_are():
    values, out = torch.tensor([-2.0, 0.5, 3.0]), torch.zeros(3)
    assert clip(values, 1.0).tolist() == [-1.0, 0.5, 1.0]
    assert clip(values, None) is values
    assert clip(values, None, out) is out
    assert out.tolist() == values.tolist()
