"""Configs side by side: the settings in which they differ."""

import json
from typing import Any, List, NamedTuple, Optional

from elmo_tasks.commands.study_config import Config
from elmo_tasks.common.config_changes import flat_config
from elmo_tasks.common.environment import SOURCE_CHECKOUT

SHIPPED_CONFIGS = SOURCE_CHECKOUT / "training_configs"


class Setting(NamedTuple):
    """
    A setting and its values, as JSON.

    # Parameters

    key : `str`
        With dots, as in `-o`.
    base : `Optional[str]`
        `None` where it is not set.
    values : `List[Optional[str]]`
        In each of the other configs.
    """

    key: str
    base: Optional[str]
    values: List[Optional[str]]


def differences(base: Config, configs: List[Config]) -> List[Setting]:
    """
    # Parameters

    base : `Dict[str, Any]`
    configs : `List[Dict[str, Any]]`

    # Returns

    `List[Setting]`
        Those that have another value in one of the configs than in the base, sorted by key. With an empty base, all.
    """
    flat_base, *flat = (flat_config(config) for config in (base, *configs))
    keys = sorted({key for config in (flat_base, *flat) for key in config})
    settings = [Setting(key, _as_json(flat_base, key), [_as_json(config, key) for config in flat]) for key in keys]
    return [setting for setting in settings if any(value != setting.base for value in setting.values)]


def shipped_config(config: Config) -> Optional[str]:
    """
    # Returns

    `Optional[str]`
        The path of the config that a source checkout of this package has for the data set of `config`.
    """
    path = SHIPPED_CONFIGS / f"{config.get('dataset_reader', {}).get('type')}.jsonnet"
    return str(path) if path.is_file() else None


def _as_json(config: Any, key: str) -> Optional[str]:
    return json.dumps(config[key], ensure_ascii=False) if key in config else None
