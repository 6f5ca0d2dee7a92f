"""What the readers of labelled text share: rows, parts, tokens and shards."""

import logging
import re
from abc import ABC, abstractmethod
from collections import Counter
from typing import Dict, Iterator, List, Optional, Set, Tuple

import torch.distributed as dist
from allennlp.common.checks import ConfigurationError
from allennlp.common.util import is_distributed
from allennlp.data import DatasetReader, Field, Instance, Token, TokenIndexer, Tokenizer
from allennlp.data.dataset_readers.dataset_reader import DatasetReaderInput
from allennlp.data.fields import LabelField, TextField
from allennlp.data.token_indexers import ELMoTokenCharactersIndexer

from elmo_tasks.common.excerpts import excerpt
from elmo_tasks.dataset_readers.data_path import DataFile, locate, parse_paths
from elmo_tasks.dataset_readers.labels import LabelNames, RawLabel
from elmo_tasks.dataset_readers.row_formats import Fields, RowFormat
from elmo_tasks.dataset_readers.rows import Row, RowParser, all_or_no_labels
from elmo_tasks.dataset_readers.splits import dev_share_parts, nested_share
from elmo_tasks.dataset_readers.text_lines import check_encoding, read_lines

PLACEHOLDER_TOKEN = "<blank>"

_SURROGATE = re.compile("[\ud800-\udfff]")

logger = logging.getLogger(__name__)


class LabelledTextReader(DatasetReader, ABC):
    """
    Base class of the readers of one sentence or several with a label.

    A path may be a local file, a URL or an archive member (`archive.zip!folder/file.txt`), or a list of them
    that is read as one data set. At its end, `#train`, `#dev` or `#test` chooses a part of the rows; without
    it, all rows are read.

    A file is read whole before the first instance comes, so that what is wrong with it is known before
    anything is computed; tokens are made as instances are asked for, each by one process of a distributed
    training and one worker of its loader. Either all rows that are read have a label or none.

    - A malformed row, a blank text in a row with other content, or an unknown label is an error that names
      file and line.
    - Blank lines are skipped, with one warning that counts them.
    - Half a character, which JSON can name (`\\ud800`), becomes U+FFFD.
    - A file without rows is an error.

    # Parameters

    tokenizer : `Tokenizer`
        Makes tokens of a text.
    token_indexers : `Dict[str, TokenIndexer]`, optional (default = `{"elmo": ELMoTokenCharactersIndexer()}`)
        How tokens become tensors.
    label_names : `Dict[str, str]`, optional (default = `{"0": "0", "1": "1"}`)
        The labels that may occur and the name of the class that each stands for. See `LabelNames`.
    max_tokens : `int`, optional (default = `None`)
        Longer texts lose their end, with one warning per file that counts them.
    lowercase_elmo : `bool`, optional (default = `False`)
        Lower-cases the text. The published biLMs know case and want it kept.
    encoding : `str`, optional (default = `None`)
        The encoding of the files. See `read_lines` for the default and for what happens to bytes that do not
        fit.
    dev_share : `float`, optional (default = `0.1`)
        The share of the rows that `#dev` holds, taken from each class alike.
    split_seed : `int`, optional (default = `0`)
        Another seed gives other parts. See `splits` for what membership depends on.
    train_share : `float`, optional (default = `1.0`)
        The share of the rows of `#train` that are read, taken from each class alike; a smaller share is a part of a
        larger one. Other parts, and paths without part, are read whole.
    max_instances : `int`, optional (default = `None`)
        Stops after this many instances; of a part, takes them from each class alike, since files may be sorted by
        class.

    # Raises

    `ConfigurationError`
        If an option is out of its range.
    """

    text_fields: Tuple[str, ...] = ()
    """The text fields of a row, in the order of the arguments of `text_to_instance`."""

    keep_every_row: bool = False
    """
    Set by the predictors: one instance for every row, so that outputs can be lined up with inputs. Blank
    lines are then kept; a blank text becomes `PLACEHOLDER_TOKEN`; so do the texts of a malformed row, with
    one warning that counts such rows. Only if every row is malformed it is still an error. Labels come along
    if every row has a known one, otherwise none does. A part (`#test`) has no blank or malformed rows, so
    that its members are the same as in training.
    """

    def __init__(
        self,
        tokenizer: Tokenizer,
        *,
        token_indexers: Optional[Dict[str, TokenIndexer]] = None,
        label_names: Optional[Dict[str, str]] = None,
        max_tokens: Optional[int] = None,
        lowercase_elmo: bool = False,
        encoding: Optional[str] = None,
        dev_share: float = 0.1,
        split_seed: int = 0,
        train_share: float = 1.0,
        max_instances: Optional[int] = None,
    ) -> None:
        super().__init__(max_instances, manual_distributed_sharding=True, manual_multiprocess_sharding=True)
        if max_tokens is not None and max_tokens < 1:
            raise ConfigurationError(f"`max_tokens` must be at least 1, but is {max_tokens}")
        if not 0 < dev_share < 1:
            raise ConfigurationError(f"`dev_share` must be between 0 and 1, but is {dev_share}")
        if not 0 < train_share <= 1:
            raise ConfigurationError(f"`train_share` must be above 0 and at most 1, but is {train_share}")
        if max_instances is not None and max_instances < 1:
            raise ConfigurationError(f"`max_instances` must be at least 1, but is {max_instances}")
        self._tokenizer = tokenizer
        self._token_indexers = token_indexers or {"elmo": ELMoTokenCharactersIndexer()}
        self._label_names = LabelNames(label_names)
        self._max_tokens = max_tokens
        self._lowercase = lowercase_elmo
        self._encoding = check_encoding(encoding)
        self._dev_share = dev_share
        self._split_seed = split_seed
        self._train_share = train_share
        self._given_warnings: Set[str] = set()

    def apply_token_indexers(self, instance: Instance) -> None:
        """Gives the text fields their indexers, which workers of a loader do not send along."""
        for field in instance.fields.values():
            if isinstance(field, TextField):
                field.token_indexers = self._token_indexers

    @abstractmethod
    def text_to_instance(  # type: ignore[override]
        self,
        *texts: str,
        label: Optional[RawLabel] = None,
        id: Optional[str] = None,
        line: Optional[int] = None,
        file: Optional[str] = None,
    ) -> Instance:
        """Makes the instance of a row; readers and predictors make instances in no other way."""

    # What each reader says about its data set.

    def _files(self, path: str) -> List[DataFile]:
        """The files that a path, without part, stands for."""
        file = locate(path)
        if file.local.is_dir():
            raise ConfigurationError(f"{path} must be a file, but is a folder")
        return [file]

    @abstractmethod
    def _row_format(self, file: DataFile, every_row: bool) -> RowFormat:
        """How the lines of this file are read; `every_row` if no row may be lost."""

    def _row_id(self, fields: Fields, file: DataFile, line: int) -> str:
        """An id that is unique in the data set. `fields` is empty for blank and malformed rows."""
        return f"{file.stem}:{line}"

    @abstractmethod
    def _check_part(self, part: Optional[str]) -> None:
        """Raises a `ConfigurationError` if the data set has no such part."""

    def _parts(self, rows: List[Row]) -> List[str]:
        """The part of each row."""
        return dev_share_parts(*_texts_and_labels(rows), self._dev_share, self._split_seed)

    def _train_salt(self) -> str:
        """What the rows that `train_share` keeps depend on, besides the rows."""
        return f"{self._split_seed} train"

    # What all of them do.

    def _read(self, file_path: DatasetReaderInput) -> Iterator[Instance]:
        paths, part = parse_paths(file_path)
        self._check_part(part)
        files = [file for path in paths for file in self._files(path)]
        for row_id, count in Counter(self._row_id({}, file, 1) for file in files).items():
            if count > 1:
                raise ConfigurationError(
                    f"files that are read together must differ in name, since row ids name them, but {count} of "
                    f"{paths} have the row {row_id}"
                )
        rows = self._rows(files, every_row=self.keep_every_row and part is None)
        if part is not None:
            rows = [row for row, its_part in zip(rows, self._parts(rows)) if its_part == part]
            if not rows:
                raise ConfigurationError(f"the part `{part}` of {', '.join(paths)} holds no rows")
            if part == "train" and self._train_share < 1:
                rows = self._share_of(rows, paths)
            rows = self._few_of(rows)
        self._warn_about_long_texts(rows)
        for row in self.shard_iterable(rows):
            yield self.text_to_instance(*row.texts, label=row.label, id=row.id, line=row.line, file=row.file)

    def _share_of(self, rows: List[Row], paths: List[str]) -> List[Row]:
        kept = [rows[index] for index in nested_share(*_texts_and_labels(rows), self._train_share, self._train_salt())]
        lost = {row.label for row in rows} - {row.label for row in kept}
        if lost:
            raise ConfigurationError(
                f"`train_share` must leave rows of every class, but {self._train_share:g} of the {len(rows)} rows of "
                f"the part `train` of {', '.join(paths)} leaves none of {', '.join(sorted(map(str, lost)))}"
            )
        return kept

    def _few_of(self, rows: List[Row]) -> List[Row]:
        if self.max_instances is None or self.max_instances >= len(rows):
            return rows
        share = self.max_instances / len(rows)
        return [rows[index] for index in nested_share(*_texts_and_labels(rows), share, f"{self._split_seed} few")]

    def _rows(self, files: List[DataFile], every_row: bool) -> List[Row]:
        parser = RowParser(self.text_fields, self._label_names, self._row_id, every_row, self._warn)
        rows: List[Row] = []
        for file in files:
            row_format = self._row_format(file, every_row)
            lines = read_lines(file, self._encoding, row_format.expected, self._warn)
            rows += parser.rows(file, lines, row_format)
        return all_or_no_labels(rows, every_row)

    def _tokenize(self, text: str) -> List[Token]:
        if not isinstance(text, str):
            raise ConfigurationError(f"the text must be a string, but is {excerpt(text)}")
        # The halves of characters that JSON can name have no bytes in UTF-8: no file could hold such a word.
        text = _SURROGATE.sub("\ufffd", text)
        if self._lowercase:
            text = text.lower()
        return self._tokenizer.tokenize(text)[: self._max_tokens] or [Token(PLACEHOLDER_TOKEN)]

    def _label_fields(self, label: Optional[RawLabel]) -> Dict[str, Field]:
        name = self._label_names(label)
        return {} if name is None else {"label": LabelField(name)}

    def _warn_about_long_texts(self, rows: List[Row]) -> None:
        if self._max_tokens is None or not self._speaks_for_all():
            return
        # A token has at least one character: most texts need no second look.
        num_long = Counter(
            row.file
            for row in rows
            for text in row.texts
            if len(text) > self._max_tokens and len(self._tokenizer.tokenize(text)) > self._max_tokens
        )
        for file, number in num_long.items():
            self._warn(f"{file}: cut {number} text(s) to {self._max_tokens} tokens (`max_tokens`)")

    def _warn(self, message: str) -> None:
        if self._speaks_for_all() and message not in self._given_warnings:
            self._given_warnings.add(message)
            logger.warning(message)

    def _speaks_for_all(self) -> bool:
        """Whether this is the first of the processes and workers that read the same file."""
        worker = self.get_worker_info()
        return (worker is None or worker.id == 0) and (not is_distributed() or dist.get_rank() == 0)


def _texts_and_labels(rows: List[Row]) -> Tuple[List[str], List[Optional[str]]]:
    return ["\t".join(row.texts) for row in rows], [row.label for row in rows]
