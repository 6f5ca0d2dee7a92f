import inspect

from elmo_tasks.common.replacement import replace_once


class Counter:
    """Has one of each."""

    def count(self, start: int = 3) -> int:
        """Counts."""
        return start

    @classmethod
    def named(cls, name: str) -> str:
        """Names."""
        return f"{cls.__name__} {name}"


class Clock(Counter):
    pass


def twice(original):
    return lambda *args, **options: original(*args, **options) * 2


def test_a_function_is_replaced_once_and_looks_as_before():
    signature = inspect.signature(Counter.count)
    for _ in range(2):
        replace_once(Counter, "count", twice)
    assert Counter().count(4) == 8
    assert inspect.signature(Counter.count) == signature
    assert Counter.count.__doc__ == "Counts."


def test_a_class_method_still_gets_the_class_that_it_is_called_on():
    for _ in range(2):
        replace_once(Counter, "named", twice)
    assert Clock.named("a") == "Clock aClock a"
    assert Clock().named(name="b") == "Clock bClock b"
