"""Values from outside in the messages of errors: short, and in characters that can be shown."""

import reprlib
from typing import Any, Iterable

_MAX_CHARACTERS = 80
_REPR = reprlib.Repr()
_REPR.maxstring = _REPR.maxother = _REPR.maxlong = _MAX_CHARACTERS


def excerpt(value: Any) -> str:
    """
    # Returns

    `str`
        `repr(value)`, but of the beginning of a long text, and of the outer parts of what is nested deeply. What cannot
        be shown is escaped, as `repr` does.
    """
    if isinstance(value, str):
        return repr(_cut(value))
    return _cut(_REPR.repr(value))


def key_names(keys: Iterable[str]) -> str:
    """The keys of an object in backquotes; not all where they are many, nor all of a long one."""
    return _cut(", ".join(f"`{repr(key)[1:-1]}`" for key in keys))


def _cut(text: str) -> str:
    return text if len(text) <= _MAX_CHARACTERS else text[:_MAX_CHARACTERS] + " ..."
