"""
What a step of the LSTM does to each cell by itself, in one operation of a GPU.

There it takes longer to start an operation than to do it, since a step has so few numbers: out of torch's operations, a
step would start ten between its two products. torch's jiterator makes one of them, with the compiler that torch brings
along, when it first runs.
"""

import functools
from typing import Any, Callable, Optional, Tuple

import torch
from torch.cuda import jiterator

from elmo_tasks.common.environment import keep_no_compiled_kernels

# torch 1.12 makes operations with one result only.
IS_AVAILABLE = hasattr(jiterator, "_create_multi_output_jit_fn")

SOURCE = """
template <typename T>
void lstm_cell(T input_gate, T candidate, T forget_gate, T output_gate, T memory, T bound, T& next, T& cell) {
    const T kept = memory / (T(1) + ::exp(-forget_gate));
    const T sum = kept + ::tanh(candidate) / (T(1) + ::exp(-input_gate));
    next = sum > bound ? bound : (sum < -bound ? -bound : sum);
    cell = ::tanh(next) / (T(1) + ::exp(-output_gate));
}
"""


def lstm_cell(gates: torch.Tensor, memory: torch.Tensor, bound: Optional[float]) -> Tuple[torch.Tensor, torch.Tensor]:
    """
    No gradient flows through it.

    # Parameters

    gates : `torch.Tensor`
        `(…, 4 * cell_dim)` on a GPU: i, j, f, o before their functions, f with the one that is added to it.
    memory : `torch.Tensor`
        `(…, cell_dim)`, the memory cell of the step before.
    bound : `Optional[float]`
        Of the memory cell; `None`: none.

    # Returns

    `Tuple[torch.Tensor, torch.Tensor]`
        Both `(…, cell_dim)`: the memory cell after this step, clipped, and what the output gate lets out of it.
    """
    memory, cell = compiled()(*gates.chunk(4, dim=-1), memory, bound=float("inf") if bound is None else bound)
    return memory, cell


@functools.lru_cache(maxsize=None)
def compiled() -> Callable[..., Any]:
    """
    `SOURCE` as a function of tensors on a GPU. Made when it is first needed, since it asks the driver for GPUs, after
    which a process can no longer be forked into one that uses them.
    """
    keep_no_compiled_kernels()
    function: Callable[..., Any] = jiterator._create_multi_output_jit_fn(SOURCE, num_outputs=2, bound=0.0)
    return function
