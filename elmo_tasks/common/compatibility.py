"""
What AllenNLP 2.10.1 needs to run on today's libraries, and faults of its own that a training run should not
inherit.

AllenNLP is archived: its last release was written for torch 1.12, numpy 1 and Python 3.10. Each function
below is one cure. Its docstring says what breaks, since which version, and what the cure does. A cure looks
for the trouble, not for version numbers, and does nothing where there is none, as with AllenNLP's own pins.
They may be applied in any order and any number of times. `elmo_tasks` applies them at import; AllenNLP
imports plugins in every command and in every worker of distributed training.

The protection of `torch.load` stays on everywhere (`untrusted_files`): what a training state may hold is named,
nothing more.

Out of reach, since AllenNLP imports all of itself before any plugin: transformers 4.50 and newer,
huggingface_hub 1.0 and newer (`elmo_tasks.common.version_pairs`), and the NLTK and pkg_resources messages of
allennlp-models (README).
"""

import functools
import inspect
import io
import json
import logging
import multiprocessing
import os
import sys
import tarfile
import types
import warnings
from typing import Any, Callable, Dict, Iterator, List

import allennlp.commands.find_learning_rate as find_learning_rate
import allennlp.commands.predict as predict
import allennlp.commands.train as train
import allennlp.common.cached_transformers as cached_transformers
import allennlp.common.file_utils as file_utils
import allennlp.common.util as common_util
import allennlp.data.data_loaders.multiprocess_data_loader as multiprocess_data_loader
import allennlp.models.archival as archival
import allennlp.nn.parallel.ddp_accelerator as ddp_accelerator
import allennlp.training.gradient_descent_trainer as gradient_descent_trainer
import allennlp.training.learning_rate_schedulers.pytorch_lr_schedulers as pytorch_lr_schedulers
import allennlp.training.util as training_util
import numpy as np
import torch
from allennlp.common import Params
from allennlp.common.checks import ConfigurationError, check_for_gpu
from allennlp.training.callbacks.wandb import WandBCallback
from allennlp.training.moving_average import MovingAverage

from elmo_tasks.common.files import save_whole, written_whole
from elmo_tasks.common.replacement import replace_once

logger = logging.getLogger(__name__)


def apply() -> None:
    """Applies every cure."""
    for cure in CURES:
        cure()


def accept_verbose_in_reduce_on_plateau() -> None:
    """
    Scheduler `reduce_on_plateau`: "TypeError: unexpected keyword argument 'verbose'".

    AllenNLP hands `verbose` on to torch, which warns of it since 2.2 and knows it no more since 2.7. The
    scheduler's constructor drops it; its signature, which configs are checked against, stays.
    """
    parameters = inspect.signature(torch.optim.lr_scheduler.ReduceLROnPlateau.__init__).parameters
    if "verbose" in parameters and parameters["verbose"].default is False:
        return

    def without_verbose(constructor: Callable) -> Callable:
        def construct(self: Any, *args: Any, **kwargs: Any) -> None:
            options = dict(inspect.signature(constructor).bind(self, *args, **kwargs).arguments)
            options = {name: value for name, value in options.items() if name not in ("self", "verbose")}
            super(type_of_scheduler, self).__init__(torch.optim.lr_scheduler.ReduceLROnPlateau(**options))

        return construct

    type_of_scheduler = pytorch_lr_schedulers.ReduceOnPlateauLearningRateScheduler
    replace_once(type_of_scheduler, "__init__", without_verbose)


def allow_numpy_scalars_in_training_states() -> None:
    """
    `--recover`: "Weights only load failed ... numpy ... scalar".

    Since 2.6 `torch.load` refuses what is not on its list, and a training state may hold numpy numbers: the
    scheduler `cosine` computes learning rates with numpy, and metrics may come from numpy. Numpy's numbers
    and plain arrays join the list; they can hold data, not code.
    """
    add_safe_globals = getattr(torch.serialization, "add_safe_globals", None)
    if add_safe_globals is None:
        return
    # numpy 2 moved both; what a pickle names is the module that a function reports.
    core: Any = getattr(np, "_core", None) or np.core
    dtypes = {type(np.dtype(code)) for code in "?" + np.typecodes["AllInteger"] + np.typecodes["AllFloat"]}
    add_safe_globals([core.multiarray.scalar, core.multiarray._reconstruct, np.ndarray, np.dtype, *dtypes])


def use_the_new_names_of_amp() -> None:
    """
    "FutureWarning: `torch.cuda.amp.autocast(args...)` is deprecated", in each run and each worker.

    Since 2.4 torch warns of the names that the trainer calls, also with AMP off. The trainer gets the new
    ones.
    """
    if not hasattr(torch.amp, "GradScaler"):
        return
    amp: Any = types.SimpleNamespace(
        autocast=lambda enabled=True: torch.amp.autocast("cuda", enabled=enabled),
        GradScaler=functools.partial(torch.amp.GradScaler, "cuda"),
    )
    gradient_descent_trainer.amp = amp
    ddp_accelerator.amp = amp


def hide_announcements_to_developers() -> None:
    """
    Warnings about calls in AllenNLP, which its users cannot change.

    "You are using `torch.load` with `weights_only=False`", with torch 2.4 and 2.5; "TypedStorage is deprecated", since
    torch 2.0; "User provided device_type of 'cuda', but CUDA is not available", of AMP that is off, with older torch.
    """
    for message in (
        "You are using `torch.load` with `weights_only=False`",
        "TypedStorage is deprecated",
        "User provided device_type of 'cuda', but CUDA is not available",
    ):
        warnings.filterwarnings("ignore", message=message)


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


def load_tokenizers_of_transformers() -> None:
    """
    `pretrained_transformer`: "add_special_tokens conflicts with the method add_special_tokens in BertTokenizerFast".

    AllenNLP hands this flag to constructors of tokenizers, which refuse it, at the latest since transformers 4.44, and
    before only kept it: each call that makes tokens has a flag of its own. It is dropped.
    """

    def without_the_flag(get_tokenizer: Callable) -> Callable:
        def get_tokenizer_without_the_flag(model_name: str, **kwargs: Any) -> Any:
            kwargs.pop("add_special_tokens", None)
            return get_tokenizer(model_name, **kwargs)

        return get_tokenizer_without_the_flag

    replace_once(cached_transformers, "get_tokenizer", without_the_flag)


def write_tensor_caches_that_can_be_read() -> None:
    """
    `TensorCache`: "Weights only load failed" for what it wrote itself.

    It pickles with the newest protocol, and the protected `torch.load` (torch 2.6) reads protocol 2 only,
    which is also what `torch.save` takes by default. New entries use that; old caches have to be made anew.
    """
    pickle: Any = types.SimpleNamespace(**vars(file_utils.pickle))
    pickle.HIGHEST_PROTOCOL = 2
    file_utils.pickle = pickle


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


def name_wandb_runs() -> None:
    """
    Callback `wandb`: "module 'wandb.util' has no attribute 'generate_id'", with wandb 0.16 and newer.

    The function moved. The run gets an id of the same kind from us: eight random characters.
    """

    def with_run_id(on_start: Callable) -> Callable:
        def named_on_start(self: WandBCallback, *args: Any, **kwargs: Any) -> None:
            if self._run_id is None:
                self._run_id = os.urandom(4).hex()
            on_start(self, *args, **kwargs)

        return named_on_start

    replace_once(WandBCallback, "on_start", with_run_id)


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


def look_for_the_device_first() -> None:
    """
    `cuda_device: 0` on a machine without a GPU fails only after all data is read; so does AMP.

    AllenNLP looks at the device when it makes the trainer. The check comes before anything is read or
    written.
    """

    def with_device_check(create_serialization_dir: Callable) -> Callable:
        def checked_create_serialization_dir(params: Params, *args: Any, **kwargs: Any) -> None:
            _check_devices(params)
            create_serialization_dir(params, *args, **kwargs)

        return checked_create_serialization_dir

    replace_once(training_util, "create_serialization_dir", with_device_check)
    replace_once(find_learning_rate, "create_serialization_dir", with_device_check)


def _check_devices(params: Params) -> None:
    trainer, distributed = params.params.get("trainer") or {}, params.params.get("distributed") or {}
    check_for_gpu(trainer.get("cuda_device", -1))
    check_for_gpu(distributed.get("cuda_devices", -1))
    if trainer.get("use_amp") and not torch.cuda.is_available():
        raise ConfigurationError(
            "`trainer.use_amp` must be false without a GPU, but is true and this machine has none; remove it."
        )


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
    accept_verbose_in_reduce_on_plateau,
    allow_numpy_scalars_in_training_states,
    use_the_new_names_of_amp,
    hide_announcements_to_developers,
    hide_false_alarms,
    load_tokenizers_of_transformers,
    write_tensor_caches_that_can_be_read,
    share_the_lock_of_spawned_loader_workers,
    name_wandb_runs,
    keep_the_numbers_of_find_lr,
    look_for_the_device_first,
    write_metrics_whole,
    write_the_best_weights_whole,
    store_weights_in_archives,
    test_on_all_rows_after_distributed_training,
    let_predictors_see_what_is_not_utf8,
    keep_moving_averages_attached,
]
