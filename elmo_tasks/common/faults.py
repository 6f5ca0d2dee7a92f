"""
Faults of AllenNLP 2.10.1, with any libraries, that a run should not inherit.

Each function below is one cure; its docstring says what happens without it. They may be applied in any order and any
number of times. `elmo_tasks` applies them at import.
"""

import functools
import io
import json
import logging
import multiprocessing
import os
import sys
import tarfile
import types
from typing import Any, Callable, Dict, Iterator, List

import allennlp.commands.evaluate as evaluate
import allennlp.commands.find_learning_rate as find_learning_rate
import allennlp.commands.predict as predict
import allennlp.commands.train as train
import allennlp.common.logging as common_logging
import allennlp.common.util as common_util
import allennlp.data.data_loaders.multiprocess_data_loader as multiprocess_data_loader
import allennlp.models.archival as archival
import torch
from allennlp.common import Params
from allennlp.data import DataLoader

from elmo_tasks.common import user_errors
from elmo_tasks.common.files import reason
from elmo_tasks.common.replacement import replace_once

logger = logging.getLogger(__name__)


def apply() -> None:
    """Applies every cure."""
    for cure in CURES:
        cure()


def hide_false_alarms() -> None:
    """
    Two lines that AllenNLP logs as warnings whenever a run has several processes, though all is well.

    Their trainer gets its rank twice, and each reports that it completed the validation of an epoch.
    """
    for name, message in (
        ("allennlp.common.from_params", "Parameter local_rank for class GradientDescentTrainer was found in both"),
        ("allennlp.training.gradient_descent_trainer", "completed its entire epoch (validation)"),
    ):
        its_logger = logging.getLogger(name)
        if not any(isinstance(known, _FalseAlarm) for known in its_logger.filters):
            its_logger.addFilter(_FalseAlarm(message))


class _FalseAlarm(logging.Filter):
    """Lets everything pass but one message."""

    def __init__(self, message: str) -> None:
        super().__init__()
        self._message = message

    def filter(self, record: logging.LogRecord) -> bool:
        return self._message not in record.getMessage()


def share_the_lock_of_spawned_loader_workers() -> None:
    """
    Loader with `num_workers` and `start_method: "spawn"`: "A SemLock created in a fork context is being
    shared".

    The loader makes the lock of its progress bars in the default way of starting processes, on Linux by fork,
    whatever `start_method` says; Pythons before 3.11.5 fail with a FileNotFoundError in the worker instead. A
    lock that is made for spawned processes serves forked ones too.
    """
    mp: Any = types.SimpleNamespace(**vars(multiprocess_data_loader.mp))
    mp.RLock = multiprocessing.get_context("spawn").RLock
    multiprocess_data_loader.mp = mp


def test_on_all_rows_after_distributed_training() -> None:
    """
    `distributed` with `evaluate_on_test`: "Connection closed by peer", or a test figure of a part of the rows.

    AllenNLP's first process evaluates alone while the others have left, on the rows that were its share, and a
    metric then waits for the others. Here it leaves the group first and reads the test part whole.
    """

    def alone(finish: Callable) -> Callable:
        def finish_alone(self: train.TrainModel, metrics: Dict[str, Any]) -> None:
            loader = self.evaluation_data_loader
            if self.evaluate_on_test and common_util.is_distributed():
                torch.distributed.destroy_process_group()
                if isinstance(loader, multiprocess_data_loader.MultiProcessDataLoader):
                    loader.reader._set_distributed_info(None)  # type: ignore[has-type]
                    loader._instances = None
            finish(self, metrics)

        return finish_alone

    replace_once(train.TrainModel, "finish", alone)


def store_weights_in_archives() -> None:
    """
    `model.tar.gz` of a published biLM takes longer to write than an epoch over cached activations.

    AllenNLP compresses at the highest level, 12 s for 370 MB, and trained weights shrink by 7 % only. The archive stays
    a `.tar.gz` that every tar reads, with its content stored.
    """

    def stored(open_archive: Callable) -> Callable:
        def open_stored(name: Any, mode: str = "r") -> Any:
            return open_archive(name, mode, compresslevel=0) if mode == "w:gz" else open_archive(name, mode)

        return open_stored

    if archival.tarfile is tarfile:
        # The module uses nothing else of it.
        archival.tarfile = types.SimpleNamespace(open=tarfile.open)  # type: ignore[assignment]
    replace_once(archival.tarfile, "open", stored)


def let_predictors_see_what_is_not_utf8() -> None:
    """
    `allennlp predict`: "UnicodeDecodeError: 'utf-8' codec can't decode byte", without a file or a line.

    A byte that is no UTF-8 becomes a surrogate, so that `Predictor.load_line` can name its line.
    """

    def with_surrogates(open_compressed: Callable) -> Callable:
        return functools.partial(open_compressed, errors="surrogateescape")

    def of_stdin_too(get_json_data: Callable) -> Callable:
        def get_json_data_with_surrogates(self: Any) -> Iterator[Any]:
            if self._input_file == "-" and isinstance(sys.stdin, io.TextIOWrapper):
                sys.stdin.reconfigure(encoding="utf-8", errors="surrogateescape")
            yield from get_json_data(self)

        return get_json_data_with_surrogates

    replace_once(predict, "open_compressed", with_surrogates)
    replace_once(predict._PredictManager, "_get_json_data", of_stdin_too)


def evaluate_in_batches_of_the_size_that_is_asked_for() -> None:
    """
    `allennlp evaluate --batch-size 8` of a model whose config has a batch sampler: "batch_sampler option is mutually
    exclusive with batch_size".

    The size is the sampler's then.
    """

    def from_params(params: Params, **extras: Any) -> DataLoader:
        if "batch_size" in params and params.get("batch_sampler") is not None:
            sampler = params.pop("batch_sampler")
            sampler = {"type": sampler} if isinstance(sampler, str) else sampler.as_dict(quiet=True)
            params["batch_sampler"] = {**sampler, "batch_size": params.pop("batch_size")}
        return DataLoader.from_params(params=params, **extras)

    evaluate.DataLoader = types.SimpleNamespace(from_params=from_params)  # type: ignore[assignment,misc]


def keep_the_numbers_of_find_lr() -> None:
    """
    `allennlp find-lr` searches for minutes, then fails without matplotlib, and the numbers are lost.

    The table is written first, as `lr-losses.json` with the lists `learning_rates` and `losses`; without
    matplotlib one line says so, and the command ends well.
    """

    def with_table(save_plot: Callable) -> Callable:
        def save_table_and_plot(learning_rates: List[float], losses: List[float], save_path: str) -> None:
            table = os.path.splitext(save_path)[0] + ".json"
            with open(table, "w") as table_file:
                json.dump({"learning_rates": learning_rates, "losses": losses}, table_file)
            try:
                save_plot(learning_rates, losses, save_path)
            except ModuleNotFoundError:
                logger.warning("No plot without matplotlib; the numbers are in %s", table)

        return save_table_and_plot

    replace_once(find_learning_rate, "_save_plot", with_table)


def tell_once_that_the_log_cannot_be_written() -> None:
    """
    A run on a full disk: for each line of its log a traceback of some fifty, and the error that counts among them.

    The first one is told in a sentence. The console shows the same lines.
    """

    def told_once(prepare_global_logging: Callable) -> Callable:
        def prepare_logging(*args: Any, **kwargs: Any) -> None:
            prepare_global_logging(*args, **kwargs)
            user_errors.show_only_the_message(user_errors.log)  # its own way has taken the place of ours
            for handler in logging.getLogger().handlers:
                if isinstance(handler, logging.FileHandler):
                    handler.handleError = _ErrorsOfLog(handler)  # type: ignore[method-assign]

        return prepare_logging

    replace_once(common_logging, "prepare_global_logging", told_once)


class _ErrorsOfLog:
    """In place of `logging.Handler.handleError`."""

    def __init__(self, handler: logging.FileHandler) -> None:
        self._handler = handler
        self._is_told = False

    def __call__(self, record: logging.LogRecord) -> None:
        error = sys.exc_info()[1]
        if not isinstance(error, OSError):
            logging.Handler.handleError(self._handler, record)
        elif not self._is_told:
            self._is_told = True
            print(f"{self._handler.baseFilename} cannot be written and lacks lines: {reason(error)}", file=sys.stderr)


CURES: List[Callable[[], None]] = [
    hide_false_alarms,
    share_the_lock_of_spawned_loader_workers,
    test_on_all_rows_after_distributed_training,
    store_weights_in_archives,
    let_predictors_see_what_is_not_utf8,
    evaluate_in_batches_of_the_size_that_is_asked_for,
    keep_the_numbers_of_find_lr,
    tell_once_that_the_log_cannot_be_written,
]
