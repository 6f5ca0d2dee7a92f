"""From the lines of a file to checked rows."""

from typing import Callable, List, NamedTuple, Optional, Sequence, Tuple

from allennlp.common.checks import ConfigurationError

from elmo_tasks.common.excerpts import excerpt
from elmo_tasks.dataset_readers.data_path import DataFile
from elmo_tasks.dataset_readers.labels import LabelNames
from elmo_tasks.dataset_readers.row_formats import Fields, ParseLine, RowFormat
from elmo_tasks.dataset_readers.text_lines import BLANKS, Warn

# Makes an id of the fields, the file and the line; the fields of a row that has none are empty.
MakeId = Callable[[Fields, DataFile, int], str]


class Row(NamedTuple):
    """One row of a data set: its id, where it stands, its text or texts, the name of its label or `None`."""

    id: str
    file: str
    line: int
    texts: Tuple[str, ...]
    label: Optional[str]


class RowParser:
    """
    What makes a line a row, and what happens to a line that is none.

    # Parameters

    text_fields : `Sequence[str]`
        The fields that hold text. It must not be blank.
    label_names : `LabelNames`
        Knows the labels.
    make_id : `Callable[[Fields, DataFile, int], str]`
        Makes the ids of rows.
    every_row : `bool`
        If `False`, a line that is no row is an error, but for blank lines, which are skipped and counted in
        one warning. If `True`, there is a row for each line: a blank line has blank texts; so has a malformed
        one, with one warning that counts these; an unknown label is no label. Only if there is no good row in
        a file with malformed ones, the first of them is an error.
    warn : `Callable[[str], None]`
        Gets the warnings.
    """

    def __init__(
        self,
        text_fields: Sequence[str],
        label_names: LabelNames,
        make_id: MakeId,
        every_row: bool,
        warn: Warn,
    ) -> None:
        self._text_fields = text_fields
        self._label_names = label_names
        self._make_id = make_id
        self._every_row = every_row
        self._warn = warn

    def rows(self, file: DataFile, lines: List[str], row_format: RowFormat) -> List[Row]:
        """
        # Parameters

        file : `DataFile`
            Where the lines come from.
        lines : `List[str]`
            All lines of the file.
        row_format : `RowFormat`
            How they are read.

        # Raises

        `ConfigurationError`
            With file and line, if a line is not what it must be; or if there is no row at all.
        """
        numbered = enumerate(lines, start=1)
        header = next(numbered, (1, ""))[1] if row_format.has_header else ""
        try:
            parse = row_format.parser(header)
        except ConfigurationError as error:
            raise ConfigurationError(f"{file.given}, line 1: {error}") from None

        rows: List[Row] = []
        num_blank = 0
        malformed: List[str] = []
        for number, line in numbered:
            if not line.strip(BLANKS):
                num_blank += 1
                if self._every_row:
                    rows.append(self._blank_row(file, number))
                continue
            try:
                rows.append(self._row(file, number, line, parse))
            except ConfigurationError as error:
                malformed.append(f"{file.given}, line {number}: {error}")
                if not self._every_row:
                    raise ConfigurationError(malformed[0]) from None
                rows.append(self._blank_row(file, number))

        if not rows:
            raise ConfigurationError(f"{file.given} must hold rows, but holds none: {_count(num_blank, 'blank line')}")
        if malformed:
            if len(malformed) + num_blank == len(rows):
                raise ConfigurationError(malformed[0])
            self._warn(f"read {_count(len(malformed), 'malformed row')} as blank; the first is {malformed[0]}")
        if num_blank and not self._every_row:
            self._warn(f"{file.given}: skipped {_count(num_blank, 'blank line')}")
        return rows

    def _row(self, file: DataFile, number: int, line: str, parse: ParseLine) -> Row:
        fields = parse(line)
        texts = tuple(self._text(name, fields[name]) for name in self._text_fields)
        try:
            label = self._label_names(fields.get("label"))
        except ConfigurationError:
            if not self._every_row:
                raise
            label = None
        return Row(self._make_id(fields, file, number), file.given, number, texts, label)

    def _text(self, name: str, text: object) -> str:
        if not isinstance(text, str):
            raise ConfigurationError(f"`{name}` must be a string, but is {excerpt(text)}")
        text = text.strip(BLANKS)
        if not text and not self._every_row:
            raise ConfigurationError(f"`{name}` must not be blank")
        return text

    def _blank_row(self, file: DataFile, number: int) -> Row:
        texts = ("",) * len(self._text_fields)
        return Row(self._make_id({}, file, number), file.given, number, texts, None)


def all_or_no_labels(rows: List[Row], every_row: bool) -> List[Row]:
    """
    Sees to it that rows can be batched: AllenNLP makes no batch of instances with and without a label.

    # Parameters

    rows : `List[Row]`
        The rows of a data set.
    every_row : `bool`
        Whether labels may be dropped, so that no row has one.

    # Raises

    `ConfigurationError`
        With file and line of the first row without label, if some rows have one and labels may not be
        dropped.
    """
    unlabelled = [row for row in rows if row.label is None]
    if not unlabelled or len(unlabelled) == len(rows):
        return rows
    if every_row:
        return [row._replace(label=None) for row in rows]
    raise ConfigurationError(
        f"{unlabelled[0].file}, line {unlabelled[0].line}: must have a label like other rows, but has none "
        f"({len(unlabelled)} of {len(rows)} rows have none)"
    )


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
