"""
Faults of AllenNLP 2.10.1, with any libraries, that a run should not inherit.

Each function below is one cure; its docstring says what happens without it. They may be applied in any order and any
number of times. `elmo_tasks` applies them at import.
"""

import contextlib
import functools
import io
import json
import logging
import multiprocessing
import os
import re
import sys
import tarfile
import types
from typing import Any, Callable, Dict, Iterator, List

import allennlp.commands.evaluate as evaluate
import allennlp.commands.find_learning_rate as find_learning_rate
import allennlp.commands.predict as predict
import allennlp.commands.train as train
import allennlp.common.logging as common_logging
import allennlp.common.params as common_params
import allennlp.common.util as common_util
import allennlp.data.data_loaders.multiprocess_data_loader as multiprocess_data_loader
import allennlp.models.archival as archival
import allennlp.training.util as training_util
import torch
from allennlp.common import Params
from allennlp.common.checks import ConfigurationError
from allennlp.data import DataLoader, Instance, Vocabulary
from allennlp.data.fields import LabelField, MetadataField

from elmo_tasks.common import user_errors
from elmo_tasks.common.config_checks import check_config, check_same_config
from elmo_tasks.common.excerpts import excerpt
from elmo_tasks.common.files import reason
from elmo_tasks.common.replacement import replace_once

logger = logging.getLogger(__name__)

_OVERRIDE = "an override (`-o`)"
# At the end of a traceback.
_MISTAKE = re.compile(
    r"^allennlp\.common\.checks\.ConfigurationError: ((?:(?!^  File ).)*)\Z", re.MULTILINE | re.DOTALL
)


def apply() -> None:
    """Applies every cure."""
    for cure in CURES:
        cure()


def look_at_the_config_first() -> None:
    """
    A misspelt option of `trainer` or `distributed` is ignored without a word, and several machines without an address
    wait for each other. `cuda_device: 0` on a machine without a GPU fails only after all data is read; so does AMP.
    `--recover` with a config that has one more key than the folder ends in a bare KeyError.

    The checks come before any data is read and anything is written.
    """

    def with_checks(create_serialization_dir: Callable) -> Callable:
        def create_checked(params: Params, serialization_dir: Any, recover: bool, force: bool) -> None:
            check_config(params.params)
            if recover and not force:  # AllenNLP refuses both
                check_same_config(params.params, serialization_dir)
            create_serialization_dir(params, serialization_dir, recover, force)

        return create_checked

    replace_once(training_util, "create_serialization_dir", with_checks)
    replace_once(find_learning_rate, "create_serialization_dir", with_checks)


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


def call_a_wrong_config_a_mistake() -> None:
    """
    A folder where a config should be: "Something went wrong during jsonnet_evaluate_file, please report this", and the
    whole process ends (SIGABRT). What jsonnet finds wrong with a file or an override, and an override that does not
    fit, are errors like any other: RuntimeError, ValueError, TypeError, AttributeError.

    The path is looked at before jsonnet gets it, and all those become a `ConfigurationError`.
    """

    def of_a_file(evaluate_file: Callable) -> Callable:
        def evaluate_file_only(filename: str, **options: Any) -> str:
            if os.path.isdir(filename):
                raise ConfigurationError(f"{filename} must be a file of json(net), but is a folder")
            with _jsonnet_errors_told(filename):
                return _object(evaluate_file(filename, **options), filename)

        return evaluate_file_only

    def of_overrides(evaluate_snippet: Callable) -> Callable:
        def evaluate_overrides(filename: str, expression: str, **options: Any) -> str:
            with _jsonnet_errors_told(_OVERRIDE):
                return _object(evaluate_snippet(filename, expression, **options), _OVERRIDE)

        return evaluate_overrides

    def with_overrides_that_fit(from_file: Callable) -> Callable:
        def from_file_and_overrides(cls: Any, params_file: Any, *args: Any, **kwargs: Any) -> Params:
            try:
                return from_file(cls, params_file, *args, **kwargs)
            except json.JSONDecodeError:  # without jsonnet, a file that is none of JSON
                raise
            except ValueError as error:
                raise ConfigurationError(f"{_OVERRIDE} must fit {params_file}, but does not: {error}") from error

        return from_file_and_overrides

    replace_once(Params, "from_file", with_overrides_that_fit)
    replace_once(common_params, "evaluate_file", of_a_file)
    replace_once(common_params, "evaluate_snippet", of_overrides)


def _object(text: str, what: str) -> str:
    with contextlib.suppress(json.JSONDecodeError):  # without jsonnet, the file as it is
        value = json.loads(text)
        if not isinstance(value, dict):
            raise ConfigurationError(f"{what} must be an object of settings, but is {excerpt(value)}")
    return text


@contextlib.contextmanager
def _jsonnet_errors_told(what: str) -> Iterator[None]:
    try:
        yield
    except RuntimeError as error:
        raise ConfigurationError(f"{what} must be json(net), but jsonnet says: {str(error).strip()}") from error


def end_several_processes_by_the_mistake() -> None:
    """
    A mistake in a run of several processes: a `ProcessRaisedException` with a traceback of the process in its text.

    torch hands on no more than that text. A `ConfigurationError` at its end becomes one again.
    """

    def with_mistakes(spawn: Callable) -> Callable:
        def spawn_processes(*args: Any, **kwargs: Any) -> Any:
            try:
                return spawn(*args, **kwargs)
            except torch.multiprocessing.ProcessRaisedException as error:
                mistake = _MISTAKE.search(str(error))
                if mistake is None:
                    raise
                raise ConfigurationError(mistake.group(1).strip()) from error

        return spawn_processes

    if isinstance(train.mp, types.ModuleType):
        mp: Any = types.SimpleNamespace(**vars(train.mp))
        mp.spawn = with_mistakes(mp.spawn)
        train.mp = mp


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


def name_the_row_of_an_unknown_label() -> None:
    """
    A label of the dev or test part that the training part lacks: "KeyError: 'c' not found in vocab namespace 'labels'",
    without a file or a line.

    Both are told where the metadata of the row has them.
    """

    def telling(index_fields: Callable) -> Callable:
        def index_fields_telling(self: Instance, vocab: Vocabulary) -> None:
            try:
                index_fields(self, vocab)
            except KeyError:
                _check_labels(self, vocab)
                raise

        return index_fields_telling

    replace_once(Instance, "index_fields", telling)


def _check_labels(instance: Instance, vocab: Vocabulary) -> None:
    row: Dict[str, Any] = {}
    for field in instance.fields.values():
        if isinstance(field, MetadataField) and isinstance(field.metadata, dict):
            row.update(field.metadata)
    where = f"{row['file']}, line {row['line']}: " if row.get("file") and row.get("line") else ""
    for field in instance.fields.values():
        if isinstance(field, LabelField) and isinstance(field.label, str):
            known = vocab.get_token_to_index_vocabulary(field._label_namespace)
            if field.label not in known:
                raise ConfigurationError(
                    f"{where}the label must be one of those that the model was made for, "
                    f"{excerpt(list(known))}, but is {excerpt(field.label)}; "
                    "leave such rows out, or train with rows of this label"
                )


CURES: List[Callable[[], None]] = [
    look_at_the_config_first,
    hide_false_alarms,
    share_the_lock_of_spawned_loader_workers,
    test_on_all_rows_after_distributed_training,
    store_weights_in_archives,
    let_predictors_see_what_is_not_utf8,
    call_a_wrong_config_a_mistake,
    end_several_processes_by_the_mistake,
    evaluate_in_batches_of_the_size_that_is_asked_for,
    keep_the_numbers_of_find_lr,
    tell_once_that_the_log_cannot_be_written,
    name_the_row_of_an_unknown_label,
]
