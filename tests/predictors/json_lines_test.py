import json

import pytest
from allennlp.common.checks import ConfigurationError

from elmo_tasks.predictors.json_lines import JsonLinesPredictor


@pytest.fixture
def predictor():
    """Without a model, which no line needs."""
    predictor = JsonLinesPredictor.__new__(JsonLinesPredictor)
    predictor.accepted = "an object of some kind"
    predictor._num_lines = 0
    return predictor


def test_a_byte_order_mark_does_no_harm(predictor):
    assert predictor.load_line("\ufeff" + json.dumps({"a": 1})) == {"a": 1}


@pytest.mark.parametrize(
    ("line", "found"),
    [("{", r"'\{'"), ("[1]", r"\[1\]"), ("[" * 100_000, r"'\[\[\["), ("1" * 10_000, "'?111"), ("null", "None")],
)
def test_a_line_that_is_no_object_is_an_error_with_its_number(predictor, line, found):
    predictor.load_line("{}")
    with pytest.raises(
        ConfigurationError, match=rf"^line 2 of the input .* must be an object of some kind, but is {found}.*\.$"
    ) as error:
        predictor.load_line(line)
    assert len(str(error.value)) < 300


def test_a_byte_that_is_not_utf8_is_an_error_with_its_line(predictor):
    predictor.load_line("{}")
    line = b'{"a": "caf\xe9"}'.decode("utf-8", "surrogateescape")
    with pytest.raises(ConfigurationError, match=r"^line 2 of the input .* must be UTF-8, but byte e9 is not; convert"):
        predictor.load_line(line)


def test_advice_is_given_where_a_line_is_no_json_at_all(predictor):
    predictor.advice = "Try this."
    with pytest.raises(ConfigurationError, match=r"but is 'a,b'\. Try this\.$"):
        predictor.load_line("a,b")


def test_a_caller_who_knows_more_names_the_line(predictor):
    predictor.line_name = "the row"
    with pytest.raises(ConfigurationError, match=r"^the row must be"):
        predictor.load_line("[]")
