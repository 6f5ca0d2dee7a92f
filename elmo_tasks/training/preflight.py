"""Checks and preparations between the building of a trainer and its first epoch."""

import contextlib
import difflib
import itertools
import json
import os
import random
import re
import warnings
from typing import Any, Dict, Iterator, List, Optional, Set

import numpy as np
import torch
from allennlp.common.checks import ConfigurationError
from allennlp.data import DataLoader, Instance
from allennlp.models import Model
from allennlp.training.callbacks import TrainerCallback
from allennlp.training.gradient_descent_trainer import GradientDescentTrainer

from elmo_tasks.common.protocols import PreparesForTraining


@TrainerCallback.register("preflight")
class PreflightCallback(TrainerCallback):
    """
    Finds what would fail, or silently do nothing, before the first epoch instead of after it, and lets the
    modules of the model look at the data.

    Every training run has it while the plugin is loaded, unless `enable_default_callbacks` is false.

    Registered as a `TrainerCallback` with name "preflight".

    # Parameters

    serialization_dir : `str`
        Given by the trainer; the run's `config.json` is read there.

    # Raises

    `ConfigurationError`
        When training starts: `trainer.validation_metric` names a metric that the model does not have, or a
        regex of `trainer.optimizer.parameter_groups` or `trainer.no_grad` matches nothing.
    """

    def on_start(self, trainer: GradientDescentTrainer, is_primary: bool = True, **kwargs: Any) -> None:
        super().on_start(trainer, is_primary, **kwargs)
        check_validation_metric(trainer)
        check_parameter_regexes(trainer, _config_of_the_run(self.serialization_dir))
        prepare_for_training(trainer.model, trainer.data_loader, trainer._validation_data_loader)


def check_validation_metric(trainer: GradientDescentTrainer) -> None:
    """
    AllenNLP finds an unknown metric after the first epoch, with a message that names no other.

    Models that cannot tell their metrics before they have seen data are not judged.

    # Raises

    `ConfigurationError`
        The validation metric is none of the model's; with those that are.
    """
    if trainer._validation_data_loader is None:  # the metric is not used
        return
    known = _metric_names(trainer.model)
    if not known:
        return
    known |= {"loss"} if trainer.model.get_regularization_penalty() is None else {"loss", "reg_loss"}
    for factor, name in trainer._metric_tracker.tracked_metrics:
        if name not in known and not _appears_with_data(name, known):
            raise ConfigurationError(
                f"`trainer.validation_metric` must be a metric of {type(trainer.model).__name__} after + "
                f"(more is better) or - (less is better), but is {'+-'[factor < 0]}{name}; its metrics are "
                f"{', '.join(sorted(known))}."
            )


def _metric_names(model: Model) -> Set[str]:
    """The names in evaluation, where some models have more than in training; none if they need data."""
    was_training = model.training
    model.eval()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of means over nothing
            return set(model.get_metrics(reset=False))
    except Exception:  # whatever a model of others makes of having seen nothing
        return set()
    finally:
        model.train(was_training)


def _appears_with_data(name: str, known: Set[str]) -> bool:
    """Whether `name` may be of a label: before they see one, AllenNLP's span metrics have "-overall" only."""
    return any(other.endswith("overall") and name.startswith(other[: -len("overall")]) for other in known)


def check_parameter_regexes(trainer: GradientDescentTrainer, config: Dict[str, Any]) -> None:
    """
    A misspelt regex silently leaves its parameters to the default group, or trains what should be frozen.

    AllenNLP logs a line of it. Here it is an error, for models that have modules of ours. Configs of other
    models often hand on a list of alternatives, of which some match: for them only a list without any match
    is one.

    # Parameters

    trainer : `GradientDescentTrainer`
    config : `Dict[str, Any]`
        The run's config; empty if the trainer was not made from one.

    # Raises

    `ConfigurationError`
        A regex matches no parameter that is trained; with the regex and the names most like it.
    """
    trainer_config = config.get("trainer", {})
    optimizer_config = trainer_config.get("optimizer")
    groups = optimizer_config.get("parameter_groups") if isinstance(optimizer_config, dict) else None

    names = [name for name, _ in trainer.model.named_parameters()]
    # What a scheduler thaws later is in the optimizer too, so that `requires_grad` cannot tell.
    in_optimizer = {id(p) for group in trainer.optimizer.param_groups for p in group["params"]}
    trained = [name for name, p in trainer.model.named_parameters() if id(p) in in_optimizer]

    strict = any(type(module).__module__.split(".")[0] == "elmo_tasks" for module in trainer.model.modules())
    for regexes, options in groups or []:
        freezes = options.get("requires_grad") is False
        _check_regexes("trainer.optimizer.parameter_groups", regexes, names if freezes else trained, names, strict)
    _check_regexes("trainer.no_grad", trainer_config.get("no_grad") or [], names, names, strict)


def _check_regexes(where: str, regexes: List[str], wanted: List[str], names: List[str], strict: bool) -> None:
    idle = [regex for regex in regexes if not _matches(regex, wanted)]
    if not idle or (not strict and len(idle) < len(regexes)):
        return
    regex = idle[0]
    frozen = _matches(regex, names)
    if frozen:
        found = f"only parameters that are frozen, such as {frozen[0]}"
        cure = "train them"
    else:
        found = "no parameter"
        likely = difflib.get_close_matches(regex, names, n=5, cutoff=0)
        cure = f"correct it (the names most like it are {', '.join(likely)})"
    raise ConfigurationError(
        f"Each regex of `{where}` must match a parameter, but '{regex}' matches {found}; {cure}, or leave the regexes "
        f"""out: -o '{{"{where}": null}}'."""
    )


def _matches(regex: str, names: List[str]) -> List[str]:
    return [name for name in names if re.search(regex, name)]


def prepare_for_training(model: Model, data_loader: DataLoader, validation_data_loader: Optional[DataLoader]) -> None:
    """
    Calls `prepare_for_training` of every module that has it (`elmo_tasks.common.protocols`), and leaves the
    random states as they were, whatever reading the data does to them.
    """
    modules = [module for module in model.modules() if isinstance(module, PreparesForTraining)]
    if not modules:
        return
    loaders = [data_loader] if validation_data_loader is None else [data_loader, validation_data_loader]

    def training_instances() -> Iterator[Instance]:
        return iter(data_loader.iter_instances())

    def all_instances() -> Iterator[Instance]:
        return itertools.chain.from_iterable(loader.iter_instances() for loader in loaders)

    with _random_states_kept():
        for module in modules:
            module.prepare_for_training(training_instances, all_instances)


@contextlib.contextmanager
def _random_states_kept() -> Iterator[None]:
    python_state, numpy_state = random.getstate(), np.random.get_state()
    # A GPU that the model is not on stays untouched: loader workers cannot be forked once it is in use.
    cuda_devices = [torch.cuda.current_device()] if torch.cuda.is_initialized() else []
    try:
        with torch.random.fork_rng(cuda_devices):
            yield
    finally:
        random.setstate(python_state)
        np.random.set_state(numpy_state)


def _config_of_the_run(serialization_dir: Optional[str]) -> Dict[str, Any]:
    path = os.path.join(serialization_dir or "", "config.json")
    if not serialization_dir or not os.path.exists(path):  # a trainer that was made in Python
        return {}
    with open(path) as config_file:
        return json.load(config_file)
