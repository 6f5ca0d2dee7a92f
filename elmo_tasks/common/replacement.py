"""How functions of other libraries are replaced: once, and so that nobody who looks at them sees a difference."""

import functools
import inspect
from typing import Any, Callable


def replace_once(owner: Any, name: str, cure: Callable[[Callable], Callable]) -> None:
    """
    Puts `cure(original)` in the place of `owner.name`; signature and docstring stay as they are.

    # Parameters

    owner : `Any`
        A module or a class.
    name : `str`
        Of a function, a method or a class method. Where it was replaced before, nothing happens.
    cure : `Callable[[Callable], Callable]`
        Gets the original, a class method as the function that takes the class.
    """
    original = getattr(owner, name)
    if hasattr(original, "cured_by_elmo_tasks"):
        return
    is_class_method = inspect.isclass(owner) and inspect.ismethod(original)
    function = original.__func__ if is_class_method else original
    cured = functools.wraps(function)(cure(function))
    cured.cured_by_elmo_tasks = True  # type: ignore[attr-defined]
    setattr(owner, name, classmethod(cured) if is_class_method else cured)
