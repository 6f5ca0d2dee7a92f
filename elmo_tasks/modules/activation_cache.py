"""The activation cache: a frozen biLM runs once per sentence instead of once per epoch."""

import hashlib
import logging
from typing import Dict, Iterable, List, Optional, Sequence, Set

import numpy
import torch
from allennlp.common import FromParams
from allennlp.common.checks import ConfigurationError

from elmo_tasks.modules.disk_tier import DiskTier
from elmo_tasks.modules.memory_tier import MemoryTier

logger = logging.getLogger(__name__)

DTYPES = ("float32", "float16")


class ActivationCache(FromParams):
    """
    Keeps what a biLM gives for a sentence, under a key made of all that it depends on: the characters of the
    sentence, the weights and options of the biLM, its precision. So no setting can make an entry stale:
    another setting has entries of its own, also in the same directory.

    # Parameters

    directory : `Optional[str]`, optional (default = `None`)
        Folder, on a disk of this machine, for entries that outlive the process, shared by all processes and runs that
        name it. `None`: memory only.
    max_memory_bytes : `int`, optional (default = `4294967296`)
        Budget in memory (4 GiB), on the GPU where the model is on one. Entries beyond it are read from the
        directory, or computed again.
    max_disk_bytes : `int`, optional (default = `68719476736`)
        The file in the directory never grows beyond this (64 GiB).
    dtype : `str`, optional (default = `"float32"`)
        How entries are stored: "float32", or "float16", which takes half the room; the mix then differs by
        some 1e-3.

    # Raises

    ConfigurationError
        Where `dtype` is another.
    """

    def __init__(
        self,
        directory: Optional[str] = None,
        max_memory_bytes: int = 4 * 1024**3,
        max_disk_bytes: int = 64 * 1024**3,
        dtype: str = "float32",
    ) -> None:
        if dtype not in DTYPES:
            raise ConfigurationError(f"`dtype` of the cache must be one of {DTYPES}, but is {dtype!r}")
        self._dtype_name = dtype
        self.dtype = torch.float16 if dtype == "float16" else torch.float32
        self.num_bytes_per_value = numpy.dtype(dtype).itemsize
        self._memory = MemoryTier(max_memory_bytes)
        self._disk = DiskTier(directory, max_disk_bytes) if directory is not None else None
        self._has_warned = False

    @property
    def num_free_bytes(self) -> int:
        """Bytes that the roomier tier still takes."""
        return max(self._memory.num_free_bytes, self._disk.num_free_bytes if self._disk is not None else 0)

    def describe_room(self) -> str:
        """Says in words what each tier still takes."""
        room = f"{self._memory.num_free_bytes / 1e6:,.0f} MB free in memory"
        if self._disk is not None:
            room += f", {self._disk.num_free_bytes / 1e6:,.0f} MB in {self._disk.path}"
        return room

    def keys(self, character_ids: numpy.ndarray, lengths: Sequence[int], context: bytes) -> List[bytes]:
        """
        # Parameters

        character_ids : `numpy.ndarray`
            int16 `(batch_size, num_tokens, max_characters_per_token)`. Keys are made of the bytes, so that
            another type would give other keys.
        lengths : `Sequence[int]`
            Number of tokens of each sentence: its padding is no part of the key.
        context : `bytes`
            All that an entry depends on besides the sentence.

        # Returns

        `List[bytes]`
            A key of 16 bytes for each sentence.
        """
        context = hashlib.blake2b(context + self._dtype_name.encode()).digest()
        return [
            hashlib.blake2b(sentence[:length], digest_size=16, key=context).digest()
            for sentence, length in zip(numpy.ascontiguousarray(character_ids), lengths)
        ]

    def missing(self, keys: Iterable[bytes]) -> Set[bytes]:
        """
        # Returns

        `Set[bytes]`
            The keys that no tier has.
        """
        absent = {key for key in keys if key not in self._memory}
        return absent - self._disk.present(absent) if self._disk is not None and absent else absent

    def get(
        self, keys: Iterable[bytes], num_values: int, device: torch.device, keep: bool = True
    ) -> Dict[bytes, torch.Tensor]:
        """
        # Parameters

        keys : `Iterable[bytes]`
        num_values : `int`
            Values per token in an entry.
        device : `torch.device`
            Where the entries are wanted. Those in memory stay there.
        keep : `bool`, optional (default = `True`)
            Keep in memory what comes from disk.

        # Returns

        `Dict[bytes, torch.Tensor]`
            `(num_tokens, num_values)` in the cache's dtype, for each key that is there.
        """
        found: Dict[bytes, torch.Tensor] = {}
        absent = set()
        for key in keys:
            entry = self._memory.get(key, device)
            if entry is None:
                absent.add(key)
            else:
                found[key] = entry
        if absent and self._disk is not None:
            for key, payload in self._disk.get(absent).items():
                # (num_tokens, num_values)
                values = payload.view(self._dtype_name).reshape(-1, num_values)
                found[key] = torch.from_numpy(values).to(device)
                if keep:
                    self._memory.put(key, found[key])
        return found

    def put(self, entries: Dict[bytes, torch.Tensor]) -> None:
        """
        Keeps the entries in each tier that has room for them.

        # Parameters

        entries : `Dict[bytes, torch.Tensor]`
            `(num_tokens, num_values)` in the cache's dtype.
        """
        are_kept = [self._memory.put(key, entry) for key, entry in entries.items()]
        if self._disk is not None:
            self._disk.put({key: entry.cpu().numpy().reshape(-1).view("uint8") for key, entry in entries.items()})
        elif not all(are_kept) and not self._has_warned:
            self._has_warned = True
            logger.warning(
                "The activation cache has reached `max_memory_bytes` with %s sentences in it; the others are "
                "computed again each time.",
                f"{len(self._memory):,}",
            )
