"""What two configs differ in, in words."""

from typing import Any, Dict, List


def flat_config(config: Dict[str, Any], prefix: str = "") -> Dict[str, Any]:
    """
    # Parameters

    config : `Dict[str, Any]`
        Settings that nest.
    prefix : `str`, optional (default = `""`)
        In front of each key.

    # Returns

    `Dict[str, Any]`
        Each setting under its key with dots, as in `-o`. An empty object is one too, unlike in AllenNLP's
        `as_flat_dict`: `trainer.moving_average: {}` takes a moving average.
    """
    flat: Dict[str, Any] = {}
    for key, value in config.items():
        if isinstance(value, dict) and value:
            flat.update(flat_config(value, f"{prefix}{key}."))
        else:
            flat[f"{prefix}{key}"] = value
    return flat


def config_changes(old: Dict[str, Any], new: Dict[str, Any]) -> List[str]:
    """
    # Parameters

    old, new : `Dict[str, Any]`
        Two configs, or other settings that nest.

    # Returns

    `List[str]`
        A phrase for each key that is not the same in both: "`trainer.num_epochs` was 3, but is 5". A key that is `null`
        is not the same as a missing one: without `trainer.checkpointer` there are checkpoints, with `null` none.
    """
    old_values, new_values = flat_config(old), flat_config(new)
    return [
        f"`{key}` was {_value(old_values, key)}, but is {_value(new_values, key)}"
        for key in sorted({*old_values, *new_values})
        if (key not in old_values or key not in new_values or old_values[key] != new_values[key])
        and not _is_filled(key, old_values, new_values)
    ]


def _is_filled(key: str, *flat_configs: Dict[str, Any]) -> bool:
    """An empty object that is there in the other config, too: what it has there says enough."""
    is_empty = any(values.get(key) == {} for values in flat_configs)
    return is_empty and any(other.startswith(f"{key}.") for values in flat_configs for other in values)


def _value(values: Dict[str, Any], key: str) -> str:
    return repr(values[key]) if key in values else "not set"
