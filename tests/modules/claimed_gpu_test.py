"""
What runs on a GPU, run where there is none: on tensors that claim to be there, and are computed on the processor.

Each operation is looked at: one that mixes tensors of a GPU with others fails, as it would there, and so does what
reads the memory of a GPU as if it were the processor's. There is no backward pass: autograd asks for a real device.
"""

import collections
import ctypes
import shutil
import subprocess

import pytest
import torch
from allennlp.common import Params
from allennlp.data import Instance, Token
from allennlp.data.fields import TextField
from allennlp.data.token_indexers import ELMoTokenCharactersIndexer
from allennlp.modules.token_embedders import ElmoTokenEmbedder, TokenEmbedder
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

from elmo_tasks.bilm import lstm_cell
from elmo_tasks.modules import ActivationCache, ElmoEmbedder

GPU = torch.device("cuda", 0)
# These take tensors of both.
CROSSING = {"_to_copy", "copy_", "_pack_padded_sequence"}
# The indices of these may be elsewhere.
INDEXING = {"index", "index_put", "index_put_"}
# These start nothing on a GPU.
VIEWS = {"view", "_unsafe_view", "expand", "transpose", "t", "permute", "unsqueeze", "squeeze", "select", "slice"} | {
    *("split", "split_with_sizes", "narrow", "detach", "alias", "as_strided", "unbind", "unfold", "_local_scalar_dense")
}


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
        if is_there and name not in VIEWS:
            self.started[name] += 1
        held_args, held_kwargs = pytree.tree_map_only(ClaimedTensor, lambda tensor: tensor.held, (args, kwargs))
        result = function(*held_args, **held_kwargs)
        if function._schema.is_mutable:
            return kwargs["out"] if "out" in kwargs else args[0]
        if not is_there:
            return result
        if name == "_pack_padded_sequence":
            return ClaimedTensor(result[0]), result[1]
        return pytree.tree_map_only(torch.Tensor, ClaimedTensor, result)


@pytest.fixture(scope="module")
def compiled_cell(tmp_path_factory):
    """The source of the operation for GPUs, as a function on numpy's arrays."""
    if shutil.which("g++") is None:
        pytest.skip("no compiler for the source of an operation for GPUs")
    folder = tmp_path_factory.mktemp("cell")
    loop = """
    extern "C" void run(long size, const float* i, const float* j, const float* f, const float* o, const float* memory,
                        double bound, float* next, float* cell) {
        for (long n = 0; n < size; ++n)
            lstm_cell<float>(i[n], j[n], f[n], o[n], memory[n], bound, next[n], cell[n]);
    }
    """
    (folder / "cell.cpp").write_text(f"#include <math.h>\n{lstm_cell.SOURCE}\n{loop}")
    command = ["g++", "-shared", "-fPIC", "-Wall", "-Werror", "-o", str(folder / "cell.so"), str(folder / "cell.cpp")]
    subprocess.run(command, check=True)
    return ctypes.CDLL(str(folder / "cell.so")).run


@pytest.fixture
def machine(monkeypatch, compiled_cell):
    machine = MachineWithGpu()

    def run_cell(*tensors, bound):
        machine.started["lstm_cell"] += 1
        inputs = [tensor.held.contiguous() for tensor in tensors]
        outputs = [torch.empty_like(inputs[0]) for _ in range(2)]
        pointers = [ctypes.c_void_p(tensor.data_ptr()) for tensor in inputs + outputs]
        compiled_cell(ctypes.c_long(inputs[0].numel()), *pointers[:5], ctypes.c_double(bound), *pointers[5:])
        return [ClaimedTensor(output) for output in outputs]

    monkeypatch.setattr(lstm_cell, "compiled", lambda: run_cell)
    # Nothing looks for a driver.
    monkeypatch.setattr(torch.cuda, "_lazy_init", lambda: None)
    torch._C._ensureCUDADeviceGuardSet()
    torch._C._set_only_lift_cpu_tensors(True)
    torch.__future__.set_overwrite_module_params_on_conversion(True)
    try:
        with torch.no_grad(), machine:
            yield machine
    finally:
        torch._C._set_only_lift_cpu_tensors(False)
        torch.__future__.set_overwrite_module_params_on_conversion(False)


def test_the_machine_refuses_what_a_gpu_refuses(machine):
    there, here = torch.ones(3, device=GPU), torch.ones(3)
    assert there.is_cuda
    assert (there + 1).device == GPU
    assert type((there + there).cpu()) is torch.Tensor
    for wrong in (lambda: there + here, lambda: here[there.long()]):
        with pytest.raises(AssertionError, match="of a GPU and of the processor"):
            wrong()
    with pytest.raises(RuntimeError, match="numpy"):
        there.numpy()
    assert machine.started["add"] == 2


def make(files, **options):
    torch.manual_seed(0)
    return TokenEmbedder.from_params(Params({"type": "elmo", "dropout": 0.0, **files, **options})).eval()


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"precision": "bfloat16"},
        {"mix": {"type": "scalar", "initial": [0.2, 0.5, 0.3], "layer_norm": True}},
        {"mix": "token_dependent"},
        {"mix": {"type": "single_layer", "layer": 1}, "projection_dim": 3},
        {"stateful": True},
        {"max_tokens_per_forward": 9},
    ],
    ids=str,
)
def test_vectors_are_those_of_the_processor(machine, files, sentences, to_ids, options):
    character_ids = to_ids(sentences)
    expected = make(files, **options)(character_ids)
    embedder = make(files, **options).to(GPU)
    machine.started.clear()
    found = embedder(character_ids.to(GPU))
    assert found.device == GPU
    tolerance = 2e-2 if "precision" in options else 1e-5
    torch.testing.assert_close(found.cpu(), expected, rtol=0, atol=tolerance)
    assert (machine.started["lstm_cell"] > 0) == (not options.get("stateful"))


def test_entries_of_the_cache_live_where_the_model_is(machine, files, sentences, to_ids, tmp_path):
    indexer = {"elmo": ELMoTokenCharactersIndexer()}
    instances = [Instance({"text": TextField([Token(word) for word in words], indexer)}) for words in sentences]
    character_ids = to_ids(sentences)
    expected = make(files)(character_ids)
    for folder in (None, str(tmp_path)):
        cache = ActivationCache(folder)
        embedder = ElmoEmbedder(**files, dropout=0.0, cache=cache).to(GPU).train()
        embedder.prepare_for_training(lambda: instances, lambda: instances)
        machine.started.clear()
        torch.testing.assert_close(embedder(character_ids.to(GPU)).cpu(), expected, rtol=0, atol=1e-5)
        assert machine.started["bmm"] == 0, "the biLM ran again"
        assert {type(entry) for entry in cache._memory._entries.values()} == {ClaimedTensor}
    # What another process left on disk goes to the GPU, too.
    embedder = ElmoEmbedder(**files, dropout=0.0, cache=ActivationCache(str(tmp_path))).to(GPU).train()
    torch.testing.assert_close(embedder(character_ids.to(GPU)).cpu(), expected, rtol=0, atol=1e-5)
    assert machine.started["bmm"] == 0, "the biLM ran again"


def test_a_gpu_starts_an_eighth_of_the_operations_that_allennlp_starts(machine, files, sentences, to_ids):
    """With batches of this size a GPU waits for each start, not for the work in it."""
    character_ids = to_ids([(sentences[row % 6] * 9)[: 12 + row] for row in range(32)]).to(GPU)
    counts = []
    for embedder in (ElmoTokenEmbedder(**files).eval(), make(files)):
        embedder.to(GPU)(character_ids)
        machine.started.clear()
        embedder(character_ids)
        counts.append(sum(machine.started.values()))
    assert counts[1] < counts[0] / 8
