"""Movie-review polarity: one sentence, one label."""

from typing import Dict, List, Optional

from allennlp.common.checks import ConfigurationError
from allennlp.data import DatasetReader, TokenIndexer, Tokenizer

from elmo_tasks.dataset_readers.data_path import DataFile, locate
from elmo_tasks.dataset_readers.row_formats import (
    ColumnNames,
    Fields,
    JsonLines,
    LabelledLines,
    PlainLines,
    RowFormat,
    TabSeparated,
)
from elmo_tasks.dataset_readers.rows import Row
from elmo_tasks.dataset_readers.sentence_reader import SentenceReader
from elmo_tasks.dataset_readers.splits import fold_parts
from elmo_tasks.dataset_readers.tokenizers import AsciiWhitespaceTokenizer

FILE_NAMES = ("rt-polarity.pos", "rt-polarity.neg")
RAW_LABELS = {".pos": "1", ".neg": "0"}


@DatasetReader.register("mr")
class MrReader(SentenceReader):
    """
    Reads the movie-review polarity corpus and other labelled sentences. The name of a file decides how it is
    read:

    - a folder: `rt-polarity.pos` and `rt-polarity.neg` in it, as the corpus is distributed;
    - `*.pos`, `*.neg`: a sentence a line, all with the raw label `1`, or `0`;
    - `*.tsv`: tab-separated columns under a header, without quoting;
    - `*.jsonl`, `*.json`: one JSON object a line;
    - all else: `text_!_label` lines.

    A label may be missing (`text_!_`, no such column, or blank); with `keep_every_row`, a line without `_!_`
    is a text without label. Ids are `pos:17`, or `rt_train:17` for line 17 of `rt_train.txt`.

    The corpus has no official parts. With `fold`, the path parts are those of a stratified k-fold
    cross-validation: `#test` is the fold, `#dev` a share of the rest, `#train` the remainder. Without it,
    they are `#train` and `#dev` alone.

    Registered as a `DatasetReader` with name "mr".

    # Parameters

    tokenizer : `Tokenizer`, optional (default = `AsciiWhitespaceTokenizer()`)
        The corpus is tokenized already.
    token_indexers, label_names, max_tokens, lowercase_elmo, encoding, dev_share, split_seed, train_share, max_instances
        See `LabelledTextReader`.
    fold : `int`, optional (default = `None`)
        The fold that is tested, from 0.
    num_folds : `int`, optional (default = `10`)
        The number of folds.
    sentence_column, label_column : `str`, optional (default = `"sentence"`, `"label"`)
        The columns of `.tsv` files and the keys of `.jsonl` files.

    # Raises

    `ConfigurationError`
        If `fold` is not one of the folds.

    # Source

    Pang and Lee 2005, "Seeing stars"; the ten folds as in Kim 2014, "Convolutional neural networks for
    sentence classification".
    """

    def __init__(
        self,
        tokenizer: Optional[Tokenizer] = None,
        token_indexers: Optional[Dict[str, TokenIndexer]] = None,
        label_names: Optional[Dict[str, str]] = None,
        max_tokens: Optional[int] = None,
        lowercase_elmo: bool = False,
        encoding: Optional[str] = None,
        dev_share: float = 0.1,
        split_seed: int = 0,
        train_share: float = 1.0,
        fold: Optional[int] = None,
        num_folds: int = 10,
        sentence_column: str = "sentence",
        label_column: str = "label",
        max_instances: Optional[int] = None,
    ) -> None:
        super().__init__(
            tokenizer or AsciiWhitespaceTokenizer(),
            token_indexers=token_indexers,
            label_names=label_names,
            max_tokens=max_tokens,
            lowercase_elmo=lowercase_elmo,
            encoding=encoding,
            dev_share=dev_share,
            split_seed=split_seed,
            train_share=train_share,
            max_instances=max_instances,
        )
        if num_folds < 2:
            raise ConfigurationError(f"`num_folds` must be at least 2, but is {num_folds}")
        if fold is not None and not 0 <= fold < num_folds:
            raise ConfigurationError(f"`fold` must be one of 0 to {num_folds - 1}, but is {fold}")
        self._fold = fold
        self._num_folds = num_folds
        self._required: ColumnNames = {"sentence": (sentence_column,)}
        self._optional: ColumnNames = {"label": (label_column,)}

    def _files(self, path: str) -> List[DataFile]:
        file = locate(path)
        if not file.local.is_dir():
            return [file]
        members = [file.member(name) for name in FILE_NAMES]
        missing = [member.name for member in members if not member.local.is_file()]
        if missing:
            raise ConfigurationError(
                f"{path} must hold {' and '.join(FILE_NAMES)}, but lacks {' and '.join(missing)}; "
                "other files are named with their path"
            )
        return members

    def _row_format(self, file: DataFile, every_row: bool) -> RowFormat:
        if file.suffix in RAW_LABELS:
            return PlainLines(RAW_LABELS[file.suffix])
        if file.suffix == ".tsv":
            return TabSeparated(self._required, self._optional)
        if file.suffix in (".jsonl", ".json"):
            return JsonLines(self._required, self._optional)
        return LabelledLines(label_required=not every_row)

    def _row_id(self, fields: Fields, file: DataFile, line: int) -> str:
        if file.suffix in RAW_LABELS:
            return f"{file.suffix[1:]}:{line}"
        return super()._row_id(fields, file, line)

    def _check_part(self, part: Optional[str]) -> None:
        if part == "test" and self._fold is None:
            raise ConfigurationError(
                "the part `#test` needs the option `fold`, since the corpus has no official test part"
            )
        if part is None and self._fold is not None and not self.keep_every_row:
            self._warn(
                f"`fold` is {self._fold}, but the data path names no part: all rows are read; "
                "a path that ends in #train, #dev or #test gives the parts of the fold"
            )

    def _parts(self, rows: List[Row]) -> List[str]:
        if self._fold is None:
            return super()._parts(rows)
        texts, labels = [row.texts[0] for row in rows], [row.label for row in rows]
        return fold_parts(texts, labels, self._fold, self._num_folds, self._dev_share, self._split_seed)

    def _train_salt(self) -> str:
        # The training parts of two folds have most rows in common; their shares shall not.
        return super()._train_salt() + ("" if self._fold is None else f" {self._fold}")
