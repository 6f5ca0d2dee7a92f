"""From the bytes of a corpus file to its lines."""

import codecs
import re
from typing import Callable, List, Optional

from allennlp.common.checks import ConfigurationError

from elmo_tasks.dataset_readers.data_path import DataFile

# Blanks of ASCII. `str.strip` and `str.split` take U+0085 and U+00A0 for blanks too; in the corpora they are
# text.
BLANKS = " \t\n\r\f\v"

_COMPRESSED = (b"PK\x03\x04", b"\x1f\x8b", b"BZh", b"\xfd7zXZ")
_MARKUP = re.compile(rb"\s*<(!doctype|html|\?xml)", re.IGNORECASE)
# The five bytes that Windows-1252 leaves undefined, as `surrogateescape` marks them, and the character of the
# same number.
_UNDEFINED_BYTES = {0xDC00 + byte: byte for byte in (0x81, 0x8D, 0x8F, 0x90, 0x9D)}
_UNDEFINED_BYTE = re.compile("[\udc81\udc8d\udc8f\udc90\udc9d]")

Warn = Callable[[str], None]


def check_encoding(encoding: Optional[str]) -> Optional[str]:
    """
    Returns Python's own name of `encoding`; `None` stays `None`.

    # Raises

    `ConfigurationError`
        If Python knows no such encoding of text.
    """
    if encoding is None:
        return None
    try:
        # There are also codecs of bytes, such as hex, and one that refuses all.
        "a".encode(encoding)
        return codecs.lookup(encoding).name
    except (LookupError, UnicodeError):
        raise ConfigurationError(
            f"`encoding` must be one of text that Python knows, such as utf-8 or cp1252, but is {encoding!r}"
        ) from None


def split_lines(text: str) -> List[str]:
    r"""
    Splits at `\n`, `\r\n` and `\r` and nowhere else: `str.splitlines` would also split at U+0085, which MR
    holds.
    """
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    if not lines[-1]:
        lines.pop()
    return lines


def check_utf8(line: str) -> None:
    """
    # Parameters

    line : `str`
        Read with `errors="surrogateescape"`, which lets an error name the line.

    # Raises

    `ConfigurationError`
        If a byte of it is no UTF-8.
    """
    try:
        line.encode()
    except UnicodeEncodeError as error:
        byte = ord(line[error.start]) - 0xDC00
        raise ConfigurationError(f"must be UTF-8, but byte {byte:02x} is not; convert the file") from None


def read_lines(file: DataFile, encoding: Optional[str], expected: str, warn: Warn) -> List[str]:
    """
    Reads a text file whole and splits it into lines, without their ends.

    # Parameters

    file : `DataFile`
        The file.
    encoding : `Optional[str]`
        Python's name of an encoding. `None` is Windows-1252 for `.pos` and `.neg`, the encoding of the MR
        corpus as it is distributed, and UTF-8 for all else. A byte order mark of UTF-8 is dropped. The five
        bytes that Windows-1252 leaves undefined become the control characters of the same number (byte 81 is
        U+0081), as in web browsers.
    expected : `str`
        What the first line should be, for the error.
    warn : `Callable[[str], None]`
        Gets a sentence if there are undefined bytes, or if Windows-1252 was assumed for what looks like
        UTF-8.

    # Raises

    `ConfigurationError`
        If the file cannot be decoded, is compressed, or is a web page.
    """
    data = file.local.read_bytes()
    if data.startswith(codecs.BOM_UTF8) and encoding in (None, "utf-8"):
        data = data[len(codecs.BOM_UTF8) :]
        encoding = "utf-8"
    if data.startswith(_COMPRESSED):
        raise ConfigurationError(
            f"{file.given} must be a text file, but is compressed; `archive.zip!file` names a file in an archive"
        )
    if _MARKUP.match(data):
        found = data.lstrip()[:60].decode("ascii", errors="replace")
        raise ConfigurationError(
            f"{file.given}, line 1: must be {expected}, but is {found!r} instead; "
            "has a web page been saved in place of the corpus?"
        )
    if encoding is None and file.suffix in (".pos", ".neg"):
        encoding = "cp1252"
        if not data.isascii() and _is_utf8(data):
            warn(f"{file.given} is read as Windows-1252 but looks like UTF-8; then set `encoding` to utf-8")
    if encoding == "cp1252":
        return _windows_1252_lines(data, file, warn)
    return _strict_lines(data, file, encoding or "utf-8")


def _strict_lines(data: bytes, file: DataFile, encoding: str) -> List[str]:
    try:
        return split_lines(data.decode(encoding))
    except UnicodeDecodeError as error:
        before = data[: error.start].decode(encoding, errors="ignore")
        line = len(split_lines(before + "?"))
        raise ConfigurationError(
            f"{file.given}, line {line}: must be {encoding}, but byte {data[error.start]:02x} is not; "
            "name the right one with the option `encoding` (cp1252 for a file from Windows)"
        ) from None
    except UnicodeError as error:
        # Some codecs, such as punycode, do not say where.
        raise ConfigurationError(f"{file.given} must be {encoding}, but is not ({error})") from None


def _windows_1252_lines(data: bytes, file: DataFile, warn: Warn) -> List[str]:
    lines = split_lines(data.decode("cp1252", errors="surrogateescape"))
    undefined = [number for number, line in enumerate(lines, start=1) if _UNDEFINED_BYTE.search(line)]
    if undefined:
        warn(
            f"{file.given}: {len(undefined)} line(s), the first of them line {undefined[0]}, hold bytes that "
            "Windows-1252 does not define; they are read as control characters of the same number"
        )
        lines = [line.translate(_UNDEFINED_BYTES) for line in lines]
    return lines


def _is_utf8(data: bytes) -> bool:
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True
