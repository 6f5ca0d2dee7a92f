"""The fast tier of the activation cache: tensors in memory, on the device that wants them."""

from typing import Dict, Optional

import torch


class MemoryTier:
    """
    Keeps tensors until a budget is spent. What is in stays in: an epoch reads every sentence once, so that
    throwing out the oldest would throw out just what comes next.

    # Parameters

    max_bytes : `int`
        Budget for the tensors' data; 0 keeps nothing.
    """

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._entries: Dict[bytes, torch.Tensor] = {}
        self.num_bytes = 0

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, key: bytes) -> bool:
        return key in self._entries

    @property
    def num_free_bytes(self) -> int:
        """Bytes left of the budget."""
        return self._max_bytes - self.num_bytes

    def get(self, key: bytes, device: torch.device) -> Optional[torch.Tensor]:
        """
        # Returns

        `Optional[torch.Tensor]`
            The entry, on `device`; it lives there from now on. `None` where there is none.
        """
        entry = self._entries.get(key)
        if entry is not None and entry.device != device:
            entry = self._entries[key] = entry.to(device)
        return entry

    def put(self, key: bytes, entry: torch.Tensor) -> bool:
        """
        Keeps a copy of `entry` on its device, so that an entry never holds on to the batch that it was part
        of.

        # Returns

        `bool`
            Whether the entry is now kept; `False` where the budget has no room for it.
        """
        if key in self._entries:
            return True
        num_bytes = entry.numel() * entry.element_size()
        if num_bytes > self.num_free_bytes:
            return False
        self._entries[key] = entry.detach().clone()
        self.num_bytes += num_bytes
        return True
