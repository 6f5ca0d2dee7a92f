"""The parameters of a model that training never changes, in a file of their own."""

import logging
import os
from typing import Any, Dict, Optional

import torch

from elmo_tasks.common.files import save_whole

logger = logging.getLogger(__name__)


class FrozenParameters:
    """
    Writes the frozen parameters of a model once, so that checkpoints can do without them.

    A parameter is left out of a model state if it requires no gradient and is the same tensor, unchanged, as
    in the file. Torch counts the changes of every tensor (`Tensor._version`), so that looking costs nothing;
    a parameter that is thawed and trained later, as by gradual unfreezing, is in the model state from then
    on.

    # Parameters

    path : `str`
        The file, which need not exist yet.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        # Names of the parameters that the file holds, with the `_version` that it holds. None: not looked at
        # yet.
        self._written: Optional[Dict[str, int]] = None

    def leave_out(self, model: torch.nn.Module, model_state: Dict[str, Any]) -> Dict[str, Any]:
        """
        # Parameters

        model : `torch.nn.Module`
            Its frozen parameters are written to the file at the first call, unless there is one.
        model_state : `Dict[str, Any]`
            What `model.state_dict()` gave.

        # Returns

        `Dict[str, Any]`
            The model state without the parameters that the file holds.
        """
        frozen = {name: p for name, p in model.named_parameters() if not p.requires_grad and name in model_state}
        if self._written is None:
            self._written = self._find_or_write(frozen)
        return {
            name: value
            for name, value in model_state.items()
            if name not in frozen or self._written.get(name) != frozen[name]._version
        }

    def complete(self, model_state: Dict[str, Any]) -> Dict[str, Any]:
        """The model state with what was left out of it. What it holds itself is newer, and stays."""
        if not os.path.exists(self._path):
            return model_state
        return {**torch.load(self._path, map_location="cpu"), **model_state}

    def _find_or_write(self, frozen: Dict[str, torch.nn.Parameter]) -> Dict[str, int]:
        if os.path.exists(self._path):  # of a run that is being recovered
            found = torch.load(self._path, map_location="cpu")
        else:
            found = {name: parameter.detach() for name, parameter in frozen.items()}
            save_whole(found, self._path)
            logger.info("%d frozen parameters are in %s, not in the checkpoints", len(found), self._path)
        return {
            name: parameter._version
            for name, parameter in frozen.items()
            if name in found and torch.equal(found[name].to(parameter.device), parameter)
        }
