import pytest

from elmo_tasks.common.json_text import parse_json


def test_json_is_read():
    assert parse_json(' {"a": [1, null]} ') == {"a": [1, None]}


@pytest.mark.parametrize("text", ["", "{", "[" * 100_000, '{"a":' * 100_000, "1" * 10_000 + "x"])
def test_all_else_is_a_value_error(text):
    with pytest.raises(ValueError, match=r"."):
        parse_json(text)
