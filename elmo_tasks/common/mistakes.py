"""
Mistakes of users that AllenNLP 2.10.1 takes no notice of, or reports late, or as if they were faults of its own.

Each function below is one cure; its docstring says what happens without it. They may be applied in any order and any
number of times. `elmo_tasks` applies them at import.
"""

import contextlib
import json
import os
import re
import types
from typing import Any, Callable, Dict, Iterator, List

import allennlp.commands.find_learning_rate as find_learning_rate
import allennlp.commands.train as train
import allennlp.common.params as common_params
import allennlp.training.util as training_util
import torch
from allennlp.common import Params
from allennlp.common.checks import ConfigurationError
from allennlp.data import Instance, Vocabulary
from allennlp.data.fields import LabelField, MetadataField

from elmo_tasks.common.config_checks import check_config, check_same_config
from elmo_tasks.common.excerpts import excerpt
from elmo_tasks.common.replacement import replace_once

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
    call_a_wrong_config_a_mistake,
    end_several_processes_by_the_mistake,
    name_the_row_of_an_unknown_label,
]
