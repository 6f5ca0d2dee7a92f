"""AG's news: one text of a title and a description, one of four topics."""

from typing import Dict, List, Optional, Sequence

from allennlp.common.checks import ConfigurationError
from allennlp.data import DatasetReader, TokenIndexer, Tokenizer
from allennlp.data.tokenizers import LettersDigitsTokenizer

from elmo_tasks.common.excerpts import excerpt
from elmo_tasks.dataset_readers.data_path import DataFile
from elmo_tasks.dataset_readers.row_formats import (
    ColumnNames,
    CommaSeparated,
    Fields,
    JsonLines,
    ParseLine,
    RowFormat,
)
from elmo_tasks.dataset_readers.sentence_reader import SentenceReader

CLASS_NAMES = {"1": "World", "2": "Sports", "3": "Business", "4": "Sci/Tech"}
TEXT_COLUMNS = ("title", "description")


@DatasetReader.register("ag_news")
class AgNewsReader(SentenceReader):
    """
    Reads AG's news topics and other texts of several columns with a label:

    - `*.jsonl`, `*.json`: one JSON object a line, with the label under `class` or `label`;
    - all else: comma-separated `class`, `title` and `description` without header, as `train.csv` and `test.csv` of
      the corpus: a quoted value may hold commas, and double quotes written twice.

    The columns of the text are joined, with a blank between them; only a text that is blank as a whole is an error.
    A backslash becomes a blank: the corpus has it for the line breaks of a text (`two\\lines`), and before dollar
    signs. Ids are `train:17` for line 17 of `train.csv`.

    The corpus has an official test file but no dev part: `#train` and `#dev` of a path are taken from one file, as a
    stratified share.

    Registered as a `DatasetReader` with name "ag_news".

    # Parameters

    tokenizer : `Tokenizer`, optional (default = `LettersDigitsTokenizer()`)
        The corpus is raw text of one sentence or more. AllenNLP's `letters_digits` makes tokens of runs of letters, of
        runs of digits, and of each other character.
    token_indexers, max_tokens, lowercase_elmo, encoding, dev_share, split_seed, train_share, max_instances
        See `LabelledTextReader`.
    label_names : `Dict[str, str]`, optional
        Raw label to class; by default those of the corpus: `{"1": "World", "2": "Sports", "3": "Business", "4":
        "Sci/Tech"}`.
    text_columns : `List[str]`, optional (default = `["title", "description"]`)
        The columns, or keys of a JSON object, that are the text.

    # Raises

    `ConfigurationError`
        If `text_columns` names no column.

    # Source

    Zhang, Zhao and LeCun 2015, "Character-level convolutional networks for text classification".
    """

    def __init__(
        self,
        tokenizer: Optional[Tokenizer] = None,
        token_indexers: Optional[Dict[str, TokenIndexer]] = None,
        label_names: Optional[Dict[str, str]] = None,
        text_columns: Optional[List[str]] = None,
        max_tokens: Optional[int] = None,
        lowercase_elmo: bool = False,
        encoding: Optional[str] = None,
        dev_share: float = 0.1,
        split_seed: int = 0,
        train_share: float = 1.0,
        max_instances: Optional[int] = None,
    ) -> None:
        super().__init__(
            tokenizer or LettersDigitsTokenizer(),
            token_indexers=token_indexers,
            label_names=CLASS_NAMES if label_names is None else label_names,
            max_tokens=max_tokens,
            lowercase_elmo=lowercase_elmo,
            encoding=encoding,
            dev_share=dev_share,
            split_seed=split_seed,
            train_share=train_share,
            max_instances=max_instances,
        )
        self._text_columns = TEXT_COLUMNS if text_columns is None else tuple(text_columns)
        if not self._text_columns:
            raise ConfigurationError("`text_columns` must name at least one column, but is empty")

    def _row_format(self, file: DataFile, every_row: bool) -> RowFormat:
        if file.suffix in (".jsonl", ".json"):
            keys: ColumnNames = {column: (column,) for column in self._text_columns}
            return JoinedColumns(JsonLines(keys, {"class": ("class", "label")}), self._text_columns)
        if not set(self._text_columns) <= set(TEXT_COLUMNS):
            raise ConfigurationError(
                f"{file.given} has the text columns {', '.join(TEXT_COLUMNS)}, but `text_columns` is "
                f"{', '.join(self._text_columns)}; other columns are those of a `.jsonl` file"
            )
        return JoinedColumns(CommaSeparated(("class", *TEXT_COLUMNS)), self._text_columns)

    def _check_part(self, part: Optional[str]) -> None:
        if part == "test":
            raise ConfigurationError(
                "the part must be `#train` or `#dev`, but is `#test`; the test part is a file of its own, test.csv"
            )


class JoinedColumns:
    """
    Another format, several of whose columns are one text.

    # Parameters

    row_format : `RowFormat`
        Gives the columns, and `class`.
    text_columns : `Sequence[str]`
        What is joined, in this order.
    """

    def __init__(self, row_format: RowFormat, text_columns: Sequence[str]) -> None:
        self._row_format = row_format
        self._text_columns = text_columns
        self.expected = row_format.expected
        self.has_header = row_format.has_header

    def parser(self, header: str) -> ParseLine:
        """See `RowFormat`; the fields are `sentence` and `label`."""
        parse = self._row_format.parser(header)

        def joined(line: str) -> Fields:
            fields = parse(line)
            texts = [fields[column] for column in self._text_columns]
            for column, text in zip(self._text_columns, texts):
                if not isinstance(text, str):
                    raise ConfigurationError(f"`{column}` must be a string, but is {excerpt(text)}")
            return {"sentence": " ".join(texts).replace("\\", " "), "label": fields.get("class")}

        return joined
