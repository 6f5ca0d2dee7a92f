"""What two configs differ in, in words."""

from typing import Any, Dict, List

from allennlp.common import Params


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
    old_values, new_values = Params(old).as_flat_dict(), Params(new).as_flat_dict()
    return [
        f"`{key}` was {_value(old_values, key)}, but is {_value(new_values, key)}"
        for key in sorted({*old_values, *new_values})
        if key not in old_values or key not in new_values or old_values[key] != new_values[key]
    ]


def _value(values: Dict[str, Any], key: str) -> str:
    return repr(values[key]) if key in values else "not set"
