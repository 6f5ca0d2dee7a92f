"""JSON that comes from outside."""

import json
from typing import Any


def parse_json(text: str) -> Any:
    """
    `json.loads`, all of whose refusals are a `ValueError`.

    # Raises

    `ValueError`
        If the text is no JSON, is nested more deeply than Python can follow, or holds a number longer than Python
        reads. (`json` raises a `RecursionError` for the second.)
    """
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("the JSON is nested too deeply") from None
