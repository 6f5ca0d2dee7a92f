"""
One layer of the biLM: an LSTM with a clipped memory cell and a projected, clipped output, in both directions.

Tokens come packed, as in torch's `PackedSequence`: sentences sorted by length, the longest first; all first tokens,
then all second tokens, and so on. At each step only the sentences that are still running take part. The backward
direction reads each sentence from its end, so that both directions run the same steps.
"""

from typing import Any, Iterator, List, NamedTuple, Optional, Sequence, Tuple, Union

import torch
from torch import nn
from torch.autograd import Function
from torch.autograd.function import once_differentiable

from elmo_tasks.bilm import lstm_cell
from elmo_tasks.bilm.products import FrozenCache, Product, wants_gradient, without_autocast

sigmoid_backward = torch.ops.aten.sigmoid_backward
tanh_backward = torch.ops.aten.tanh_backward

# What the inputs contribute to the gates is computed for many steps in one product, as many as fit in this. There may
# be two of these beside each other: of distinct inputs, and of the tokens of the next steps.
MAX_PROJECTED_BYTES = 256 * 1024 * 1024


class LstmState(NamedTuple):
    """
    What an LSTM carries from one token to the next.

    # Parameters

    hidden : `torch.Tensor`
        `(2, batch_size, projection_dim)`, the last output of either direction, without the residual.
    memory : `torch.Tensor`
        `(2, batch_size, cell_dim)`, the memory cell after clipping.

    The state of a whole biLM has a further dimension `num_layers` in front.
    """

    hidden: torch.Tensor
    memory: torch.Tensor

    def detach(self) -> "LstmState":
        """The same numbers, without the history of how they came about."""
        return LstmState(self.hidden.detach(), self.memory.detach())

    def select_rows(self, rows: Union[torch.Tensor, slice]) -> "LstmState":
        """The state of these sentences of the batch."""
        return LstmState(self.hidden[..., rows, :], self.memory[..., rows, :])


class ClippedLstm(nn.Module):
    """
    Both directions of one layer.

    With the gates i, j, f, o = inputs @ input_kernel.T + outputs[t-1] @ recurrent_kernel.T + bias, one step is

        memory[t]  = clip(sigmoid(f + 1) * memory[t-1] + sigmoid(i) * tanh(j), cell_clip)
        outputs[t] = clip((sigmoid(o) * tanh(memory[t])) @ projection.T, projection_clip)

    # Parameters

    input_dim, cell_dim, projection_dim : `int`
    cell_clip, projection_clip : `Optional[float]`
        `None`: no bound.

    # Source

    TensorFlow's `LSTMCell` with `num_proj`, as bilm-tf uses it: the order i, j, f, o of the gates, the one that is
    added to the forget gate, and the initial values (Glorot's uniform ones) are TensorFlow's.
    """

    def __init__(
        self,
        input_dim: int,
        cell_dim: int,
        projection_dim: int,
        cell_clip: Optional[float] = None,
        projection_clip: Optional[float] = None,
    ) -> None:
        super().__init__()
        self.cell_clip = cell_clip
        self.projection_clip = projection_clip
        # The leading dimension holds the forward and the backward direction.
        self.input_kernel = nn.Parameter(torch.empty(2, 4 * cell_dim, input_dim))
        self.recurrent_kernel = nn.Parameter(torch.empty(2, 4 * cell_dim, projection_dim))
        self.bias = nn.Parameter(torch.zeros(2, 4 * cell_dim))
        self.projection = nn.Parameter(torch.empty(2, projection_dim, cell_dim))
        forget_offset = torch.zeros(4, cell_dim)
        forget_offset[2] = 1.0
        self.forget_offset: torch.Tensor
        self.register_buffer("forget_offset", forget_offset.view(-1), persistent=False)
        self._products: FrozenCache[List[_Products]] = FrozenCache()
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws initial values. TensorFlow holds both kernels in one matrix, whose sizes count for both."""
        _, num_gates, input_dim = self.input_kernel.shape
        _, projection_dim, cell_dim = self.projection.shape
        kernel_bound = (6.0 / (input_dim + projection_dim + num_gates)) ** 0.5
        projection_bound = (6.0 / (cell_dim + projection_dim)) ** 0.5
        nn.init.uniform_(self.input_kernel, -kernel_bound, kernel_bound)
        nn.init.uniform_(self.recurrent_kernel, -kernel_bound, kernel_bound)
        nn.init.uniform_(self.projection, -projection_bound, projection_bound)
        nn.init.zeros_(self.bias)

    def initial_state(self, batch_size: int) -> LstmState:
        """A state of zeros."""
        _, projection_dim, cell_dim = self.projection.shape
        return LstmState(
            self.projection.new_zeros(2, batch_size, projection_dim),
            self.projection.new_zeros(2, batch_size, cell_dim),
        )

    def forward(
        self,
        inputs: torch.Tensor,
        batch_sizes: Sequence[int],
        state: Optional[LstmState] = None,
        rows: Optional[torch.Tensor] = None,
        dtype: Optional[torch.dtype] = None,
    ) -> Tuple[torch.Tensor, LstmState]:
        """
        # Parameters

        inputs : `torch.Tensor`
            Packed, `(2, num_tokens, input_dim)`; with `rows`, `(2, num_inputs, input_dim)`.
        batch_sizes : `Sequence[int]`
            Number of sentences at each step, never rising; their sum is `num_tokens`.
        state : `Optional[LstmState]`, optional (default = `None`)
            Of `batch_sizes[0]` sentences; `None`: zeros.
        rows : `Optional[torch.Tensor]`, optional (default = `None`)
            int64 `(2, num_tokens)`: which of the inputs each token reads. Repeated inputs then cost their product once.
        dtype : `Optional[torch.dtype]`, optional (default = that of the parameters)
            Of the factors and results of all products, those of the gradient too; memory cells and all that is returned
            stay in that of the parameters.

        # Returns

        `Tuple[torch.Tensor, LstmState]`
            The outputs, packed, `(2, num_tokens, projection_dim)`, and the state after each sentence's last token.
        """
        if state is None:
            state = self.initial_state(batch_sizes[0])
        bias = self.bias + self.forget_offset
        parameters = (self.input_kernel, self.recurrent_kernel, bias, self.projection)
        directions = _directions(inputs.device)
        dtype = self.projection.dtype if dtype is None else dtype
        clips = _Clips(self.cell_clip, self.projection_clip)
        results: List[Tuple[torch.Tensor, torch.Tensor, torch.Tensor]] = []
        if wants_gradient(inputs, *parameters, *state):
            if rows is not None:
                inputs = _take_rows(inputs, rows)
            for direction in directions:
                tensors = [tensor[direction] for tensor in (inputs, *parameters, *state)]
                results.append(_LstmWithGradient.apply(*tensors, batch_sizes, clips, dtype))
        else:
            products = self._products.get(
                (self.input_kernel, self.recurrent_kernel, self.bias, self.projection),
                dtype,
                lambda: [_Products.of([parameter[d] for parameter in parameters], dtype) for d in directions],
            )
            for direction, product in zip(directions, products):
                gates = _project_inputs(
                    inputs[direction], None if rows is None else rows[direction], batch_sizes, product.input
                )
                hidden, memory = (tensor[direction] for tensor in state)
                results.append(_run(gates, hidden, memory, batch_sizes, product, clips))

        outputs, hidden, memory = (
            torch.stack(tensors) if len(directions) == 2 else tensors[0] for tensors in zip(*results)
        )
        return outputs, LstmState(hidden, memory)


def _directions(device: torch.device) -> Sequence[Any]:
    """Indices of what is run at a time: on a GPU both directions in the same, fewer, larger operations."""
    return [0, 1] if device.type == "cpu" else [slice(None)]


class _Products(NamedTuple):
    input: Product
    recurrent: Product
    projection: Product

    @classmethod
    def of(cls, weights: Sequence[torch.Tensor], dtype: Optional[torch.dtype] = None) -> "_Products":
        input_kernel, recurrent_kernel, bias, projection = weights
        return cls(
            Product(input_kernel, bias, dtype), Product(recurrent_kernel, dtype=dtype), Product(projection, dtype=dtype)
        )


# From here on, tensors are of one direction, or of both with a leading dimension of 2: sentences and tokens are the
# dimension before the last.


def _project_inputs(
    inputs: torch.Tensor, rows: Optional[torch.Tensor], batch_sizes: Sequence[int], product: Product
) -> Iterator[torch.Tensor]:
    """For each step, what the inputs contribute to the gates, `(batch_sizes[step], 4 * cell_dim)`."""
    num_directions = inputs.size(0) if inputs.dim() == 3 else 1
    max_rows = max(1, MAX_PROJECTED_BYTES // (num_directions * inputs.element_size() * product.output_dim))
    is_projected_at_once = rows is not None and inputs.size(-2) <= max_rows
    if is_projected_at_once:
        inputs = product(inputs)
    # A processor takes the rows of a step when it comes to them, so that they stay in its cache.
    is_stepwise = is_projected_at_once and inputs.device.type == "cpu"
    windows = [[size] for size in batch_sizes] if is_stepwise else _windows(batch_sizes, max_rows)
    start = 0
    for window in windows:
        stop = start + sum(window)
        part = inputs[..., start:stop, :] if rows is None else _take_rows(inputs, rows[..., start:stop])
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


def _take_rows(vectors: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
    if vectors.dim() == 2:
        return vectors.index_select(0, rows)
    return torch.stack([part.index_select(0, part_rows) for part, part_rows in zip(vectors, rows)])


class _Clips(NamedTuple):
    cell: Optional[float]
    projection: Optional[float]


class _Step(NamedTuple):
    """What the gradient of one step needs: the gates i, j, f, o after their functions, the rest before clipping."""

    gates: torch.Tensor
    memory: torch.Tensor
    output: torch.Tensor


def _run(
    gates_from_inputs: Iterator[torch.Tensor],
    hidden: torch.Tensor,
    memory: torch.Tensor,
    batch_sizes: Sequence[int],
    products: _Products,
    clips: _Clips,
    tape: Optional[List[_Step]] = None,
) -> Tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """The outputs, packed, and the last outputs and memories of all sentences."""
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
            _tanh_(candidate)
            forget_gate.sigmoid_()
            output_gate.sigmoid_()
            # (num_running, cell_dim)
            unclipped_memory = (forget_gate * memory).addcmul_(input_gate, candidate)
            memory = _clip(unclipped_memory, clips.cell)
            cells = _tanh_(memory.clone()).mul_(output_gate)
        # (num_running, projection_dim)
        unclipped_output = products.projection(cells).to(memory.dtype)
        hidden = _clip(unclipped_output, clips.projection, output)
        if tape is not None:
            tape.append(_Step(gates, unclipped_memory, unclipped_output))
    ended.append((hidden, memory))
    last_hidden, last_memory = (torch.cat(tensors, dim=-2) for tensors in zip(*reversed(ended)))
    return outputs, last_hidden, last_memory


def _tanh_(tensor: torch.Tensor) -> torch.Tensor:
    """In place: 2 sigmoid(2 x) - 1, since on a processor torch's sigmoid takes a sixth of the time of its tanh."""
    if tensor.is_cuda:
        return tensor.tanh_()
    return tensor.mul_(2.0).sigmoid_().sub_(0.5).mul_(2.0)


class _LstmWithGradient(Function):
    """
    The same steps, with their gradient written by hand: it goes back through time with two products per step, and
    then takes each weight's gradient in one product over all steps.
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
        clips: _Clips,
        dtype: torch.dtype,
    ) -> Tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        products = _Products.of([input_kernel, recurrent_kernel, bias, projection], dtype)
        gates_from_inputs = _project_inputs(inputs, None, batch_sizes, products.input)
        tape: List[_Step] = []
        outputs, last_hidden, last_memory = _run(gates_from_inputs, hidden, memory, batch_sizes, products, clips, tape)
        ctx.batch_sizes, ctx.clips, ctx.dtype = batch_sizes, clips, dtype
        weights = (input_kernel, recurrent_kernel, projection)
        ctx.save_for_backward(inputs, *weights, hidden, memory, outputs, *(t for step in tape for t in step))
        return outputs, last_hidden, last_memory

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: torch.Tensor) -> Tuple[Optional[torch.Tensor], ...]:
        with without_autocast(gradients[0].device):
            return _backward(ctx, *gradients)


def _backward(
    ctx: Any, d_outputs: torch.Tensor, d_hidden: torch.Tensor, d_memory: torch.Tensor
) -> Tuple[Optional[torch.Tensor], ...]:
    inputs, input_kernel, recurrent_kernel, projection, hidden, memory, outputs, *taped = ctx.saved_tensors
    tape = [_Step(*taped[index : index + 3]) for index in range(0, len(taped), 3)]
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
        earlier_memory = memory if step == 0 else _clip(tape[step - 1].memory, ctx.clips.cell)
        earlier_memory = earlier_memory.narrow(-2, 0, sizes[step])
        squashed_memory = _tanh_(_clip(unclipped_memory, ctx.clips.cell).clone())
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


def _clip(tensor: torch.Tensor, bound: Optional[float], out: Optional[torch.Tensor] = None) -> torch.Tensor:
    if bound is None:
        return tensor if out is None else out.copy_(tensor)
    return torch.clamp(tensor, -bound, bound, out=out)


def _clip_gradient_(gradient: torch.Tensor, unclipped: torch.Tensor, bound: Optional[float]) -> None:
    """As torch has it for `clamp`: nothing passes outside of the bound, everything on it."""
    if bound is not None:
        gradient.masked_fill_(unclipped.abs() > bound, 0.0)
