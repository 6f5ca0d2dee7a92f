"""
The steps of one layer of the biLM: at each, one token of every sentence that still runs.

Tensors are of one direction, or of both with a leading dimension of 2: sentences and tokens are the dimension before
the last.
"""

from typing import Iterator, List, NamedTuple, Optional, Sequence, Tuple

import torch

from elmo_tasks.bilm import lstm_cell
from elmo_tasks.bilm.products import Product

# What the inputs contribute to the gates is computed for many steps in one product, as many as fit in this. There may
# be two of these beside each other: of distinct inputs, and of the tokens of the next steps.
MAX_PROJECTED_BYTES = 256 * 1024 * 1024
# On a processor, tokens of the next steps have less room: the C library gives larger pieces of memory back after each
# use, and the system has to clear them each time, which takes more than the larger product saves.
MAX_WINDOW_BYTES_ON_CPU = 16 * 1024 * 1024


class StepProducts(NamedTuple):
    """The three products of a step: into the gates, from inputs and from outputs, and from the cells to the outputs."""

    input: Product
    recurrent: Product
    projection: Product

    @classmethod
    def of(cls, weights: Sequence[torch.Tensor], dtype: Optional[torch.dtype] = None) -> "StepProducts":
        """Of the input kernel, the recurrent kernel, the bias and the projection; `dtype` as in `Product`."""
        input_kernel, recurrent_kernel, bias, projection = weights
        return cls(
            Product(input_kernel, bias, dtype), Product(recurrent_kernel, dtype=dtype), Product(projection, dtype=dtype)
        )


def project_inputs(
    inputs: torch.Tensor, rows: Optional[torch.Tensor], batch_sizes: Sequence[int], product: Product
) -> Iterator[torch.Tensor]:
    """
    # Parameters

    inputs : `torch.Tensor`
        Packed, `(num_tokens, input_dim)`; with `rows`, `(num_inputs, input_dim)`.
    rows : `Optional[torch.Tensor]`
        int64 `(num_tokens,)`: which of the inputs each token reads.
    batch_sizes : `Sequence[int]`
        Number of sentences at each step.
    product : `Product`
        From the inputs to the gates.

    # Returns

    `Iterator[torch.Tensor]`
        For each step, what the inputs contribute to the gates, `(batch_sizes[step], 4 * cell_dim)`.
    """
    num_directions = inputs.size(0) if inputs.dim() == 3 else 1
    num_bytes_per_row = num_directions * inputs.element_size() * product.output_dim
    is_projected_at_once = rows is not None and inputs.size(-2) * num_bytes_per_row <= MAX_PROJECTED_BYTES
    if is_projected_at_once:
        inputs = product(inputs)
    is_on_cpu = inputs.device.type == "cpu"
    max_bytes = min(MAX_PROJECTED_BYTES, MAX_WINDOW_BYTES_ON_CPU) if is_on_cpu else MAX_PROJECTED_BYTES
    # A processor takes the rows of a step when it comes to them, so that they stay in its cache.
    max_rows = 1 if is_projected_at_once and is_on_cpu else max_bytes // num_bytes_per_row
    windows = _windows(batch_sizes, max_rows)
    start = 0
    for window in windows:
        stop = start + sum(window)
        part = inputs[..., start:stop, :] if rows is None else take_rows(inputs, rows[..., start:stop])
        yield from (part if is_projected_at_once else product(part)).split(window, dim=-2)
        start = stop


def _windows(batch_sizes: Sequence[int], max_rows: int) -> Iterator[List[int]]:
    """Splits the steps into runs of at most `max_rows` tokens; a step is never split."""
    window: List[int] = []
    num_rows = 0
    for batch_size in batch_sizes:
        if window and num_rows + batch_size > max_rows:
            yield window
            window, num_rows = [], 0
        window.append(batch_size)
        num_rows += batch_size
    yield window


def take_rows(vectors: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
    """`vectors[rows]`, with two directions each of its own vectors."""
    if vectors.dim() == 2:
        return vectors.index_select(0, rows)
    return torch.stack([part.index_select(0, part_rows) for part, part_rows in zip(vectors, rows)])


class Clips(NamedTuple):
    """Bounds of memory cells and outputs; `None`: none."""

    cell: Optional[float]
    projection: Optional[float]


class Step(NamedTuple):
    """What the gradient of one step needs: the gates i, j, f, o after their functions, the rest before clipping."""

    gates: torch.Tensor
    memory: torch.Tensor
    output: torch.Tensor


def run_steps(
    gates_from_inputs: Iterator[torch.Tensor],
    hidden: torch.Tensor,
    memory: torch.Tensor,
    batch_sizes: Sequence[int],
    products: StepProducts,
    clips: Clips,
    tape: Optional[List[Step]] = None,
) -> Tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """
    # Parameters

    gates_from_inputs : `Iterator[torch.Tensor]`
        Of `project_inputs`.
    hidden, memory : `torch.Tensor`
        `(batch_sizes[0], projection_dim)` and `(batch_sizes[0], cell_dim)`, the state before the first step.
    batch_sizes : `Sequence[int]`
        Number of sentences at each step, never rising.
    products : `StepProducts`
    clips : `Clips`
    tape : `Optional[List[Step]]`, optional (default = `None`)
        Each step is added to it, for the gradient.

    # Returns

    `Tuple[torch.Tensor, torch.Tensor, torch.Tensor]`
        The outputs, packed, `(num_tokens, projection_dim)`, and as `hidden` and `memory` the state after the last token
        of each sentence.
    """
    outputs = hidden.new_empty(*hidden.shape[:-2], sum(batch_sizes), hidden.size(-1))
    # The last outputs and memories of the sentences that have ended, the shortest first.
    ended: List[Tuple[torch.Tensor, torch.Tensor]] = []
    for output, gates_from_input in zip(outputs.split(list(batch_sizes), dim=-2), gates_from_inputs):
        num_running = output.size(-2)
        if num_running < hidden.size(-2):
            ended.append((hidden[..., num_running:, :], memory[..., num_running:, :]))
            hidden, memory = hidden[..., :num_running, :], memory[..., :num_running, :]
        # (num_running, 4 * cell_dim)
        gates = products.recurrent(hidden, gates_from_input).to(memory.dtype)
        if gates.is_cuda and tape is None and lstm_cell.IS_AVAILABLE:
            memory, cells = lstm_cell.lstm_cell(gates, memory, clips.cell)
        else:
            input_gate, candidate, forget_gate, output_gate = gates.chunk(4, dim=-1)
            input_gate.sigmoid_()
            tanh_(candidate)
            forget_gate.sigmoid_()
            output_gate.sigmoid_()
            # (num_running, cell_dim)
            unclipped_memory = (forget_gate * memory).addcmul_(input_gate, candidate)
            memory = clip(unclipped_memory, clips.cell)
            cells = tanh_(memory.clone()).mul_(output_gate)
        # (num_running, projection_dim)
        unclipped_output = products.projection(cells).to(memory.dtype)
        hidden = clip(unclipped_output, clips.projection, output)
        if tape is not None:
            tape.append(Step(gates, unclipped_memory, unclipped_output))
    ended.append((hidden, memory))
    last_hidden, last_memory = (torch.cat(tensors, dim=-2) for tensors in zip(*reversed(ended)))
    return outputs, last_hidden, last_memory


def tanh_(tensor: torch.Tensor) -> torch.Tensor:
    """In place: 2 sigmoid(2 x) - 1, since on a processor torch's sigmoid takes a sixth of the time of its tanh."""
    if tensor.is_cuda:
        return tensor.tanh_()
    return tensor.mul_(2.0).sigmoid_().sub_(0.5).mul_(2.0)


def clip(tensor: torch.Tensor, bound: Optional[float], out: Optional[torch.Tensor] = None) -> torch.Tensor:
    """The tensor between `-bound` and `bound`, in `out` where it is given; `None`: as it is."""
    if bound is None:
        return tensor if out is None else out.copy_(tensor)
    return torch.clamp(tensor, -bound, bound, out=out)
