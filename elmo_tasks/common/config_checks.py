"""What is wrong with a config of `allennlp train`: said before any data is read and anything is written."""

import difflib
import inspect
import logging
import os
from typing import Any, Dict, Iterable, List

import torch
from allennlp.common import Params
from allennlp.common.checks import ConfigurationError, check_for_gpu
from allennlp.models.archival import CONFIG_NAME
from allennlp.training.trainer import Trainer

from elmo_tasks.common.config_changes import config_changes

logger = logging.getLogger(__name__)

Config = Dict[str, Any]

# All that AllenNLP reads of `distributed`, in `train_model` and in its processes.
DISTRIBUTED_OPTIONS = ("cuda_devices", "num_nodes", "primary_address", "primary_port", "ddp_accelerator")
# No parameters of AllenNLP's trainers, but read all the same: by whatever builds them, and under an older name.
_UNNAMED_TRAINER_OPTIONS = ("type", "run_sanity_checks")
# Of the reader `bilm_text`: on these depends which words there are.
_OPTIONS_OF_WORDS = ("unit", "lowercase_share", "number_word", "source", "seed")


def check_config(config: Config) -> None:
    """
    # Parameters

    config : `Dict[str, Any]`
        A config of `allennlp train` or `allennlp find-lr`, evaluated.

    # Raises

    `ConfigurationError`
        An option of the trainer or of `distributed` is unknown, several machines are not told where to meet, a device
        is not there, or the words to predict are not those of the text.
    """
    trainer, distributed = _section(config, "trainer"), _section(config, "distributed")
    _check_options("trainer", trainer, _trainer_options(trainer))
    _check_options("distributed", distributed, DISTRIBUTED_OPTIONS)
    _check_meeting_point(distributed)
    _check_devices(trainer, distributed)
    _check_words(config)


def check_same_config(config: Config, serialization_dir: str) -> None:
    """
    # Parameters

    config : `Dict[str, Any]`
        As above, of a run that is to go on.
    serialization_dir : `str`
        Its folder. Where it holds no config, AllenNLP says so.

    # Raises

    `ConfigurationError`
        The run was begun with another config; with what differs.
    """
    path = os.path.join(serialization_dir, CONFIG_NAME)
    if not os.path.exists(path):
        return
    changes = config_changes(Params.from_file(path).params, config)
    if changes:
        raise ConfigurationError(
            f"{serialization_dir} must be recovered with the config that it was begun with, but "
            f"{'; '.join(changes[:10])}. Go on with its own config (`allennlp train {path} -s {serialization_dir} "
            "--recover`), or choose another folder."
        )


def _section(config: Config, name: str) -> Config:
    """What stands under `name`, where a text alone is a type; nothing where AllenNLP could not read it either."""
    section = config.get(name)
    if isinstance(section, str):
        return {"type": section}
    return section if isinstance(section, dict) else {}


def _trainer_options(trainer: Config) -> List[str]:
    """
    What the constructor of a trainer of AllenNLP takes. It has `**kwargs` that nobody reads, so that AllenNLP finds no
    misspelt option. Trainers of others may read theirs: they are not judged, and this list is empty.
    """
    try:
        trainer_class, constructor = Trainer.resolve_class_name(trainer.get("type") or Trainer.default_implementation)
    except ConfigurationError:  # AllenNLP will say so, or import it first
        return []
    if trainer_class.__module__.split(".")[0] != "allennlp":
        return []
    parameters = inspect.signature(getattr(trainer_class, constructor) if constructor else trainer_class).parameters
    named = [each.name for each in parameters.values() if each.kind not in (each.VAR_POSITIONAL, each.VAR_KEYWORD)]
    return [*_UNNAMED_TRAINER_OPTIONS, *named]


def _check_options(where: str, options: Config, known: Iterable[str]) -> None:
    known = sorted(known)
    unknown = [option for option in options if option not in known] if known else []
    if not unknown:
        return
    option = unknown[0]
    likely = difflib.get_close_matches(option, known, n=1)
    cure = f"did you mean `{likely[0]}`?" if likely else f"those are {', '.join(known)}"
    raise ConfigurationError(f"`{where}.{option}` must be one of the options that AllenNLP reads, but is none; {cure}")


def _check_meeting_point(distributed: Config) -> None:
    """Without an address each machine waits for the others at its own, silently, until torch gives up."""
    num_nodes = distributed.get("num_nodes", 1)
    if not isinstance(num_nodes, int) or num_nodes < 2:
        return
    for option in ("cuda_devices", "primary_address", "primary_port"):
        if distributed.get(option) is None:
            raise ConfigurationError(
                f"`distributed.{option}` must be set where `num_nodes` is {num_nodes}, but is not; each machine needs "
                "its own devices, and where they all meet, such as "
                '{"cuda_devices": [0, 1], "primary_address": "10.0.0.1", "primary_port": 29500}'
            )


def _check_words(config: Config) -> None:
    """
    The words of a language model are counted by a copy of its reader in the config, which an override of the reader
    does not reach: most words would be unknown, and the perplexity brilliant.
    """
    vocabulary, reader = _section(config, "vocabulary"), _section(config, "dataset_reader")
    if vocabulary.get("type") != "bilm_text" or reader.get("type") != "bilm_text":
        return
    counted = _section(vocabulary, "reader")
    for option in _OPTIONS_OF_WORDS:
        if counted.get(option) != reader.get(option):
            raise ConfigurationError(
                f"`vocabulary.reader.{option}` must be as `dataset_reader.{option}`, {reader.get(option)!r}, but is "
                f"{counted.get(option)!r}; an override must set both"
            )
    read, trained_on = vocabulary.get("data_path"), config.get("train_data_path")
    if read != trained_on:
        logger.warning(
            "The words to predict are those of `vocabulary.data_path`, %s, not of `train_data_path`, %s; an override "
            "sets both.",
            read,
            trained_on,
        )


def _check_devices(trainer: Config, distributed: Config) -> None:
    check_for_gpu(trainer.get("cuda_device", -1))
    check_for_gpu(distributed.get("cuda_devices", -1))
    if trainer.get("use_amp") and not torch.cuda.is_available():
        raise ConfigurationError(
            "`trainer.use_amp` must be false without a GPU, but is true and this machine has none; remove it."
        )
