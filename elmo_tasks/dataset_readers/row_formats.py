"""From a line of a file to the named fields of a row."""

import csv
from typing import Any, Callable, Container, Dict, Iterable, Optional, Sequence, Tuple

from allennlp.common.checks import ConfigurationError
from typing_extensions import Protocol

from elmo_tasks.common.excerpts import excerpt, key_names
from elmo_tasks.common.json_text import parse_json

SEPARATOR = "_!_"

Fields = Dict[str, Any]
ParseLine = Callable[[str], Fields]
# For each field, the column names under which a file may hold it; the first that is there counts.
ColumnNames = Dict[str, Tuple[str, ...]]


class RowFormat(Protocol):
    """How the lines of one kind of file are read. `expected` says in words what the first line should be."""

    expected: str
    has_header: bool

    def parser(self, header: str) -> ParseLine:
        """
        # Parameters

        header : `str`
            The first line of the file if the format has a header, otherwise `""`.

        # Returns

        `Callable[[str], Dict[str, Any]]`
            Makes fields of a line. Raises a `ConfigurationError` that says what was expected and what was
            found if the line is not in this format.

        # Raises

        `ConfigurationError`
            If the header does not name what is needed.
        """
        ...


class LabelledLines:
    """
    `text_!_label`. The last separator counts, so that the text may hold others; an empty label is no label.

    # Parameters

    label_required : `bool`, optional (default = `True`)
        If `False`, a line without separator is a text without label.
    """

    expected = f"text and label in the form `text{SEPARATOR}label`"
    has_header = False

    def __init__(self, label_required: bool = True) -> None:
        self._label_required = label_required

    def parser(self, header: str) -> ParseLine:
        return self._parse

    def _parse(self, line: str) -> Fields:
        sentence, separator, label = line.rpartition(SEPARATOR)
        if separator:
            return {"sentence": sentence, "label": label}
        if self._label_required:
            raise ConfigurationError(f"must be {self.expected}, but is {excerpt(line)}")
        return {"sentence": line}


class PlainLines:
    """
    One text a line, all with the same label.

    # Parameters

    label : `str`
        The raw label.
    """

    expected = "text"
    has_header = False

    def __init__(self, label: str) -> None:
        self._label = label

    def parser(self, header: str) -> ParseLine:
        return lambda line: {"sentence": line, "label": self._label}


class TabSeparated:
    """
    Tab-separated values under a header. Quote characters are text.

    # Parameters

    required : `Dict[str, Tuple[str, ...]]`
        The fields that must be there, with the column names that they may have.
    optional : `Dict[str, Tuple[str, ...]]`
        The fields that may be missing.
    """

    has_header = True

    def __init__(self, required: ColumnNames, optional: ColumnNames) -> None:
        self._required = required
        self._columns = {**required, **optional}
        self.expected = f"a header of tab-separated columns with {_describe(required)}"

    def parser(self, header: str) -> ParseLine:
        columns = [name.strip() for name in header.split("\t")]
        positions: Dict[str, int] = {}
        for field, names in self._columns.items():
            present = _first_present(names, columns)
            if present is not None:
                positions[field] = columns.index(present)
            elif field in self._required:
                raise ConfigurationError(f"must be {self.expected}, but is {excerpt(header)}")

        def parse(line: str) -> Fields:
            values = line.split("\t")
            if len(values) != len(columns):
                raise ConfigurationError(
                    f"must have {len(columns)} tab-separated fields like the header, "
                    f"but has {len(values)}: {excerpt(line)}"
                )
            return {field: values[position] for field, position in positions.items()}

        return parse


class CommaSeparated:
    """
    Comma-separated values without header, one row a line. A value in double quotes may hold commas, and double
    quotes written twice; a backslash is text.

    # Parameters

    columns : `Sequence[str]`
        The names of the values, in their order.
    """

    has_header = False

    def __init__(self, columns: Sequence[str]) -> None:
        self._columns = columns
        self.expected = f"comma-separated {_quoted(columns, ', ')}"

    def parser(self, header: str) -> ParseLine:
        return self._parse

    def _parse(self, line: str) -> Fields:
        if len(line) > csv.field_size_limit():
            # The limit guards against a quote that never ends; here the end of the line ends it.
            csv.field_size_limit(len(line))
        try:
            (values,) = csv.reader([line], strict=True)
        except csv.Error as error:
            raise ConfigurationError(f"must be {self.expected}, but is {excerpt(line)} ({error})") from None
        if len(values) != len(self._columns):
            raise ConfigurationError(
                f"must be {self.expected}, but has {len(values)} comma-separated fields: {excerpt(line)}"
            )
        return dict(zip(self._columns, values))


class JsonLines:
    """
    One JSON object a line.

    # Parameters

    required, optional : `Dict[str, Tuple[str, ...]]`
        As for `TabSeparated`; the keys of the object are its columns.
    """

    has_header = False

    def __init__(self, required: ColumnNames, optional: ColumnNames) -> None:
        self._required = required
        self._columns = {**required, **optional}
        self.expected = f"one JSON object with {_describe(required)}"

    def parser(self, header: str) -> ParseLine:
        return self._parse

    def _parse(self, line: str) -> Fields:
        try:
            values = parse_json(line)
        except ValueError:
            values = None
        if not isinstance(values, dict):
            raise ConfigurationError(f"must be {self.expected}, but is {excerpt(line)}")
        fields: Fields = {}
        for field, names in self._columns.items():
            present = _first_present(names, values)
            if present is not None:
                fields[field] = values[present]
            elif field in self._required:
                raise ConfigurationError(f"must be {self.expected}, but has {key_names(values) or 'no keys'}")
        return fields


def _first_present(names: Iterable[str], columns: Container[str]) -> Optional[str]:
    return next((name for name in names if name in columns), None)


def _describe(columns: ColumnNames) -> str:
    return " and ".join(_quoted(names, " or ") for names in columns.values())


def _quoted(names: Iterable[str], conjunction: str) -> str:
    return conjunction.join(f"`{name}`" for name in names)
