import pytest

from elmo_tasks.common.excerpts import excerpt, key_names


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("a", "'a'"),
        ("a" * 90, "'" + "a" * 80 + " ...'"),
        ("\ud800\0\n", r"'\ud800\x00\n'"),
        (None, "None"),
        (["a", 3], "['a', 3]"),
        ([[[[[[[[1]]]]]]]], "[[[[[[[...]]]]]]]"),
        (list(range(9)), "[0, 1, 2, 3, 4, 5, ...]"),
    ],
)
def test_values_are_shown_as_python_writes_them_but_short(value, expected):
    assert excerpt(value) == expected


def test_what_is_nested_too_deeply_for_python_to_show_is_cut():
    value = []
    for _ in range(100_000):
        value = [value]
    assert excerpt(value) == "[[[[[[[...]]]]]]]"
    while value:  # nor could Python free it at once
        (value,) = value


def test_keys_are_named_in_backquotes_but_not_all_of_many():
    assert key_names(["a", "\ud800"]) == r"`a`, `\ud800`"
    assert key_names(map(str, range(1000))).startswith("`0`, `1`, ")
    assert len(key_names(["k" * 1000])) < 100
