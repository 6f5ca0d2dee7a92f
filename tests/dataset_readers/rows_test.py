from pathlib import Path

import pytest
from allennlp.common.checks import ConfigurationError

from elmo_tasks.dataset_readers.data_path import DataFile
from elmo_tasks.dataset_readers.labels import LabelNames
from elmo_tasks.dataset_readers.row_formats import LabelledLines, TabSeparated
from elmo_tasks.dataset_readers.rows import Row, RowParser, all_or_no_labels

FILE = DataFile("data/a.txt", Path("a.txt"))
TABLE = TabSeparated({"sentence": ("sentence",)}, {"label": ("label",)})


def parse(lines, row_format=None, every_row=False):
    """The rows as (line, text, label), and the warnings."""
    warnings = []
    parser = RowParser(
        ["sentence"], LabelNames(), lambda fields, file, line: f"{file.stem}:{line}", every_row, warnings.append
    )
    rows = parser.rows(FILE, lines, row_format or LabelledLines())
    assert [row.id for row in rows] == [f"a:{row.line}" for row in rows]
    return [(row.line, *row.texts, row.label) for row in rows], warnings


def test_lines_are_counted_from_one_and_the_header_counts():
    assert parse(["a_!_1", "b_!_0"])[0] == [(1, "a", "1"), (2, "b", "0")]
    assert parse(["sentence", "a", "b"], TABLE)[0] == [(2, "a", None), (3, "b", None)]


def test_ascii_blanks_around_a_text_are_dropped_and_others_kept():
    assert parse([" \x85a \x85\t_!_1 "])[0] == [(1, "\x85a \x85", "1")]


def test_blank_lines_are_skipped_with_one_warning():
    rows, warnings = parse(["", "a_!_1", " \t", "b_!_0"])
    assert rows == [(2, "a", "1"), (4, "b", "0")]
    assert warnings == ["data/a.txt: skipped 2 blank lines"]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("no separator", "`text_!_label`, but is 'no separator'"),
        (" _!_1", "`sentence` must not be blank"),
        ("a_!_good", "label must be one of '0', '1', but is 'good'"),
    ],
)
def test_malformed_row_is_an_error_with_file_and_line(line, message):
    with pytest.raises(ConfigurationError, match=rf"^data/a\.txt, line 3: .*{message}"):
        parse(["a_!_1", "", line, "b_!_0"])


def test_wrong_header_is_an_error_in_line_one():
    with pytest.raises(ConfigurationError, match=r"^data/a\.txt, line 1: must be a header"):
        parse(["text\tlabel", "a\t1"], TABLE, every_row=True)


@pytest.mark.parametrize(("lines", "row_format"), [([], None), (["", ""], None), (["sentence"], TABLE)])
def test_file_without_rows_is_an_error(lines, row_format):
    with pytest.raises(ConfigurationError, match=r"data/a\.txt must hold rows"):
        parse(lines, row_format)


def test_empty_file_lacks_the_header():
    with pytest.raises(ConfigurationError, match=r"line 1: must be a header.*but is ''"):
        parse([], TABLE)


def test_every_row_can_be_kept():
    lines = ["sentence\tlabel", "a\t1", "", "\t0", "b", "c\t7"]
    rows, warnings = parse(lines, TABLE, every_row=True)
    assert rows == [(2, "a", "1"), (3, "", None), (4, "", "0"), (5, "", None), (6, "c", None)]
    (warning,) = warnings
    assert warning.startswith("read 1 malformed row as blank; the first is data/a.txt, line 5: must have 2")


def test_file_in_which_every_row_is_malformed_is_an_error_even_if_all_are_kept():
    with pytest.raises(ConfigurationError, match="line 2: must have 2 tab-separated fields"):
        parse(["sentence\tlabel", "a", "", "b"], TABLE, every_row=True)


def test_all_rows_have_a_label_or_none():
    labelled, unlabelled = Row("a:1", "a", 1, ("x",), "1"), Row("a:2", "a", 2, ("y",), None)
    assert all_or_no_labels([labelled, labelled], every_row=False) == [labelled, labelled]
    assert all_or_no_labels([unlabelled], every_row=False) == [unlabelled]
    with pytest.raises(ConfigurationError, match=r"a, line 2: must have a label.*1 of 2 rows"):
        all_or_no_labels([labelled, unlabelled], every_row=False)
    kept = all_or_no_labels([labelled, unlabelled], every_row=True)
    assert [row.label for row in kept] == [None, None]
