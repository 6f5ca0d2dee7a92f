"""What a weights file says about the biLM in it, so that an archive needs no other file."""

import inspect
import json
import os
from dataclasses import asdict, dataclass
from typing import Any, Dict, Optional

import torch
from allennlp.common.checks import ConfigurationError

# The key of the record among the parameters of an embedder, and the prefix of its biLM's parameters.
RECORD_NAME = "bilm_record"
BILM_PREFIX = "bilm."


@dataclass(frozen=True)
class BiLmRecord:
    """
    A biLM in a weights file.

    # Parameters

    options : `Dict[str, Any]`
        What `options.json` holds, in the official spelling.
    source : `Dict[str, Any]`
        The arguments that named the biLM in the config.
    digest : `Optional[str]`
        Hexadecimal digest of its options and weights, where these are left out of the file; `None` where they are in
        it.
    stateful : `bool`
        Whether the embedder kept its states between batches in training.
    version : `str`
        The version of this package that wrote the record.
    """

    options: Dict[str, Any]
    source: Dict[str, Any]
    digest: Optional[str]
    stateful: bool
    version: str

    @classmethod
    def from_tensor(cls, tensor: torch.Tensor) -> "BiLmRecord":
        """The record that `to_tensor` made."""
        return cls(**json.loads(bytes(tensor.to("cpu", torch.uint8).numpy()).decode()))

    def check(self, digest: str) -> None:
        """
        # Raises

        ConfigurationError
            Where the weights were left out, and those at hand, with this digest, are others.
        """
        if self.digest is not None and self.digest != digest:
            raise ConfigurationError(
                f"the weights file needs the biLM with digest {self.digest}, from {json.dumps(self.source)}, but the "
                f"one at hand has digest {digest}"
            )

    def to_tensor(self) -> torch.Tensor:
        """
        # Returns

        `torch.Tensor`
            float32, the bytes of the record as JSON: weights files hold tensors, and `torch.load` refuses most other
            things. Not uint8, since `allennlp diff` takes the mean square of differences, which integers lack.
        """
        return torch.tensor(list(json.dumps(asdict(self), sort_keys=True).encode()), dtype=torch.float32)


@dataclass(frozen=True)
class RecordedBiLm:
    """
    A record together with the weights beside it.

    # Parameters

    record : `BiLmRecord`
    weights : `Dict[str, torch.Tensor]`
        Parameters by their names within the biLM; empty where they were left out. Mapped from the file where
        torch can do that, so that nothing is read before it is used.
    """

    record: BiLmRecord
    weights: Dict[str, torch.Tensor]


def find_recorded_bilm(weights_path: str, source: Dict[str, Any]) -> Optional[RecordedBiLm]:
    """
    # Parameters

    weights_path : `str`
        A weights file of a model, which need not exist.
    source : `Dict[str, Any]`
        The arguments that name the biLM in the config. They choose among several; a single one is taken also
        when a file was renamed in the config since.

    # Returns

    `Optional[RecordedBiLm]`
        `None` where the file does not exist, or has no such biLM.
    """
    if not os.path.exists(weights_path):
        return None
    state = load_mapped(weights_path)
    found = [
        (name[: -len(RECORD_NAME)], BiLmRecord.from_tensor(tensor))
        for name, tensor in state.items()
        if name.split(".")[-1] == RECORD_NAME
    ]
    if len(found) > 1:
        found = [(prefix, record) for prefix, record in found if record.source == source]
    if not found:
        return None
    prefix, record = found[0]
    prefix += BILM_PREFIX
    weights = {name[len(prefix) :]: tensor for name, tensor in state.items() if name.startswith(prefix)}
    return RecordedBiLm(record, weights)


def load_mapped(path: str) -> Dict[str, torch.Tensor]:
    """
    # Returns

    `Dict[str, torch.Tensor]`
        The content of a weights file, on the CPU. Mapped where torch can do that: nothing is read before it is used.
    """
    # Both arguments came with later versions of torch.
    wanted = [name for name in ("mmap", "weights_only") if name in inspect.signature(torch.load).parameters]
    return torch.load(path, map_location="cpu", **dict.fromkeys(wanted, True))
