"""A sweep as a study of Optuna, that several processes work on. The only module that needs Optuna."""

import contextlib
import json
import os
import re
import warnings
from pathlib import Path
from typing import Any, Dict, Iterator, List, Optional

import optuna
import sqlalchemy
from allennlp.common.checks import ConfigurationError
from filelock import FileLock, Timeout
from optuna.samplers import BaseSampler, TPESampler
from optuna.storages import BaseStorage, JournalStorage, RDBStorage, fail_stale_trials
from optuna.storages.journal import JournalFileBackend
from optuna.study import StudyDirection
from optuna.trial import FrozenTrial, TrialState

from elmo_tasks.commands.search_space import Overrides, SearchSpace
from elmo_tasks.commands.study_config import Config
from elmo_tasks.commands.sweep_config import objective
from elmo_tasks.common.config_changes import config_changes
from elmo_tasks.common.files import written_whole

JOURNAL = "study.journal"
LOCK = ".lock"
ACTIVATIONS = "activations"
BEST = "best.libsonnet"
_TRIAL = re.compile(r"trial_\d+(\.lock)?")

# Of a trial whose training has failed, which is an answer too.
ERROR = "error"
# Seconds between two signs of life. After two without one, a database takes a trial for dead.
HEARTBEAT_INTERVAL = 60


class Sweep:
    """
    # Parameters

    directory : `Path`
        The folder of the trials. It is made if it is not there.
    config : `Dict[str, Any]`
        What all trials share (`sweep_config`).
    space : `SearchSpace`
    num_trials : `int`
        How many trials there shall be, over all processes.
    storage : `str`, optional (default = `None`)
        A URL of SQLAlchemy, or a path to a journal, which may be on a file system that machines share. `None`: a
        journal in the folder.
    name : `str`, optional (default = `"sweep"`)
        Of the study in the storage.

    # Raises

    `ConfigurationError`
        The folder holds something else; the storage cannot be opened, or has a study of this name with another config
        or search space; or the folder has trials that are not this study's.
    """

    def __init__(
        self,
        directory: Path,
        config: Config,
        space: SearchSpace,
        num_trials: int,
        storage: Optional[str] = None,
        name: str = "sweep",
    ) -> None:
        self.directory = directory
        self.config = config
        self.space = space
        self.num_trials = num_trials
        self.metric, direction = objective(config)
        self.direction = StudyDirection[direction.upper()]
        optuna.logging.set_verbosity(optuna.logging.ERROR)  # it would tell of each trial, beside the progress bar
        storage = storage or str(directory / JOURNAL)
        self._check_is_of_a_sweep(storage)
        directory.mkdir(parents=True, exist_ok=True)
        with self._lock():  # two processes that make the tables of one database disturb each other
            folders = [path for path in directory.glob("trial_*") if path.is_dir()]
            self.study = optuna.create_study(
                storage=_open_storage(storage),
                study_name=name,
                direction=self.direction,
                load_if_exists=True,
                sampler=_sampler(),
            )
            self._check_or_write_description()
        self._check_folders(folders)

    @property
    def taken(self) -> List[FrozenTrial]:
        """The trials that count: finished, under way, or failed in their training; not those of killed processes."""
        return [trial for trial in self.study.get_trials(deepcopy=False) if _counts(trial)]

    @property
    def finished(self) -> List[FrozenTrial]:
        """The trials that count and are not under way."""
        return [trial for trial in self.taken if trial.state.is_finished()]

    @property
    def ranked(self) -> List[FrozenTrial]:
        """The trials that have a figure, the best first."""
        complete = self.study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))
        sign = -1 if self.direction == StudyDirection.MAXIMIZE else 1
        return sorted(complete, key=lambda trial: (sign * trial.values[0], trial.number))

    def is_superfluous(self, number: int) -> bool:
        """
        Whether enough trials count that were begun before the one with this number. Processes that begin one at the
        same moment find out in this way who shall leave it: without a lock, whatever the storage.
        """
        return sum(trial.number < number for trial in self.taken) >= self.num_trials

    def trial_directory(self, number: int) -> Path:
        """The folder of one trial."""
        return self.directory / f"trial_{number}"

    @contextlib.contextmanager
    def marked_alive(self, number: int) -> Iterator[None]:
        """
        For `with`: other processes see that this one is at the trial, until the storage knows how it has ended.
        However it ends, the mark ends with it.
        """
        mark = self._mark(number)
        with self._lock():
            mark.acquire()
        try:
            yield
        finally:
            with self._lock():
                mark.release()
                _remove(mark)

    def end_dead_trials(self) -> None:
        """
        Ends the trials whose processes were killed: the folder shows it at once, a database when no sign of life has
        come for a while. Their settings are not tried again, since they may be what ended the process.
        """
        with _no_experimental_warnings():
            fail_stale_trials(self.study)
        for trial in self.study.get_trials(deepcopy=False, states=(TrialState.RUNNING,)):
            mark = self._mark(trial.number)
            with self._lock(), contextlib.suppress(Timeout):
                if os.path.exists(mark.lock_file):
                    mark.acquire(timeout=0)
                    self.study.tell(trial.number, state=TrialState.FAIL, skip_if_finished=True)
                    mark.release()
                    _remove(mark)

    def write_best(self, command: str) -> Optional[Path]:
        """
        # Parameters

        command : `str`
            What trains with the file.

        # Returns

        `Optional[Path]`
            The file with the overrides of the best trial, as `-o` takes it; `None` while no trial has a figure.
        """
        path = self.directory / BEST
        with self._lock():
            if not self.ranked:
                return None
            best = self.ranked[0]
            text = (
                f"// {self.metric} {best.values[0]:.6g}: trial {best.number}, the best of {len(self.finished)}.\n"
                f"// To train with these settings, and test once:\n//   {command}\n"
                f"{json.dumps(self.overrides_of(best), indent=2)}\n"
            )
            with written_whole(path) as partial, open(partial, "w", encoding="utf-8") as best_file:
                best_file.write(text)
        return path

    def overrides_of(self, trial: FrozenTrial) -> Overrides:
        """The settings of a trial, as `-o` takes them."""
        return self.space.overrides(trial.params)

    def _check_or_write_description(self) -> None:
        description = {"config": self.config, "space": self.space.description}
        old: Dict[str, Any] = self.study.user_attrs
        if not old:
            for key, value in description.items():
                self.study.set_user_attr(key, value)
            return
        changes = config_changes(old, description)
        if changes:
            raise ConfigurationError(
                f"the study {self.study.study_name!r} must be of the same config and search space, but "
                f"{'; '.join(changes[:10])}. Repeat the command that began it, or choose another folder, or another "
                "--study-name."
            )

    def _check_is_of_a_sweep(self, storage: str) -> None:
        """Without a lock: whatever processes that begin or join a sweep have made so far, is of a sweep."""
        names = os.listdir(self.directory) if self.directory.exists() else []
        if any(name in (JOURNAL, BEST) or _TRIAL.fullmatch(name) for name in names):
            return
        # The storage may be in the folder, with files beside it.
        own = (LOCK, ACTIVATIONS, BEST, os.path.basename(storage) or JOURNAL)
        others = sorted(name for name in names if not name.startswith(own))
        if others:
            raise ConfigurationError(
                f"{self.directory} must be new, empty or the folder of a sweep, but has {', '.join(others[:5])}"
            )

    def _check_folders(self, folders: List[Path]) -> None:
        known = {self.trial_directory(trial.number) for trial in self.study.get_trials(deepcopy=False)}
        foreign = sorted(set(folders) - known)
        if foreign:
            raise ConfigurationError(
                f"{self.directory} must have only trials of the study {self.study.study_name!r}, but has "
                f"{foreign[0].name}, which is not in its storage; choose another folder"
            )

    def _lock(self) -> FileLock:
        return FileLock(str(self.directory / LOCK))

    def _mark(self, number: int) -> FileLock:
        # Beside the folder of the trial, which training makes anew.
        return FileLock(f"{self.trial_directory(number)}.lock")


def _counts(trial: FrozenTrial) -> bool:
    return trial.state in (TrialState.COMPLETE, TrialState.RUNNING) or ERROR in trial.user_attrs


def _sampler() -> BaseSampler:
    with _no_experimental_warnings():
        # Takes settings that other processes are at for bad ones, so that they are not tried twice.
        return TPESampler(constant_liar=True)


def _open_storage(storage: str) -> BaseStorage:
    if "://" not in storage:
        Path(storage).parent.mkdir(parents=True, exist_ok=True)
        return JournalStorage(JournalFileBackend(storage))
    try:
        with _no_experimental_warnings():
            return RDBStorage(storage, heartbeat_interval=HEARTBEAT_INTERVAL)
    except sqlalchemy.exc.SQLAlchemyError as error:
        raise ConfigurationError(
            f"`--storage` must be a path, or a URL of a database that can be opened, but is {storage}: {error}"
        ) from error


@contextlib.contextmanager
def _no_experimental_warnings() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        yield


def _remove(mark: FileLock) -> None:
    with contextlib.suppress(FileNotFoundError):
        os.remove(mark.lock_file)
