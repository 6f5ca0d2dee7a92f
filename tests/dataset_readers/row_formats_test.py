import pytest
from allennlp.common.checks import ConfigurationError

from elmo_tasks.dataset_readers.row_formats import CommaSeparated, JsonLines, LabelledLines, PlainLines, TabSeparated

TEXT = {"sentence": ("sentence", "text")}
LABEL = {"label": ("label",)}


def test_last_separator_counts():
    parse = LabelledLines().parser("")
    assert parse("good _!_ fun_!_1") == {"sentence": "good _!_ fun", "label": "1"}
    assert parse("good_!_") == {"sentence": "good", "label": ""}


def test_line_without_separator_is_an_error_unless_labels_may_be_missing():
    with pytest.raises(ConfigurationError, match="`text_!_label`, but is 'good fun 1'"):
        LabelledLines().parser("")("good fun 1")
    assert LabelledLines(label_required=False).parser("")("good fun 1") == {"sentence": "good fun 1"}


def test_plain_lines_share_their_label():
    assert PlainLines("1").parser("")("a_!_0\tb") == {"sentence": "a_!_0\tb", "label": "1"}


def test_columns_are_found_by_name_in_any_order():
    parse = TabSeparated(TEXT, LABEL).parser("index\tlabel\ttext ")
    assert parse("7\t1\tfine") == {"sentence": "fine", "label": "1"}


def test_first_of_the_accepted_names_counts():
    assert TabSeparated(TEXT, LABEL).parser("text\tsentence")("a\tb") == {"sentence": "b"}
    assert JsonLines(TEXT, LABEL).parser("")('{"text": "a", "sentence": "b"}') == {"sentence": "b"}


def test_quotes_mean_nothing():
    parse = TabSeparated(TEXT, LABEL).parser("sentence\tlabel")
    assert parse('"so\t1') == {"sentence": '"so', "label": "1"}
    assert parse('"a" ""b"\t1') == {"sentence": '"a" ""b"', "label": "1"}


def test_header_without_a_needed_column_is_an_error():
    with pytest.raises(ConfigurationError, match=r"columns with `sentence` or `text`, but is 'label\\tline'"):
        TabSeparated(TEXT, LABEL).parser("label\tline")


@pytest.mark.parametrize(("line", "found"), [("fine", "has 1: 'fine'"), ("a\tb\t1", "has 3")])
def test_wrong_number_of_fields_is_an_error(line, found):
    with pytest.raises(ConfigurationError, match="must have 2 tab-separated fields.*" + found):
        TabSeparated(TEXT, LABEL).parser("sentence\tlabel")(line)


def test_quoted_values_hold_commas_doubled_quotes_and_backslashes():
    parse = CommaSeparated(("label", "text")).parser("")
    assert parse('"1","a, ""b""\\c"') == {"label": "1", "text": 'a, "b"\\c'}
    assert parse("1,") == {"label": "1", "text": ""}


@pytest.mark.parametrize("line", ['"1","a', '"1","a"b', "1", "1,a,b"])
def test_line_with_other_quotes_or_another_number_of_values_is_an_error(line):
    with pytest.raises(ConfigurationError, match="must be comma-separated `label`, `text`, but"):
        CommaSeparated(("label", "text")).parser("")(line)


def test_json_keeps_types_and_ignores_other_keys():
    parse = JsonLines(TEXT, LABEL).parser("")
    assert parse('{"label": 1, "sentence": "a \\u2028 b", "x": []}') == {"label": 1, "sentence": "a \u2028 b"}


@pytest.mark.parametrize(
    ("line", "found"), [("[1]", r"is '\[1\]'"), ("{", "is '{'"), ('{"txt": "a"}', "has `txt`"), ("{}", "has no keys")]
)
def test_other_json_is_an_error(line, found):
    with pytest.raises(ConfigurationError, match="one JSON object with `sentence` or `text`, but " + found):
        JsonLines(TEXT, LABEL).parser("")(line)


@pytest.mark.parametrize("line", ["[" * 100_000, '{"a": ' * 100_000, "1" * 10_000])
def test_json_that_python_cannot_read_is_an_error(line):
    with pytest.raises(ConfigurationError, match="must be one JSON object with `sentence` or `text`, but is") as error:
        JsonLines(TEXT, LABEL).parser("")(line)
    assert len(str(error.value)) < 300


def test_a_value_may_be_longer_than_the_csv_module_allows():
    text = "a" * 200_000
    assert CommaSeparated(("label", "text")).parser("")(f"1,{text}") == {"label": "1", "text": text}
