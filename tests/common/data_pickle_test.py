import io
import os
import pickle
from collections import Counter, OrderedDict

import numpy as np
import pytest
import torch

from elmo_tasks.common import data_pickle

VALUES = [
    OrderedDict(a=1),
    Counter("aab"),
    {1, 2},
    2j,
    b"ab",
    bytearray(b"ab"),
    torch.Size([2, 3]),
    torch.device("cpu"),
    torch.float32,
    np.float64(0.5),
    np.int64(3),
    np.bool_(True),
]


@pytest.mark.parametrize("value", VALUES, ids=lambda value: type(value).__name__)
@pytest.mark.parametrize("protocol", [2, pickle.HIGHEST_PROTOCOL])
def test_plain_values_are_read(value, protocol):
    loaded = data_pickle.load(io.BytesIO(pickle.dumps(value, protocol)))
    assert type(loaded) is type(value)
    assert loaded == value


@pytest.mark.parametrize("is_zip", [True, False])
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.int64, torch.uint8, torch.bool])
def test_tensors_and_parameters_are_read(dtype, is_zip):
    tensor = torch.tensor([[1, 0, 1], [0, 1, 1]]).to(dtype)
    state = {"tensor": tensor, "view": tensor.t()[1:], "parameter": torch.nn.Parameter(tensor, requires_grad=False)}
    buffer = io.BytesIO()
    torch.save(state, buffer, _use_new_zipfile_serialization=is_zip)
    buffer.seek(0)
    loaded = torch.load(buffer, pickle_module=data_pickle, weights_only=False)
    for name, value in state.items():
        assert loaded[name].dtype == dtype
        assert torch.equal(loaded[name], value)


@pytest.mark.parametrize("function", [os.mkdir, eval, getattr, torch.load, np.load, pickle.loads])
@pytest.mark.parametrize("protocol", [0, 2, pickle.HIGHEST_PROTOCOL])
def test_everything_else_is_refused_by_its_name(function, protocol):
    class Payload:
        def __reduce__(self):
            return function, ()

    with pytest.raises(pickle.UnpicklingError, match=rf"^GLOBAL \S+\.{function.__name__} is not data$"):
        data_pickle.load(io.BytesIO(pickle.dumps(Payload(), protocol)))


def test_a_name_within_an_allowed_one_is_refused():
    """The newest protocols reach into what they name: here `OrderedDict.fromkeys`."""
    content = pickle.dumps(OrderedDict.fromkeys, 4)
    assert content.count(b"getattr") == 1
    with pytest.raises(pickle.UnpicklingError, match="getattr is not data"):
        data_pickle.load(io.BytesIO(content))
    by_hand = b"\x80\x04\x8c\x0bcollections\x8c\x14OrderedDict.fromkeys\x93."
    assert pickle.loads(by_hand) == OrderedDict.fromkeys
    with pytest.raises(pickle.UnpicklingError, match=r"collections.OrderedDict.fromkeys is not data"):
        data_pickle.load(io.BytesIO(by_hand))
