"""
What AllenNLP leaves half-written when a training run is killed, and cannot go on from.

Each function below is one cure, put in the place of what AllenNLP does; its docstring says what happens without it.
They may be applied in any order and any number of times. `elmo_tasks` applies them at import.
"""

import json
import logging
import os
import shutil
from typing import Any, Callable, Dict, List, Optional

import allennlp.commands.train as train
import allennlp.common.util as common_util
import allennlp.models as models
import allennlp.models.archival as archival
import allennlp.training.gradient_descent_trainer as gradient_descent_trainer
import allennlp.training.util as training_util
from allennlp.common import Params
from allennlp.common.meta import META_NAME, Meta
from allennlp.data import Vocabulary
from allennlp.training.moving_average import MovingAverage

from elmo_tasks.common.files import PARTIAL_SUFFIX, refusal_in_one_sentence, save_whole, written_whole
from elmo_tasks.common.replacement import replace_once

logger = logging.getLogger(__name__)

# All that a run has in its folder before its vocabulary.
_FIRST_FILES = {
    archival.CONFIG_NAME,
    archival.CONFIG_NAME + PARTIAL_SUFFIX,
    META_NAME,
    META_NAME + PARTIAL_SUFFIX,
    "out.log",
    "vocabulary" + PARTIAL_SUFFIX,
}


def apply() -> None:
    """Applies every cure."""
    for cure in CURES:
        cure()


def begin_again_where_nothing_was_learnt() -> None:
    """
    `--recover` of a run that was killed in its first moments: "does not exist", "doesn't contain a config.json. You
    probably gave the wrong directory", a JSON error, or a vocabulary without labels.

    A run counts as begun when its vocabulary is there. Where the folder is empty, or has nothing but what comes before
    the vocabulary, the run begins again, if its config is the same or was not written yet. Any other folder is left to
    AllenNLP, which says what is wrong with it.
    """

    def from_the_start(train_model: Callable) -> Callable:
        def train_from_the_start(
            params: Params, serialization_dir: Any, recover: bool = False, *args: Any, **kwargs: Any
        ) -> Any:
            if recover and _is_barely_begun(serialization_dir):
                if _is_json(os.path.join(serialization_dir, archival.CONFIG_NAME)):
                    training_util.create_serialization_dir(params, serialization_dir, recover=True, force=False)
                logger.info("The run in %s had not begun; it begins again.", serialization_dir)
                _empty(serialization_dir)
                recover = False
            return train_model(params, serialization_dir, recover, *args, **kwargs)

        return train_from_the_start

    replace_once(train, "train_model", from_the_start)


def _is_barely_begun(folder: str) -> bool:
    return os.path.isdir(folder) and set(os.listdir(folder)) <= _FIRST_FILES


def _is_json(path: str) -> bool:
    try:
        with open(path, encoding="utf-8") as file:
            json.load(file)
    except (FileNotFoundError, ValueError):
        return False
    return True


def _empty(folder: str) -> None:
    for name in os.listdir(folder):
        path = os.path.join(folder, name)
        if os.path.isdir(path):
            shutil.rmtree(path)
        else:
            os.remove(path)


def write_configs_whole() -> None:
    """
    A run that is killed while it writes `config.json`, which it does again each time it recovers, leaves half a file,
    and neither recovers nor makes an archive. A full disk ends it with an error that names no file, as it does for
    `meta.json`.

    Both files appear when they are complete (`written_whole`).
    """

    def config_whole(to_file: Callable) -> Callable:
        def config_to_file(self: Params, params_file: Any, *args: Any, **kwargs: Any) -> None:
            with written_whole(params_file) as partial:
                to_file(self, partial, *args, **kwargs)

        return config_to_file

    def version_whole(to_file: Callable) -> Callable:
        def version_to_file(self: Meta, path: Any) -> None:
            with written_whole(path) as partial:
                to_file(self, partial)

        return version_to_file

    replace_once(Params, "to_file", config_whole)
    replace_once(Meta, "to_file", version_whole)


def write_vocabularies_whole() -> None:
    """
    A run that is killed while it writes its vocabulary leaves some of its files; with several processes it recovers
    with those words and labels.

    The folder appears when it is complete. Where there is one, its files are replaced, each as a whole.
    """

    def whole(save_to_files: Callable) -> Callable:
        def save_to_files_whole(self: Vocabulary, directory: Any) -> None:
            directory = os.fspath(directory).rstrip(os.sep)
            partial = directory + PARTIAL_SUFFIX
            shutil.rmtree(partial, ignore_errors=True)
            with refusal_in_one_sentence(directory):
                save_to_files(self, partial)
            try:
                os.replace(partial, directory)
            except OSError:  # there is one, and it is not empty
                for name in os.listdir(partial):
                    os.replace(os.path.join(partial, name), os.path.join(directory, name))
                os.rmdir(partial)

        return save_to_files_whole

    replace_once(Vocabulary, "save_to_files", whole)


def write_archives_whole() -> None:
    """
    A run that is killed while it writes `model.tar.gz` leaves half a file that looks like a finished model.

    The file appears when it is complete (`written_whole`).
    """

    def whole(archive_model: Callable) -> Callable:
        def archive_model_whole(
            serialization_dir: Any,
            weights: str = archival._DEFAULT_WEIGHTS,
            archive_path: Any = None,
            include_in_archive: Optional[List[str]] = None,
        ) -> str:
            path = os.fspath(archive_path or serialization_dir)
            path = os.path.join(path, "model.tar.gz") if os.path.isdir(path) else path
            with written_whole(path) as partial:
                archive_model(serialization_dir, weights, partial, include_in_archive)
            return path

        return archive_model_whole

    replace_once(archival, "archive_model", whole)
    train.archive_model = models.archive_model = archival.archive_model


def write_metrics_whole() -> None:
    """
    A run that is killed while it writes `metrics_epoch_3.json` or `metrics.json` leaves half a file.

    The file appears when it is complete (`written_whole`).
    """

    def whole(dump_metrics: Callable) -> Callable:
        def dump_metrics_whole(file_path: Any, metrics: Dict[str, Any], log: bool = False) -> None:
            if not file_path:
                return dump_metrics(file_path, metrics, log=log)
            with written_whole(file_path) as partial:
                return dump_metrics(partial, metrics, log=log)

        return dump_metrics_whole

    replace_once(common_util, "dump_metrics", whole)


def write_the_best_weights_whole() -> None:
    """
    A run that is killed while it writes `best.th` leaves half a file, and no archive can be made of it.

    The file appears when it is complete (`written_whole`).
    """

    def whole(_: Callable) -> Callable:
        def save_model_state_whole(self: gradient_descent_trainer.GradientDescentTrainer, path: str) -> None:
            model = self.model if self._ddp_wrapped_model is None else self._ddp_wrapped_model
            save_whole(model.state_dict(), path)

        return save_model_state_whole

    replace_once(gradient_descent_trainer.GradientDescentTrainer, "_save_model_state", whole)


def keep_moving_averages_attached() -> None:
    """
    `--recover` with a moving average: the averages are taken of parameters that nothing trains any more.

    AllenNLP replaces the list of the model's parameters by copies from the file. Ours copies the averages,
    and leaves the averaging attached to the model.
    """

    def in_place(load_state_dict: Callable) -> Callable:
        def load_averages(self: MovingAverage, state_dict: Dict[str, Any]) -> None:
            for kept, loaded in (
                (self._shadows, state_dict["shadows"]),
                (self._backups, state_dict["backups"]),
            ):
                for name, tensor in kept.items():
                    tensor.copy_(loaded[name])

        return load_averages

    replace_once(MovingAverage, "load_state_dict", in_place)


CURES: List[Callable[[], None]] = [
    begin_again_where_nothing_was_learnt,
    write_configs_whole,
    write_vocabularies_whole,
    write_archives_whole,
    write_metrics_whole,
    write_the_best_weights_whole,
    keep_moving_averages_attached,
]
