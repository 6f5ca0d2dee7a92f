"""What a study trains: a config of the user, with the parts of one fold and one seed put into it."""

import copy
import inspect
import os
from typing import Any, Dict, Iterator, List, Optional

from allennlp.common.checks import ConfigurationError
from allennlp.data import DatasetReader

from elmo_tasks.dataset_readers.data_path import parse_path

Config = Dict[str, Any]

DATA_PATHS = ("train_data_path", "validation_data_path", "test_data_path")
READERS = ("dataset_reader", "validation_dataset_reader")
# Of a reader: what decides into which part a row comes.
PARTITION_OPTIONS = ("type", "label_names", "encoding", "dev_share", "split_seed")
SEEDS = ("random_seed", "numpy_seed", "pytorch_seed")


def study_config(config: Config, num_folds: int, data: Optional[str]) -> Config:
    """
    # Parameters

    config : `Dict[str, Any]`
        A config of `allennlp train`, evaluated.
    num_folds : `int`
        0: the parts are those of the config (`own_parts_study_config`); otherwise see `fold_study_config`.
    data : `Optional[str]`
        Only with folds.

    # Returns

    `Dict[str, Any]`
        The config that all runs share.

    # Raises

    `ConfigurationError`
        The config, or one of the others, does not serve.
    """
    if num_folds:
        return fold_study_config(config, num_folds, data)
    if data is not None:
        raise ConfigurationError(f"`--data` must come with `--folds`, but stands alone: {data}")
    return own_parts_study_config(config)


def fold_study_config(config: Config, num_folds: int, data: Optional[str]) -> Config:
    """
    # Parameters

    config : `Dict[str, Any]`
        A config of `allennlp train`, evaluated. Its reader must have the options `fold` and `num_folds`, and take
        the parts of the fold from the end of a path: `#train`, `#dev` and `#test`.
    num_folds : `int`
    data : `Optional[str]`
        One path to the whole data set. `None`: the one that all data paths of the config have before their parts,
        or else the folder that they have in common.

    # Returns

    `Dict[str, Any]`
        The config that all runs share. Only the fold is missing.

    # Raises

    `ConfigurationError`
        There cannot be so many folds, the reader knows no folds, the config names no one path, or it has two readers
        that divide the data differently: rows to test on would be trained on.
    """
    if num_folds < 2:
        raise ConfigurationError(
            f"`--folds` must be at least 2, but is {num_folds}; without it, the parts are those of the config"
        )
    config = _with_test_figures(config)
    data = data or _one_path(config)
    config.update(zip(DATA_PATHS, (f"{data}#train", f"{data}#dev", f"{data}#test")))
    for reader in _readers(config):
        _check_fold_options(reader["type"])
        reader["num_folds"] = num_folds
        reader.pop("fold", None)
    _check_same_parts(_readers(config))
    return config


def own_parts_study_config(config: Config) -> Config:
    """
    # Parameters

    config : `Dict[str, Any]`
        A config of `allennlp train`, evaluated. Its own paths are kept.

    # Returns

    `Dict[str, Any]`
        The config that all runs share.

    # Raises

    `ConfigurationError`
        The config has no part to select on, none to test on, or the same for both.
    """
    for key in DATA_PATHS[1:]:
        if not config.get(key):
            raise ConfigurationError(
                f"`{key}` must be set for test figures of epochs that were selected on other data, but is not"
            )
    if config["validation_data_path"] == config["test_data_path"]:
        raise ConfigurationError(
            "`test_data_path` must be other data than `validation_data_path`, which selects the epoch, but both are "
            f"{config['test_data_path']}; such figures would be too good"
        )
    return _with_test_figures(config)


def run_config(shared: Config, fold: Optional[int], seed: int, cache_directory: str) -> Config:
    """
    # Parameters

    shared : `Dict[str, Any]`
        What `study_config` gave.
    fold : `Optional[int]`
        The fold to test on; `None`: the parts are the config's own.
    seed : `int`
        For the random numbers of Python, numpy and torch alike.
    cache_directory : `str`
        For the activation caches that have no directory of their own.

    # Returns

    `Dict[str, Any]`
        A config of `allennlp train`.
    """
    config = copy.deepcopy(shared)
    config.update(dict.fromkeys(SEEDS, seed))
    if fold is not None:
        for reader in _readers(config):
            reader["fold"] = fold
    for cache in activation_caches(config):
        if cache.get("directory") is None:
            cache["directory"] = cache_directory
    return config


def activation_caches(config: Any) -> Iterator[Config]:
    """The activation caches of all ELMo embedders of this package in a config."""
    values: List[Any] = []
    if isinstance(config, dict):
        if config.get("type") == "elmo" and isinstance(config.get("cache"), dict):
            yield config["cache"]
        values = list(config.values())
    elif isinstance(config, list):
        values = config
    for value in values:
        yield from activation_caches(value)


def main_metric(config: Config) -> str:
    """The name, in `metrics.json`, of the test figure that belongs to the metric which selects the epoch."""
    metric = config["trainer"].get("validation_metric", "-loss")
    return "test_" + (metric if isinstance(metric, str) else metric[0]).lstrip("+-")


def _with_test_figures(config: Config) -> Config:
    return {**copy.deepcopy(config), "evaluate_on_test": True}


def _readers(config: Config) -> List[Config]:
    return [config[key] for key in READERS if config.get(key)]


def _check_fold_options(reader_type: str) -> None:
    options = inspect.signature(DatasetReader.by_name(reader_type)).parameters
    missing = [option for option in ("fold", "num_folds") if option not in options]
    if missing:
        raise ConfigurationError(
            f"the reader must have the options `fold` and `num_folds`, but {reader_type!r} lacks "
            f"{' and '.join(missing)}; without `--folds`, the parts are those of the config"
        )


def _check_same_parts(readers: List[Config]) -> None:
    for option in PARTITION_OPTIONS:
        values = []
        for reader in readers:
            known = inspect.signature(DatasetReader.by_name(reader["type"])).parameters
            values.append(reader.get(option, known[option].default if option in known else None))
        if any(value != values[0] for value in values):
            raise ConfigurationError(
                f"`{option}` must be the same in `{'` and `'.join(READERS)}`, or rows of the training part would be "
                f"tested on, but is {' and '.join(map(repr, values))}"
            )


def _one_path(config: Config) -> str:
    given = [config[key] for key in DATA_PATHS if config.get(key)]
    cure = "`--data` must name the whole data set by one path"
    if not given or not all(isinstance(path, str) for path in given):
        raise ConfigurationError(f"{cure}, since the data paths of the config are not all plain paths: {given}")
    locations = {parse_path(path)[0] for path in given}
    if len(locations) == 1:
        return locations.pop()
    folders = {os.path.dirname(location) for location in locations}
    if len(folders) > 1:
        raise ConfigurationError(f"{cure}, since those of the config have no folder in common: {given}")
    return folders.pop() or os.curdir
