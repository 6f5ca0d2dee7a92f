"""What the trials of a sweep train: a config of the user without its test part, and the choices of a trial put in."""

import copy
from typing import Tuple

from allennlp.common.checks import ConfigurationError
from allennlp.common.params import with_overrides

from elmo_tasks.commands.search_space import Overrides
from elmo_tasks.commands.study_config import Config, activation_caches, main_metric
from elmo_tasks.common.config_checks import check_config


def sweep_config(config: Config) -> Config:
    """
    # Parameters

    config : `Dict[str, Any]`
        A config of `allennlp train`, evaluated.

    # Returns

    `Dict[str, Any]`
        The config that all trials share: it has no test part, so that none can be looked at.

    # Raises

    `ConfigurationError`
        The config has no part to select on, or selects on the test part, or takes its vocabulary from it; or no
        trial could train with it (`check_config`).
    """
    check_config(config)
    if not config.get("validation_data_path"):
        raise ConfigurationError("`validation_data_path` must be set for a figure to select settings by, but is not")
    if config["validation_data_path"] == config.get("test_data_path"):
        raise ConfigurationError(
            "`validation_data_path`, which a sweep selects by, must be other data than `test_data_path`, but both are "
            f"{config['test_data_path']}"
        )
    if "test" in (config.get("datasets_for_vocab_creation") or []):
        raise ConfigurationError("`datasets_for_vocab_creation` must be without 'test' in a sweep, but has it")
    config = copy.deepcopy(config)
    config.pop("test_data_path", None)
    return {**config, "evaluate_on_test": False}


def objective(config: Config) -> Tuple[str, str]:
    """
    # Returns

    name : `str`
        In `metrics.json`, the figure that settings are selected by: the dev part's, at the epoch that it selects.
    direction : `str`
        "maximize" or "minimize".
    """
    metric = config["trainer"].get("validation_metric", "-loss")
    sign = (metric if isinstance(metric, str) else metric[0])[0]
    name = main_metric(config).replace("test_", "best_validation_", 1)
    return name, "maximize" if sign == "+" else "minimize"


def trial_config(config: Config, overrides: Overrides, cache_directory: str) -> Config:
    """
    # Parameters

    config : `Dict[str, Any]`
        What `sweep_config` gave.
    overrides : `Dict[str, Any]`
        The choices of a trial, as `-o` takes them.
    cache_directory : `str`
        For the activation caches that have no directory of their own.

    # Returns

    `Dict[str, Any]`
        A config of `allennlp train`.
    """
    config = with_overrides(config, overrides)
    for cache in activation_caches(config):
        if cache.get("directory") is None:
            cache["directory"] = cache_directory
    return config
