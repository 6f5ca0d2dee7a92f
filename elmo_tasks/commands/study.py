"""A study: many runs of one config in one folder, of which each has its own, and is finished or not."""

import contextlib
import json
import os
import re
from pathlib import Path
from typing import Any, Dict, Iterator, List, NamedTuple, Optional

from allennlp.common.checks import ConfigurationError
from filelock import FileLock, Timeout

from elmo_tasks.commands.study_config import Config, run_config
from elmo_tasks.common.config_changes import config_changes
from elmo_tasks.common.files import PARTIAL_SUFFIX, written_whole

DESCRIPTION = "study.json"
LOCK = ".lock"
ACTIVATIONS = "activations"

_FOLDER_OF_RUNS = re.compile(r"(fold|seed)_\d+")
# What a run has of an epoch, or of a part of one: figures and weights.
_LEARNT = ("metrics*.json", "*.th", "model.tar.gz")

# What only serves to continue a run, of every checkpointer.
CHECKPOINTS = ("model_state_*.th", "training_state_*.th", "frozen_parameters.th")


class Run(NamedTuple):
    """
    One training within a study.

    # Parameters

    fold : `Optional[int]`
        `None`: the parts are the config's own.
    seed : `int`
    directory : `Path`
    """

    fold: Optional[int]
    seed: int
    directory: Path

    @property
    def name(self) -> str:
        """For people."""
        return f"seed {self.seed}" if self.fold is None else f"fold {self.fold}, seed {self.seed}"

    @property
    def checkpoints(self) -> List[Path]:
        """The files from which it can be continued."""
        return sorted(path for pattern in CHECKPOINTS for path in self.directory.glob(pattern))

    @property
    def is_finished(self) -> bool:
        """Whether there is nothing left to do: removing the checkpoints is a run's last step."""
        return bool(self.metrics()) and not self.checkpoints

    def metrics(self) -> Dict[str, Any]:
        """The content of `metrics.json`; empty, unless it is complete: the figures of the test come last."""
        try:
            metrics = json.loads((self.directory / "metrics.json").read_text(encoding="utf-8"))
        except (FileNotFoundError, ValueError):
            return {}
        return metrics if any(name.startswith("test_") for name in metrics) else {}


class Study:
    """
    # Parameters

    directory : `Path`
    config : `Dict[str, Any]`
        What all runs share (`study_config`).
    num_folds : `int`
        0: the parts are the config's own.
    num_seeds : `int`
        The seeds are the numbers from 0.
    activations : `Path`, optional (default = `None`)
        The folder of the activation caches that name none; `None`: `activations` in the folder of the study.
    """

    def __init__(
        self, directory: Path, config: Config, num_folds: int, num_seeds: int, activations: Optional[Path] = None
    ) -> None:
        self.directory = directory
        self.config = config
        self.num_folds = num_folds
        self.seeds = list(range(num_seeds))
        self.activations = activations or directory / ACTIVATIONS

    @property
    def folds(self) -> List[Optional[int]]:
        """The folds; without them, one `None` in their place."""
        return list(range(self.num_folds)) or [None]

    @property
    def runs(self) -> List[Run]:
        """All runs. The folds of the first seed come first: an unfinished study soon has all of one seed."""
        return [self.run(fold, seed) for seed in self.seeds for fold in self.folds]

    def run(self, fold: Optional[int], seed: int) -> Run:
        """The run of one fold, `None` where there are none, and one seed."""
        folder = self.directory if fold is None else self.directory / f"fold_{fold}"
        return Run(fold, seed, folder / f"seed_{seed}")

    def config_of(self, run: Run) -> Config:
        """The config of one run, as `allennlp train` would have it."""
        return run_config(self.config, run.fold, run.seed, os.path.realpath(self.activations))

    @contextlib.contextmanager
    def opened(self) -> Iterator[None]:
        """
        For `with`: the folder is there, is of this study, and no other process works in it.

        # Raises

        `ConfigurationError`
            The folder holds something else, or the study of another config of which a run has learnt something, or
            another process works in it.
        """
        self.directory.mkdir(parents=True, exist_ok=True)
        lock = FileLock(str(self.directory / LOCK))
        try:
            lock.acquire(timeout=0)
        except Timeout:
            raise ConfigurationError(
                f"{self.directory} must be worked on by one process, but another one is at it; `--workers` trains "
                "several runs at once"
            ) from None
        try:
            self._check_or_write_description()
            yield
        finally:
            lock.release()

    def _check_or_write_description(self) -> None:
        path = self.directory / DESCRIPTION
        description = {"num_folds": self.num_folds, "config": self.config}
        if path.exists():
            old = json.loads(path.read_text(encoding="utf-8"))
            changes = config_changes(
                {"--folds": old["num_folds"], **old["config"]}, {"--folds": self.num_folds, **self.config}
            )
            if not changes:
                return
            # A first try whose config had to be mended.
            if has_learnt(self.directory):
                raise ConfigurationError(
                    f"{self.directory} must hold a study of the same config, but {'; '.join(changes[:10])}. Repeat the "
                    "command that began it, or choose another folder."
                )
        elif others := sorted(set(os.listdir(self.directory)) - {LOCK, DESCRIPTION + PARTIAL_SUFFIX}):
            raise ConfigurationError(
                f"{self.directory} must be new, empty or the folder of a study, but it has no {DESCRIPTION}, and has "
                f"{', '.join(others[:5])}"
            )
        with written_whole(path) as partial, open(partial, "w", encoding="utf-8") as description_file:
            json.dump(description, description_file, indent=2)


def has_learnt(directory: Path) -> bool:
    """Whether a study has more than what runs leave that failed, or were killed, in their first epoch."""
    names = set(os.listdir(directory)) - {LOCK, DESCRIPTION, DESCRIPTION + PARTIAL_SUFFIX, ACTIVATIONS}
    if not all(_FOLDER_OF_RUNS.fullmatch(name) for name in names):
        return True
    return any(
        True for place in ("seed_*", "fold_*/seed_*") for name in _LEARNT for _ in directory.glob(f"{place}/{name}")
    )
