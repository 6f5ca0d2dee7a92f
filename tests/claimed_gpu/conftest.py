"""
A machine that claims to have a GPU: what runs on one is run on tensors that say they are there, and are computed on the
processor.

Each operation is looked at: one that mixes tensors of a GPU with others fails, as it would there, and so does what
reads the memory of a GPU as if it were the processor's. There is no backward pass: autograd asks for a real device.
"""

import collections

import pytest
import torch
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

from elmo_tasks.bilm import lstm_cell

GPU = torch.device("cuda", 0)
# These take tensors of both.
CROSSING = {"_to_copy", "copy_", "_pack_padded_sequence"}
# The indices of these may be elsewhere.
INDEXING = {"index", "index_put", "index_put_"}
# Views, room for numbers, the way of a number to the processor.
STARTS_NOTHING = {
    "alias", "as_strided", "detach", "expand", "narrow", "permute", "select", "slice", "split", "split_with_sizes",
    "squeeze", "t", "transpose", "unbind", "unfold", "unsqueeze", "view", "_unsafe_view",
    "empty", "empty_like", "new_empty", "_local_scalar_dense",
}  # fmt: skip


def fused_lstm_cell(from_input, from_hidden, memory, input_bias, hidden_bias):
    """That of torch's own LSTM, whose order of gates is another than ours."""
    gates = from_input + from_hidden + input_bias + hidden_bias
    input_gate, forget_gate, candidate, output_gate = gates.chunk(4, dim=-1)
    memory = forget_gate.sigmoid() * memory + input_gate.sigmoid() * candidate.tanh()
    return output_gate.sigmoid() * memory.tanh(), memory, gates


# What torch does not have for processors.
FOR_GPUS_ALONE = {"_thnn_fused_lstm_cell": fused_lstm_cell}


class ClaimedTensor(torch.Tensor):
    """Says that it is on a GPU; `held`, on the processor, is what it computes with."""

    @staticmethod
    def __new__(cls, held):
        claimed = torch.Tensor._make_wrapper_subclass(
            cls, held.shape, strides=held.stride(), dtype=held.dtype, device=GPU, storage_offset=held.storage_offset()
        )
        claimed.held = held
        return claimed

    def tolist(self):
        return self.held.tolist()

    def data_ptr(self):
        return self.held.data_ptr()

    @classmethod
    def __torch_dispatch__(cls, function, types, args=(), kwargs=None):
        raise AssertionError(f"{function} runs outside of the machine with a GPU")


class MachineWithGpu(TorchDispatchMode):
    """Where it is entered, tensors can be brought to `GPU`. `started` counts the operations that a GPU would run."""

    def __init__(self):
        super().__init__()
        self.gpu = GPU
        self.started = collections.Counter()

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        name = function._schema.name.split("::")[1]
        tensors = [leaf for leaf in pytree.tree_leaves((args, kwargs)) if isinstance(leaf, torch.Tensor)]
        are_there = [isinstance(tensor, ClaimedTensor) for tensor in tensors]
        if any(are_there) and name not in CROSSING and not (name in INDEXING and are_there[0]):
            strangers = [tensor for tensor in tensors if not isinstance(tensor, ClaimedTensor) and tensor.dim() > 0]
            assert not strangers, f"{function} takes tensors of a GPU and of the processor"
        is_there = any(are_there)
        if kwargs.get("device") is not None:
            is_there = torch.device(kwargs["device"]).type == "cuda"
            kwargs = {**kwargs, "device": torch.device("cpu")}
        if is_there and name not in STARTS_NOTHING:
            self.started[name] += 1
        held_args, held_kwargs = pytree.tree_map_only(ClaimedTensor, lambda tensor: tensor.held, (args, kwargs))
        is_mutable = function._schema.is_mutable
        function = FOR_GPUS_ALONE.get(name, function)
        result = function(*held_args, **held_kwargs)
        if is_mutable:
            return kwargs["out"] if "out" in kwargs else args[0]
        if not is_there:
            return result
        if name == "_pack_padded_sequence":
            return ClaimedTensor(result[0]), result[1]
        return pytree.tree_map_only(torch.Tensor, ClaimedTensor, result)


@pytest.fixture
def machine(monkeypatch, compiled_lstm_cell):
    if torch.cuda.is_available():
        pytest.skip("there is a GPU: `pytest -m gpu`")
    machine = MachineWithGpu()

    def run_cell(*tensors, bound):
        machine.started["lstm_cell"] += 1
        return [ClaimedTensor(output) for output in compiled_lstm_cell(*(t.held for t in tensors), bound=bound)]

    monkeypatch.setattr(lstm_cell, "compiled", lambda: run_cell)
    # Nothing looks for a driver, nor for the library that has whole RNNs.
    monkeypatch.setattr(torch.backends.cudnn, "enabled", False)
    monkeypatch.setattr(torch.cuda, "_lazy_init", lambda: None)
    monkeypatch.setattr(torch.cuda, "get_rng_state", lambda device: torch.get_rng_state())
    monkeypatch.setattr(torch.cuda, "set_rng_state", lambda state, device: None)
    # Autograd starts a thread for each device that it finds when it is first used: before there is one that is claimed.
    torch.ones((), requires_grad=True).backward()
    torch._C._ensureCUDADeviceGuardSet()
    torch._C._set_only_lift_cpu_tensors(True)
    torch.__future__.set_overwrite_module_params_on_conversion(True)
    try:
        with torch.no_grad(), machine:
            yield machine
    finally:
        torch._C._set_only_lift_cpu_tensors(False)
        torch.__future__.set_overwrite_module_params_on_conversion(False)
