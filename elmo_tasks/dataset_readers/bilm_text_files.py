"""Plain text for pretraining: which lines of which files, streamed, several sources interleaved."""

import glob
import gzip
import itertools
import lzma
import os
import re
import zlib
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Optional, Sequence, Union

from allennlp.common.checks import ConfigurationError

from elmo_tasks.dataset_readers.text_lines import check_utf8

# A line without an end, a few kilobytes while it is compressed, must not fill the memory.
MAX_LINE_LENGTH = 2**24

_OPENERS: Dict[str, Callable[..., Any]] = {".gz": gzip.open, ".xz": lzma.open}
# "#90%:" or "#:-5000": a Python slice of lines, in numbers or in hundredths of all.
_SLICE = re.compile(r"#(?P<first>(-?\d+%?)?):(?P<last>(-?\d+%?)?)$")


class Line(NamedTuple):
    """One line of a text file, with where it stands (counted from 1)."""

    text: str
    path: str
    number: int


class Source(ABC):
    """Lines that can be read again and again, and counted."""

    @abstractmethod
    def __len__(self) -> int:
        """See `len`."""

    @abstractmethod
    def lines(self) -> Iterator[Line]:
        """The lines, read as they are asked for."""


@dataclass(frozen=True)
class TextSource(Source):
    """
    Consecutive lines of a file.

    # Parameters

    path : `str`
        A `.txt`, `.gz` or `.xz` file, UTF-8 with or without byte order mark, one sentence a line.
    line_range : `range`
        The lines that count, counted from 0.
    """

    path: str
    line_range: range

    def __len__(self) -> int:
        return len(self.line_range)

    def lines(self) -> Iterator[Line]:
        return itertools.islice(_read_lines(self.path), self.line_range.start, self.line_range.stop)


@dataclass(frozen=True)
class _Beginning(Source):
    """The first `num_lines` lines of another source, which has so many."""

    source: Source
    num_lines: int

    def __len__(self) -> int:
        return self.num_lines

    def lines(self) -> Iterator[Line]:
        return itertools.islice(self.source.lines(), self.num_lines)


def find_sources(data_path: Union[str, Sequence[str]]) -> List[TextSource]:
    """
    # Parameters

    data_path : `Union[str, Sequence[str]]`
        A file, a glob, or several of them. Each may end in a Python slice of the lines of each file:
        `news.txt.xz#:-5000` is all but the last 5,000 lines, `news.txt.xz#-5000:` these 5,000, `*.txt#:99%` the first
        99 of 100.

    # Returns

    `List[TextSource]`
        One for each file. Each is read once, to count its lines.

    # Raises

    ConfigurationError
        Where an entry names no file, or a file is damaged, no UTF-8, or has a line of `MAX_LINE_LENGTH` characters or
        more.
    """
    entries = [data_path] if isinstance(data_path, (str, os.PathLike)) else data_path
    return [source for entry in entries for source in _find_sources(os.fspath(entry))]


def first_lines(sources: Sequence[Source], max_lines: int) -> List[Source]:
    """
    # Parameters

    sources : `Sequence[Source]`
        Where the lines come from.
    max_lines : `int`
        How many there are to be at most.

    # Returns

    `List[Source]`
        The first sources, the last of them cut.
    """
    beginnings: List[Source] = []
    for source in sources:
        if max_lines > 0:
            beginnings.append(_Beginning(source, min(max_lines, len(source))))
            max_lines -= len(source)
    return beginnings


def interleave(sources: Sequence[Source], block_size: int) -> Iterator[List[Line]]:
    """
    Blocks of consecutive lines, in turn from all sources in proportion to their sizes, so that all end together.

    # Parameters

    sources : `Sequence[Source]`
        Where the lines come from.
    block_size : `int`
        Lines in a block; the last block of a source may be smaller.
    """
    blocks = [_blocks(source.lines(), block_size) for source in sources]
    taken = [0] * len(sources)
    while True:
        unfinished = [i for i, source in enumerate(sources) if taken[i] < len(source)]
        if not unfinished:
            return
        # The source of which the smallest share would be read, had it half a block more; ties go to the first.
        index = min(unfinished, key=lambda i: (taken[i] + block_size / 2) / len(sources[i]))
        block = next(blocks[index])
        taken[index] += len(block)
        yield block


def _find_sources(entry: str) -> Iterator[TextSource]:
    match = _SLICE.search(entry)
    pattern = entry[: match.start()] if match else entry
    paths = [pattern] if os.path.isfile(pattern) else sorted(filter(os.path.isfile, glob.glob(pattern)))
    if not paths:
        raise ConfigurationError(
            f"a text for pretraining must be a file or a glob, but nothing matches {pattern!r} in {os.getcwd()}"
        )
    for path in paths:
        num_lines = sum(1 for _ in _read_lines(path))
        first, last = (_line_number(match[end], num_lines) if match else None for end in ("first", "last"))
        yield TextSource(path, range(num_lines)[first:last])


def _line_number(text: str, num_lines: int) -> Optional[int]:
    if not text:
        return None
    return int(text[:-1]) * num_lines // 100 if text.endswith("%") else int(text)


def _read_lines(path: str) -> Iterator[Line]:
    opener = _OPENERS.get(os.path.splitext(path)[1], open)
    # A byte that is no UTF-8 becomes a surrogate, so that the error can name its line.
    with opener(path, "rt", encoding="utf-8-sig", errors="surrogateescape") as text_file:
        number = 0
        try:
            for number, text in enumerate(iter(lambda: text_file.readline(MAX_LINE_LENGTH), ""), start=1):
                if len(text) == MAX_LINE_LENGTH:
                    raise ConfigurationError(f"must be one sentence, but has {MAX_LINE_LENGTH:,} characters or more")
                check_utf8(text)
                yield Line(text, path, number)
        except ConfigurationError as error:
            raise ConfigurationError(f"{path}, line {number}: {error}") from None
        except (EOFError, OSError, lzma.LZMAError, zlib.error) as error:
            raise ConfigurationError(
                f"{path} must be whole, but cannot be read after line {number}: {error}"
            ) from error


def _blocks(lines: Iterator[Line], block_size: int) -> Iterator[List[Line]]:
    block = list(itertools.islice(lines, block_size))
    while block:
        yield block
        block = list(itertools.islice(lines, block_size))
