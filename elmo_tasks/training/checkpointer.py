"""Checkpoints that survive being killed at any moment, and that need not hold what never changes."""

import glob
import logging
import os
import pickle
from typing import Any, Dict, List, Optional, Tuple, Union

import torch
from allennlp.common.checks import ConfigurationError
from allennlp.common.util import is_distributed
from allennlp.training.checkpointer import Checkpointer
from allennlp.training.trainer import Trainer, TrainerCheckpoint

from elmo_tasks.common.environment import num_processes_of_a_machine
from elmo_tasks.common.files import PARTIAL_SUFFIX, save_whole
from elmo_tasks.training.frozen_parameters import FrozenParameters

logger = logging.getLogger(__name__)

# What `torch.load` raises for a file that is missing, empty, cut off or of another kind.
UNREADABLE = (OSError, EOFError, RuntimeError, pickle.UnpicklingError)


@Checkpointer.register("atomic")
class AtomicCheckpointer(Checkpointer):
    """
    Saves as AllenNLP's checkpointer does, and `allennlp train --recover` finds a checkpoint that it can load,
    whenever the run was killed.

    In distributed training the first process of each machine saves, and keeps its own folder tidy. A run recovers from
    the newest checkpoint that all processes can read: one machine may have been killed before it had the last one.

    A checkpoint is a pair of files, and counts from the moment that its model file is there: the training
    state is written first, and each file gets its name when its content is on the disk. If the newest pair
    cannot be read all the same, such as one that AllenNLP's own checkpointer left, the one before it serves,
    with a warning.

    AllenNLP writes the best weights after the checkpoint. A run that is killed between the two leaves a
    checkpoint of the best epoch and the `best.th` of another one, or none; it is put right when the run
    recovers.

    Registered as a `Checkpointer` with name "atomic".

    # Parameters

    serialization_dir : `Union[str, os.PathLike]`
        Given by the trainer; no entry in a config.
    save_completed_epochs : `bool`, optional (default = `True`)
    save_every_num_seconds : `float`, optional (default = `None`)
    save_every_num_batches : `int`, optional (default = `None`)
    keep_most_recent_by_count : `int`, optional (default = `2`)
    keep_most_recent_by_age : `int`, optional (default = `None`)
        All as in AllenNLP's `Checkpointer`.
    leave_out_frozen : `bool`, optional (default = `False`)
        Parameters that require no gradient, such as a frozen biLM, are written once, to
        `frozen_parameters.th`, and left out of the checkpoints. `best.th` and the archive are complete.
        Without effect on sharded models.

    # Raises

    `ConfigurationError`
        When a run recovers: there are checkpoints, and none that all processes can read.
    """

    def __init__(
        self,
        serialization_dir: Union[str, os.PathLike],
        save_completed_epochs: bool = True,
        save_every_num_seconds: Optional[float] = None,
        save_every_num_batches: Optional[int] = None,
        keep_most_recent_by_count: Optional[int] = 2,
        keep_most_recent_by_age: Optional[int] = None,
        leave_out_frozen: bool = False,
    ) -> None:
        super().__init__(
            serialization_dir,
            save_completed_epochs=save_completed_epochs,
            save_every_num_seconds=save_every_num_seconds,
            save_every_num_batches=save_every_num_batches,
            keep_most_recent_by_count=keep_most_recent_by_count,
            keep_most_recent_by_age=keep_most_recent_by_age,
        )
        self._leave_out_frozen = leave_out_frozen
        self._frozen = FrozenParameters(os.path.join(self._serialization_dir, "frozen_parameters.th"))

    @property
    def _is_primary(self) -> bool:
        # AllenNLP's is true for one process of all, and the folders of the other machines would grow.
        on_each = num_processes_of_a_machine()
        return self._rank == 0 if on_each is None else self._rank % on_each == 0

    def maybe_save_checkpoint(
        self, trainer: Trainer, num_epochs_completed: int, num_batches_in_epoch_completed: int
    ) -> bool:
        """
        # Returns

        `bool`
            Whether a checkpoint was saved whose model file may also serve as the best weights.
        """
        saved = super().maybe_save_checkpoint(trainer, num_epochs_completed, num_batches_in_epoch_completed)
        if saved:
            # AllenNLP notes this where it writes alone; but all processes wait for each other in the next one.
            self._last_save_num_epochs_completed = num_epochs_completed
            self._last_save_num_batches_in_epoch_completed = num_batches_in_epoch_completed
        # The trainer links the model file as `best.th`; told that there is none, it writes the whole model.
        return saved and not self._leave_out_frozen

    def save_checkpoint(self, trainer: Trainer) -> None:
        """Saves the trainer's state, whatever its time."""
        state = trainer.get_checkpoint_state()
        if state is not None:  # it is in all but the first process of distributed training
            model_state, trainer_state = state
            if self._leave_out_frozen and not self.state_is_sharded:
                model_state = self._frozen.leave_out(trainer.model, model_state)  # type: ignore[attr-defined]
            at = trainer_state["epochs_completed"], trainer_state["batches_in_epoch_completed"]
            for content, path in (
                (trainer_state, self._training_state_path(*at)),
                (model_state, self._model_state_path(*at)),
            ):
                save_whole(content, path)
        if is_distributed():
            # The one before it goes when every machine has this one.
            torch.distributed.barrier()
        # AllenNLP finds both files there and leaves them; it notes the time and removes old pairs.
        super().save_checkpoint(trainer)

    def load_checkpoint(self) -> Optional[TrainerCheckpoint]:
        """
        # Returns

        `Optional[TrainerCheckpoint]`
            Model and training state of the newest pair that can be read, or None if there is no pair.
        """
        if self._is_primary:
            for partial in glob.glob(os.path.join(glob.escape(self._serialization_dir), "*" + PARTIAL_SUFFIX)):
                os.remove(partial)
        newest_first = sorted(self._find_all_checkpoints(), reverse=True)
        errors: Dict[str, str] = {}
        for at in self._common(newest_first):
            path = self._model_state_path(*at)
            checkpoint: Optional[TrainerCheckpoint] = None
            error = ""
            try:
                checkpoint = self._load(at)
            except UNREADABLE as unreadable:
                error = _first_line(unreadable)
            # One that another process cannot read is none for this one either.
            errors_of_all = list(filter(None, _of_all_processes(error)))
            if errors_of_all or checkpoint is None:
                errors[path] = error or errors_of_all[0]
                continue
            # From here on its intervals are counted, as if this process had saved it.
            self._last_save_num_epochs_completed, self._last_save_num_batches_in_epoch_completed = at
            if errors:
                unreadable_ones = "; ".join(f"{path} ({error})" for path, error in errors.items())
                logger.warning("Recovering from %s, since newer checkpoints cannot be read: %s", path, unreadable_ones)
            if self._is_primary and not self.state_is_sharded:
                self._remove_what_is_left_over(newest_first, at)
            return self._with_best_weights(checkpoint)
        if errors:
            path, error = next(iter(errors.items()))
            raise ConfigurationError(
                f"{self._serialization_dir} must have a checkpoint that can be read, but has {len(errors)} "
                f"that cannot; the newest, {path}, fails with: {error}. To begin again, "
                f"train without --recover into another directory."
            )
        return None

    def _common(self, newest_first: List[Tuple[int, int]]) -> List[Tuple[int, int]]:
        """Those checkpoints of this process that all other processes have too."""
        of_all = _of_all_processes(newest_first)
        common = [at for at in newest_first if all(at in others for others in of_all)]
        if not common and any(of_all):
            found = "; ".join(
                f"process {rank} has {', '.join(f'e{epochs}_b{batches}' for epochs, batches in ats) or 'none'}"
                for rank, ats in enumerate(of_all)
            )
            raise ConfigurationError(
                f"all processes must have a checkpoint in common to recover from, but {found}; copy the model and "
                f"training states of the first machine to {self._serialization_dir} on the others"
            )
        newer = newest_first[: newest_first.index(common[0])] if common else []
        if newer:
            logger.warning(
                "Recovering from %s, the newest checkpoint that all machines have; this one has newer ones.",
                self._model_state_path(*common[0]),
            )
        return common

    def _remove_what_is_left_over(self, newest_first: List[Tuple[int, int]], current: Tuple[int, int]) -> None:
        """What cannot be gone on from, and what a process would have removed, or was removing, when it was killed."""
        current_index = newest_first.index(current)
        # AllenNLP would take the best weights of an epoch from the newest checkpoint that lies there.
        left_over = newest_first[:current_index]
        if self._keep_most_recent_by_count is not None and self._keep_most_recent_by_age is None:
            left_over += newest_first[current_index + self._keep_most_recent_by_count :]
        for at in left_over:
            self._remove_checkpoint(*at)
        for path in glob.glob(os.path.join(glob.escape(self._serialization_dir), "training_state_*.th")):
            if self._parse_training_state_path(path) not in newest_first:
                os.remove(path)

    def _load(self, at: Tuple[int, int]) -> TrainerCheckpoint:
        # To the CPU first: on the GPU, the model would have to fit in twice.
        model_state = torch.load(self._model_state_path(*at), map_location="cpu")
        trainer_state = torch.load(self._training_state_path(*at), map_location="cpu")
        return TrainerCheckpoint(self._frozen.complete(model_state), trainer_state)

    def _with_best_weights(self, checkpoint: TrainerCheckpoint) -> TrainerCheckpoint:
        """Writes `best.th` if the checkpoint is of the best epoch: the run may have been killed before."""
        model_state, trainer_state = checkpoint
        tracker, epochs_completed = trainer_state["metric_tracker"], trainer_state["epochs_completed"]
        # 0: there is no validation, and the last epoch is the best. Fewer: not every epoch is validated, and
        # the tracker's last word may be about an earlier one.
        is_of_validated_epoch = tracker["epoch_number"] in (0, epochs_completed)
        is_between_epochs = epochs_completed > 0 and trainer_state["batches_in_epoch_completed"] == 0
        if self.state_is_sharded or not (tracker["is_best_so_far"] and is_between_epochs and is_of_validated_epoch):
            return checkpoint
        path = os.path.join(self._serialization_dir, "best.th")
        if self._is_primary:
            averages = trainer_state.get("moving_average", {}).get("shadows", {})
            save_whole({**model_state, **_named_as_in(model_state, averages)}, path)
        return TrainerCheckpoint(model_state, {**trainer_state, "best_model_filename": path})


def _named_as_in(model_state: Dict[str, Any], averages: Dict[str, Any]) -> Dict[str, Any]:
    """In distributed training the averages carry the prefix of the wrapped model."""
    return {name if name in model_state else name[len("module.") :]: average for name, average in averages.items()}


def _of_all_processes(value: Any) -> List[Any]:
    """What each process has there, by rank."""
    if not is_distributed():
        return [value]
    values = [None] * torch.distributed.get_world_size()
    torch.distributed.all_gather_object(values, value)
    return values


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]
