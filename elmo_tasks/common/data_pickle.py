"""
In place of `pickle` for `torch.load` with torch before 2.4, which cannot be told what a file may hold.

A pickle names the functions that it calls. Here it can name what tensors, numbers and containers are made of, and
nothing else. Later versions have a stricter reader of their own (`weights_only`).
"""

import pickle
from typing import Any, FrozenSet, Tuple

_NUMPY = ("numpy", "numpy.core.multiarray", "numpy._core.multiarray", "numpy.dtypes")

ALLOWED: FrozenSet[Tuple[str, str]] = frozenset(
    [
        ("collections", "OrderedDict"),
        ("collections", "Counter"),
        ("_codecs", "encode"),  # bytes, in torch's version of the format
        ("builtins", "bytearray"),
        ("builtins", "complex"),
        ("builtins", "set"),
        # The names that Python 2 had for them, which this version of the format keeps.
        ("__builtin__", "bytearray"),
        ("__builtin__", "complex"),
        ("__builtin__", "set"),
        ("torch", "Size"),
        ("torch", "device"),
        ("torch._utils", "_rebuild_parameter"),
        ("torch._utils", "_rebuild_tensor"),
        ("torch._utils", "_rebuild_tensor_v2"),
        ("torch.nn.parameter", "Parameter"),
        *(("torch", kind) for kind in ("float16", "float32", "float64", "bfloat16", "bool", "uint8")),
        *(("torch", kind) for kind in ("int8", "int16", "int32", "int64")),
        *((module, name) for module in _NUMPY for name in ("dtype", "ndarray", "scalar", "_reconstruct")),
    ]
)


class Unpickler(pickle.Unpickler):
    """As in `pickle`, but refuses names that are not in `ALLOWED`."""

    def find_class(self, module: str, name: str) -> Any:
        """See `pickle.Unpickler`."""
        if (module, name) not in ALLOWED:
            raise pickle.UnpicklingError(f"GLOBAL {module}.{name} is not data")
        return super().find_class(module, name)


def load(file: Any, **options: Any) -> Any:
    """As in `pickle`."""
    return Unpickler(file, **options).load()
