import pytest
import torch

from elmo_tasks.bilm import lstm_cell as lstm_cell_module
from elmo_tasks.bilm.lstm_cell import lstm_cell


@pytest.fixture(autouse=True)
def _on_the_processor(monkeypatch, compiled_lstm_cell):
    monkeypatch.setattr(lstm_cell_module, "compiled", lambda: compiled_lstm_cell)


@pytest.mark.parametrize("bound", [0.5, None])
def test_memory_and_cell_are_those_of_the_formula(bound):
    torch.manual_seed(0)
    gates, memory = 2.0 * torch.randn(2, 3, 4 * 5), torch.randn(2, 7, 5)[:, :3]
    i, j, f, o = gates.double().chunk(4, dim=-1)
    expected = torch.sigmoid(f) * memory + torch.sigmoid(i) * torch.tanh(j)
    if bound is not None:
        assert 0.2 < (expected.abs() > bound).double().mean() < 0.8
        expected = expected.clamp(-bound, bound)
    next_memory, cell = lstm_cell(gates, memory, bound)
    torch.testing.assert_close(next_memory, expected.float(), rtol=0, atol=1e-6)
    torch.testing.assert_close(cell, (torch.sigmoid(o) * torch.tanh(expected)).float(), rtol=0, atol=1e-6)


def test_gates_far_out_and_numbers_that_are_none_come_out_as_from_torch():
    gates = torch.tensor([[1e4, -1e4, float("nan")] * 4])
    memory = torch.ones(1, 3)
    next_memory, cell = lstm_cell(gates, memory, 3.0)
    assert next_memory[0, :2].tolist() == [2.0, 0.0]
    assert cell[0, :2].tolist() == pytest.approx([float(torch.tanh(torch.tensor(2.0))), 0.0])
    assert bool(next_memory[0, 2].isnan())
    assert bool(cell[0, 2].isnan())


def test_torch_takes_the_source(monkeypatch):
    """Of the words of it, before a GPU is needed."""
    monkeypatch.undo()
    lstm_cell_module.compiled.cache_clear()
    assert lstm_cell_module.compiled().kernel_name == "lstm_cell"
