"""The gradient of a whole layer is tested in `lstm_test.py`, against that of a plain loop."""

import pytest
import torch

from elmo_tasks.bilm.lstm_gradient import LstmWithGradient
from elmo_tasks.bilm.lstm_steps import Clips

BATCH_SIZES = [4, 3, 3, 1, 1]


def arguments(size):
    """Inputs, input kernel, recurrent kernel, bias, projection, outputs and memories before, of both directions."""
    torch.manual_seed(7)
    shapes = [(12, size), (4 * size, size), (4 * size, size), (4 * size,), (size, size), (4, size), (4, size)]
    return [0.7 * torch.randn(2, *shape, dtype=torch.float64) for shape in shapes]


def run(clips, tensors):
    return LstmWithGradient.apply(*tensors, BATCH_SIZES, clips, torch.float64)


@pytest.mark.parametrize("direction", [0, slice(None)])
def test_gradients_pass_gradcheck(direction):
    tensors = [tensor[direction].requires_grad_() for tensor in arguments(2)]
    assert torch.autograd.gradcheck(lambda *given: run(Clips(None, None), given), tensors)


def test_both_directions_in_one_run_have_the_gradients_of_two_runs():
    """A GPU runs both directions at once; the same code takes them so on a processor."""
    tensors = [tensor.requires_grad_() for tensor in arguments(4)]
    clips = Clips(0.4, 0.2)
    together = run(clips, tensors)
    apart = [torch.stack(results) for results in zip(*(run(clips, [t[d] for t in tensors]) for d in range(2)))]
    weights = [torch.linspace(-1, 2, result.numel(), dtype=torch.float64).view_as(result) for result in together]
    ours = torch.autograd.grad(sum((r * w).sum() for r, w in zip(together, weights)), tensors)
    theirs = torch.autograd.grad(sum((r * w).sum() for r, w in zip(apart, weights)), tensors)
    for one, other in zip(ours, theirs):
        assert other.abs().max() > 1e-3
        torch.testing.assert_close(one, other, rtol=0, atol=1e-12)
