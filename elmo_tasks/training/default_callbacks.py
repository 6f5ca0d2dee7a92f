"""Puts our callbacks into every training run."""

import functools
from typing import Any

import allennlp.commands.find_learning_rate as find_learning_rate
import allennlp.training.gradient_descent_trainer as gradient_descent_trainer

from elmo_tasks.training.machine_record import MachineRecordCallback
from elmo_tasks.training.preflight import PreflightCallback, prepare_for_training
from elmo_tasks.training.resumption import ResumptionCallback


def install() -> None:
    """
    Adds the callbacks to those that AllenNLP's trainer takes by default, and prepares `find-lr` as `train`,
    since that command uses a trainer without ever starting it. May be called again.
    """
    for callback in (PreflightCallback, ResumptionCallback, MachineRecordCallback):
        if callback not in gradient_descent_trainer.DEFAULT_CALLBACKS:
            gradient_descent_trainer.DEFAULT_CALLBACKS += (callback,)  # type: ignore[assignment]

    search = find_learning_rate.search_learning_rate
    if hasattr(search, "__wrapped__"):
        return

    @functools.wraps(search)
    def prepared_search(trainer: gradient_descent_trainer.GradientDescentTrainer, *args: Any, **kwargs: Any) -> Any:
        prepare_for_training(trainer.model, trainer.data_loader, None)
        return search(trainer, *args, **kwargs)

    find_learning_rate.search_learning_rate = prepared_search
