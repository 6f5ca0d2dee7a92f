"""Trains the trials of a sweep, one after another, until all processes together have enough."""

import contextlib
import json
import math
import os
from typing import List, Set

from allennlp.common.checks import ConfigurationError
from allennlp.common.tqdm import Tqdm
from optuna import Trial

from elmo_tasks.commands.study import Run
from elmo_tasks.commands.study_runner import imports_out_of_garbage, named_log, train_run
from elmo_tasks.commands.sweep_config import trial_config
from elmo_tasks.commands.sweep_study import ACTIVATIONS, ERROR, Sweep

# A sweep finds settings; who trains with them has a model. The weights of all trials would fill the disk.
WEIGHTS = ("best.th", "model.tar.gz")
# So many trials that fail one after another are not the fault of their settings.
MAX_FAILURES_IN_TURN = 3


class SuperfluousTrialError(Exception):
    """Ends a trial that another process was faster with."""


class SweepRunner:
    """
    # Parameters

    sweep : `Sweep`
    command : `str`
        What trains with the best settings, for the file that holds them.
    include_package : `List[str]`
        For the processes of distributed training.
    """

    def __init__(self, sweep: Sweep, command: str, include_package: List[str]) -> None:
        self.sweep = sweep
        self._command = command
        self._include_package = include_package
        self._progress = Tqdm.tqdm(total=sweep.num_trials, desc="trials", unit="trial")
        self._said: Set[str] = set()
        self._failures_in_turn: List[str] = []
        # Of the trial under way; it ends when the storage has its figure.
        self._marks = contextlib.ExitStack()

    def run(self) -> None:
        """
        Trains trials until the sweep has as many as it shall have. A trial that fails counts as one, and is told.

        # Raises

        `ConfigurationError`
            Several trials failed one after another.
        """
        with self._progress, imports_out_of_garbage():
            self._show_progress()
            while self._is_trial_left():
                # What else a trial may raise, above all KeyboardInterrupt, ends it without being counted.
                with contextlib.ExitStack() as self._marks:
                    self.sweep.study.optimize(self.train, n_trials=1, catch=(Exception,))
                self.sweep.write_best(self._command)
                self._show_progress()
                if len(self._failures_in_turn) == MAX_FAILURES_IN_TURN:
                    raise ConfigurationError(
                        f"a trial must succeed now and then, but {MAX_FAILURES_IN_TURN} failed one after another; the "
                        f"last: {self._failures_in_turn[-1]}"
                    )

    def train(self, trial: Trial) -> float:
        """
        # Returns

        `float`
            The figure of a trial by which settings are selected.

        # Raises

        `Exception`
            What went wrong in its training, which is noted as its error; or a `SuperfluousTrialError`.
        """
        self._marks.enter_context(self.sweep.marked_alive(trial.number))
        if self.sweep.is_superfluous(trial.number):
            raise SuperfluousTrialError
        try:
            figure = self._figure(trial)
        except Exception as error:
            message = f"{type(error).__name__}: {error}"
            trial.set_user_attr(ERROR, message)
            self._failures_in_turn.append(message)
            log = named_log(self.sweep.trial_directory(trial.number))
            self._say(f"Trial {trial.number} has failed{log}: {message}")
            raise
        self._failures_in_turn.clear()
        return figure

    def _figure(self, trial: Trial) -> float:
        sweep = self.sweep
        overrides = sweep.space.overrides(sweep.space.suggest(trial))
        config = trial_config(sweep.config, overrides, os.path.realpath(sweep.directory / ACTIVATIONS))
        # Neither fold nor seed is of the run: both are as the config has them.
        run = Run(fold=None, seed=0, directory=sweep.trial_directory(trial.number))
        try:
            for warning in train_run(run, config, self._include_package):
                self._say(warning)
        finally:
            for path in (*run.checkpoints, *(run.directory / name for name in WEIGHTS)):
                path.unlink(missing_ok=True)
        figure = json.loads((run.directory / "metrics.json").read_text(encoding="utf-8"))[sweep.metric]
        if not math.isfinite(figure):
            raise ValueError(f"`{sweep.metric}` must be finite, but is {figure}")
        return float(figure)

    def _is_trial_left(self) -> bool:
        self.sweep.end_dead_trials()
        return len(self.sweep.taken) < self.sweep.num_trials

    def _show_progress(self) -> None:
        self._progress.n = len(self.sweep.finished)
        if self.sweep.ranked:
            self._progress.set_postfix(best=f"{self.sweep.ranked[0].values[0]:.4f}", refresh=False)
        self._progress.refresh()

    def _say(self, line: str) -> None:
        if line not in self._said:
            self._said.add(line)
            self._progress.write(line, file=self._progress.fp)
