"""The rows of a bulk prediction, cut into parts of bounded size."""

import glob
import hashlib
import os
import pickle
from typing import Any, Iterator, List, NamedTuple, Optional, Sequence, Tuple

from allennlp.common.checks import ConfigurationError
from allennlp.common.file_utils import cached_path, open_compressed
from allennlp.common.util import lazy_groups_of
from allennlp.predictors import Predictor

from elmo_tasks.dataset_readers.text_lines import check_utf8

# Both are read by every Python that this runs on, so that the digest is that of the rows.
_PICKLE_PROTOCOL = 4


class Part(NamedTuple):
    """
    Consecutive rows of one input.

    # Parameters

    number : `int`
        From 0, over all inputs.
    places : `Sequence[str]`
        For each row, where it stands, for errors.
    payload : `bytes`
        The rows, as a pickled list.
    """

    number: int
    places: Sequence[str]
    payload: bytes

    @property
    def digest(self) -> str:
        """Equal for equal rows."""
        return hashlib.blake2b(self.payload, digest_size=16).hexdigest()


class BulkInput:
    """
    Inputs that are read as `allennlp predict` reads its one.

    # Parameters

    predictor : `Predictor`
        Knows how a line is read, or a file.
    inputs : `List[str]`
        JSON lines, compressed or not: files, URLs, folders of files, or patterns with `*`, whose files come in the
        order of their names. With `use_dataset_reader`: what the reader of the predictor reads, each by itself.
    use_dataset_reader : `bool`, optional (default = `False`)

    # Raises

    ConfigurationError
        Where an input stands for no file.
    """

    def __init__(self, predictor: Predictor, inputs: List[str], use_dataset_reader: bool = False) -> None:
        self._predictor = predictor
        self._read = self._instances if use_dataset_reader else self._json_rows
        self._is_cheap = not use_dataset_reader
        self.num_parts = 0
        self.num_rows = 0
        """Both of what `parts` has given so far."""
        self._paths = inputs if use_dataset_reader else [path for given in inputs for path in _files(given)]

    def check(self) -> Optional[int]:
        """
        Reads JSON lines once, so that what is wrong with them is told before anything is computed. A reader of labelled
        text looks at all of a file by itself, before it gives its first instance.

        # Returns

        `Optional[int]`
            The number of rows; `None` for what a reader reads.

        # Raises

        ConfigurationError
            With file and line, where a line is none that the predictor reads.
        """
        return sum(1 for path in self._paths for _ in self._read(path)) if self._is_cheap else None

    def parts(self, size: int) -> Iterator[Part]:
        """
        # Parameters

        size : `int`
            The largest number of rows of a part.

        # Returns

        `Iterator[Part]`
            All rows, in their order; each input begins a part of its own. One part is in memory at a time.
        """
        self.num_parts = self.num_rows = 0
        for path in self._paths:
            for group in lazy_groups_of(self._read(path), size):
                places, rows = zip(*group)
                part = Part(self.num_parts, places, pickle.dumps(list(rows), _PICKLE_PROTOCOL))
                self.num_parts += 1
                self.num_rows += len(rows)
                yield part

    def _json_rows(self, path: str) -> Iterator[Tuple[str, Any]]:
        # Our predictors count lines, for files that they read from start to end.
        self._predictor.line_name = "the row"  # type: ignore[attr-defined]
        # A byte that is no UTF-8 becomes a surrogate, so that the error can name its line.
        with open_compressed(cached_path(path), errors="surrogateescape") as lines:
            for number, line in enumerate(lines, start=1):
                if line.isspace():
                    continue
                place = f"{path}, line {number}"
                try:
                    check_utf8(line)
                    row = self._predictor.load_line(line)
                except (ConfigurationError, ValueError) as error:
                    raise ConfigurationError(f"{place}: {error}") from error
                yield place, row

    def _instances(self, path: str) -> Iterator[Tuple[str, Any]]:
        for number, instance in enumerate(self._predictor._dataset_reader.read(path), start=1):
            yield f"{path}, row {number}", instance


def _files(path: str) -> List[str]:
    """The files that an input stands for."""
    if os.path.isdir(path):
        files = [os.path.join(path, name) for name in os.listdir(path) if not name.startswith(".")]
    elif os.path.exists(path) or "://" in path:
        return [path]
    else:
        files = glob.glob(path)
    files = sorted(file for file in files if os.path.isfile(file))
    if not files:
        raise ConfigurationError(f"{path} must be a file, a folder of files or a pattern of files, but is none")
    return files
