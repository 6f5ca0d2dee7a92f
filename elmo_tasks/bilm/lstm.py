"""
One layer of the biLM: an LSTM with a clipped memory cell and a projected, clipped output, in both directions.

Tokens come packed, as in torch's `PackedSequence`: sentences sorted by length, the longest first; all first tokens,
then all second tokens, and so on. At each step only the sentences that are still running take part. The backward
direction reads each sentence from its end, so that both directions run the same steps.
"""

from typing import Any, List, NamedTuple, Optional, Sequence, Tuple, Union

import torch
from torch import nn

from elmo_tasks.bilm.lstm_gradient import LstmWithGradient
from elmo_tasks.bilm.lstm_steps import Clips, StepProducts, project_inputs, run_steps, take_rows
from elmo_tasks.bilm.products import FrozenCache, wants_gradient


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
        self._products: FrozenCache[List[StepProducts]] = FrozenCache()
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
        cell_dim = self.projection.size(-1)
        bias = self.bias.clone()
        bias[:, 2 * cell_dim : 3 * cell_dim] += 1.0  # of the forget gate
        parameters = (self.input_kernel, self.recurrent_kernel, bias, self.projection)
        directions = _directions(inputs.device)
        dtype = self.projection.dtype if dtype is None else dtype
        clips = Clips(self.cell_clip, self.projection_clip)
        results: List[Tuple[torch.Tensor, torch.Tensor, torch.Tensor]] = []
        if wants_gradient(inputs, *parameters, *state):
            if rows is not None:
                inputs = take_rows(inputs, rows)
            for direction in directions:
                tensors = [tensor[direction] for tensor in (inputs, *parameters, *state)]
                results.append(LstmWithGradient.apply(*tensors, batch_sizes, clips, dtype))
        else:
            products = self._products.get(
                (self.input_kernel, self.recurrent_kernel, self.bias, self.projection),
                dtype,
                lambda: [StepProducts.of([parameter[d] for parameter in parameters], dtype) for d in directions],
            )
            for direction, product in zip(directions, products):
                gates = project_inputs(
                    inputs[direction], None if rows is None else rows[direction], batch_sizes, product.input
                )
                hidden, memory = (tensor[direction] for tensor in state)
                results.append(run_steps(gates, hidden, memory, batch_sizes, product, clips))

        outputs, hidden, memory = (
            torch.stack(tensors) if len(directions) == 2 else tensors[0] for tensors in zip(*results)
        )
        return outputs, LstmState(hidden, memory)


def _directions(device: torch.device) -> Sequence[Any]:
    """Indices of what is run at a time: on a GPU both directions in the same, fewer, larger operations."""
    return [0, 1] if device.type == "cpu" else [slice(None)]
