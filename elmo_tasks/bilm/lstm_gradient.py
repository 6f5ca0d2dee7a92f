"""The gradient of the steps of one layer of the biLM, written by hand."""

from typing import Any, List, Optional, Sequence, Tuple

import torch
from torch.autograd import Function
from torch.autograd.function import once_differentiable

from elmo_tasks.bilm.lstm_steps import Clips, Step, StepProducts, clip, project_inputs, run_steps, tanh_
from elmo_tasks.bilm.products import Product, without_autocast

sigmoid_backward = torch.ops.aten.sigmoid_backward
tanh_backward = torch.ops.aten.tanh_backward


class LstmWithGradient(Function):
    """
    The steps of `lstm_steps` from inputs without `rows`, as an operation of autograd.

    The gradient goes back through time with two products per step, and then takes each weight's gradient in one
    product over all steps.
    """

    @staticmethod
    def forward(
        ctx: Any,
        inputs: torch.Tensor,
        input_kernel: torch.Tensor,
        recurrent_kernel: torch.Tensor,
        bias: torch.Tensor,
        projection: torch.Tensor,
        hidden: torch.Tensor,
        memory: torch.Tensor,
        batch_sizes: Sequence[int],
        clips: Clips,
        dtype: torch.dtype,
    ) -> Tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        products = StepProducts.of([input_kernel, recurrent_kernel, bias, projection], dtype)
        gates_from_inputs = project_inputs(inputs, None, batch_sizes, products.input)
        tape: List[Step] = []
        outputs, last_hidden, last_memory = run_steps(
            gates_from_inputs, hidden, memory, batch_sizes, products, clips, tape
        )
        ctx.batch_sizes, ctx.clips, ctx.dtype = batch_sizes, clips, dtype
        weights = (input_kernel, recurrent_kernel, projection)
        ctx.save_for_backward(inputs, *weights, hidden, memory, outputs, *(t for step in tape for t in step))
        return outputs, last_hidden, last_memory

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: torch.Tensor) -> Tuple[Optional[torch.Tensor], ...]:
        with without_autocast(gradients[0].device):
            return _go_back(ctx, *gradients)


def _go_back(
    ctx: Any, d_outputs: torch.Tensor, d_hidden: torch.Tensor, d_memory: torch.Tensor
) -> Tuple[Optional[torch.Tensor], ...]:
    inputs, input_kernel, recurrent_kernel, projection, hidden, memory, outputs, *taped = ctx.saved_tensors
    tape = [Step(*taped[index : index + 3]) for index in range(0, len(taped), 3)]
    sizes = list(ctx.batch_sizes)
    through_recurrent_kernel = Product(recurrent_kernel.transpose(-1, -2), dtype=ctx.dtype)
    through_projection = Product(projection.transpose(-1, -2), dtype=ctx.dtype)

    # Packed, for the products over all steps. Gates and outputs: before their functions and clips.
    d_gates = outputs.new_empty(*outputs.shape[:-1], input_kernel.size(-2))
    d_projected = torch.empty_like(outputs)
    cells = outputs.new_empty(*outputs.shape[:-1], projection.size(-1))
    outputs_at, d_outputs_at, d_gates_at, d_projected_at, cells_at = (
        tensor.split(sizes, dim=-2) for tensor in (outputs, d_outputs, d_gates, d_projected, cells)
    )

    # What the steps behind the present one ask of the outputs and memories of all sentences.
    d_hidden, d_memory = d_hidden.clone(), d_memory.clone()
    for step in reversed(range(len(sizes))):
        d_hidden_now, d_memory_now = d_hidden.narrow(-2, 0, sizes[step]), d_memory.narrow(-2, 0, sizes[step])
        gates, unclipped_memory, unclipped_output = tape[step]
        input_gate, candidate, forget_gate, output_gate = gates.chunk(4, dim=-1)
        earlier_memory = memory if step == 0 else clip(tape[step - 1].memory, ctx.clips.cell)
        earlier_memory = earlier_memory.narrow(-2, 0, sizes[step])
        squashed_memory = tanh_(clip(unclipped_memory, ctx.clips.cell).clone())
        torch.mul(squashed_memory, output_gate, out=cells_at[step])

        # (batch_size, projection_dim)
        torch.add(d_outputs_at[step], d_hidden_now, out=d_projected_at[step])
        _clip_gradient_(d_projected_at[step], unclipped_output, ctx.clips.projection)
        # (batch_size, cell_dim)
        d_cell = through_projection(d_projected_at[step]).to(memory.dtype)
        d_memory_now.add_(tanh_backward(d_cell * output_gate, squashed_memory))
        _clip_gradient_(d_memory_now, unclipped_memory, ctx.clips.cell)
        # (batch_size, 4 * cell_dim)
        torch.cat(
            [
                sigmoid_backward(d_memory_now * candidate, input_gate),
                tanh_backward(d_memory_now * input_gate, candidate),
                sigmoid_backward(d_memory_now * earlier_memory, forget_gate),
                sigmoid_backward(d_cell * squashed_memory, output_gate),
            ],
            dim=-1,
            out=d_gates_at[step],
        )
        d_memory_now.mul_(forget_gate)
        d_hidden_now.copy_(through_recurrent_kernel(d_gates_at[step]))

    earlier_outputs = torch.cat(
        [hidden, *(outputs_at[step - 1].narrow(-2, 0, sizes[step]) for step in range(1, len(sizes)))], dim=-2
    )
    wanted = ctx.needs_input_grad
    rounded_gates = d_gates.to(ctx.dtype)
    return (
        _multiply(rounded_gates, input_kernel) if wanted[0] else None,
        _multiply(rounded_gates.transpose(-1, -2), inputs) if wanted[1] else None,
        _multiply(rounded_gates.transpose(-1, -2), earlier_outputs) if wanted[2] else None,
        d_gates.sum(dim=-2) if wanted[3] else None,
        _multiply(d_projected.transpose(-1, -2).to(ctx.dtype), cells) if wanted[4] else None,
        d_hidden,
        d_memory,
        None,
        None,
        None,
    )


def _multiply(rounded: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    """A product in the precision of the first factor, as numbers in that of the second."""
    return torch.matmul(rounded, other.to(rounded.dtype)).to(other.dtype)


def _clip_gradient_(gradient: torch.Tensor, unclipped: torch.Tensor, bound: Optional[float]) -> None:
    """As torch has it for `clamp`: nothing passes outside of the bound, everything on it."""
    if bound is not None:
        gradient.masked_fill_(unclipped.abs() > bound, 0.0)
