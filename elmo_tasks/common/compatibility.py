"""
What AllenNLP 2.10.1 needs to run on today's libraries. (`faults` mends what it does wrong with any.)

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
import os
import types
import warnings
from typing import Any, Callable, List

import allennlp.common.cached_transformers as cached_transformers
import allennlp.common.file_utils as file_utils
import allennlp.nn.parallel.ddp_accelerator as ddp_accelerator
import allennlp.training.gradient_descent_trainer as gradient_descent_trainer
import allennlp.training.learning_rate_schedulers.pytorch_lr_schedulers as pytorch_lr_schedulers
import numpy as np
import torch
from allennlp.training.callbacks.wandb import WandBCallback

from elmo_tasks.common.replacement import replace_once


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


CURES: List[Callable[[], None]] = [
    accept_verbose_in_reduce_on_plateau,
    allow_numpy_scalars_in_training_states,
    use_the_new_names_of_amp,
    hide_announcements_to_developers,
    load_tokenizers_of_transformers,
    write_tensor_caches_that_can_be_read,
    name_wandb_runs,
]
