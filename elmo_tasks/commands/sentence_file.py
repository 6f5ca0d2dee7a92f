"""Tokenised sentences of a file, one a line: plain text or JSON lines."""

import hashlib
import json
import os
from typing import Any, Callable, Iterator, List, NamedTuple, Optional

from allennlp.common.checks import ConfigurationError

from elmo_tasks.common.excerpts import excerpt
from elmo_tasks.dataset_readers.row_formats import JsonLines
from elmo_tasks.dataset_readers.text_lines import check_utf8
from elmo_tasks.dataset_readers.tokenizers import AsciiWhitespaceTokenizer

INPUT_FORMATS = ("text", "json-lines")
_JSON_SUFFIXES = (".json", ".jsonl")
_JSON = JsonLines(required={"tokens or sentence": ("tokens", "sentence")}, optional={"tokens": ("tokens",)})


class Sentence(NamedTuple):
    """
    A line of a file.

    # Parameters

    name : `str`
        The number of the line, from "0": what its vectors are called.
    tokens : `List[str]`
    """

    name: str
    tokens: List[str]


class SentenceFile:
    """
    A file that can be read as often as needed, a line at a time. It is read once at the start, so that what is wrong
    with it is told before anything is computed.

    # Parameters

    path : `str`
        In UTF-8. A blank line is a sentence without tokens, in both formats.
    input_format : `Optional[str]`, optional (default = `None`)
        "text": tokens separated by blanks of ASCII. "json-lines": objects with `tokens`, a list, or else with
        `sentence`, tokens separated by blanks; other keys are left alone. `None`: "json-lines" where the name
        of the file ends in `.json` or `.jsonl`, else "text".

    # Raises

    ConfigurationError
        Where there is no such file, or a line is not as described.
    """

    def __init__(self, path: str, input_format: Optional[str] = None) -> None:
        if not os.path.isfile(path):
            found = "is a folder" if os.path.isdir(path) else "there is no such file"
            raise ConfigurationError(f"{path} must be a file of sentences, but {found}")
        if input_format is None:
            input_format = "json-lines" if path.lower().endswith(_JSON_SUFFIXES) else "text"
        self.path = path
        self._tokens: Callable[[str], List[str]] = _tokens_of_json if input_format == "json-lines" else _split
        self.num_lines = 0
        self.num_tokens = 0
        digest = hashlib.blake2b(digest_size=8)
        for _, tokens in self:
            self.num_lines += 1
            self.num_tokens += len(tokens)
            digest.update(json.dumps(tokens).encode())
        self.digest = digest.hexdigest()
        """Equal for files with the same tokens in the same lines."""

    def __iter__(self) -> Iterator[Sentence]:
        # A byte that is no UTF-8 becomes a surrogate, so that the error can name its line.
        with open(self.path, encoding="utf-8-sig", errors="surrogateescape") as lines:
            for number, line in enumerate(lines):
                try:
                    check_utf8(line)
                    yield Sentence(str(number), self._tokens(line))
                except ConfigurationError as error:
                    raise ConfigurationError(f"{self.path}, line {number + 1}: {error}") from None


def _split(text: str) -> List[str]:
    return AsciiWhitespaceTokenizer.pattern.findall(text)


def _tokens_of_json(line: str) -> List[str]:
    if not _split(line):
        return []
    fields = _JSON.parser("")(line)
    value: Any = fields["tokens or sentence"]
    if "tokens" in fields:
        if isinstance(value, list) and all(isinstance(token, str) for token in value):
            return value
        raise ConfigurationError(f"must hold a list of texts in `tokens`, but holds {excerpt(value)}")
    if isinstance(value, str):
        return _split(value)
    raise ConfigurationError(f"must hold a text in `sentence`, but holds {excerpt(value)}")
