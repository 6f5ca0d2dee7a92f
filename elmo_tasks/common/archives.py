"""Archives that may come from anyone: unpacks those of models, and bounds what others unpack to."""

import bz2
import contextlib
import gzip
import json
import lzma
import os
import shutil
import tarfile
import zipfile
import zlib
from pathlib import PureWindowsPath
from typing import IO, Any, Iterator, NoReturn, Optional, cast

from allennlp.common.checks import ConfigurationError

# An archive may unpack to this many times its own size (weights shrink by some 7 %, text to a fourth), or to so many
# bytes, whichever is more: weights that are still zero shrink to nothing.
MAX_RATIO = 20
ALWAYS_ALLOWED_BYTES = 2**30

# What a member takes on the disk at least, so that the limit bounds their number too.
_BLOCK_BYTES = 4096
# What is ever wanted at once. Headers of an archive may claim to be of any length, and `tarfile` would read them whole.
_MAX_READ_BYTES = 2**20
_CONFIG_NAME = "config.json"
_COMPRESSIONS = ((b"\x1f\x8b", gzip.open), (b"BZh", bz2.open), (b"\xfd7zXZ\0", lzma.open))
_DAMAGED = (EOFError, zlib.error, lzma.LZMAError, OSError)


def unpack(path: str, folder: str) -> None:
    """
    Unpacks a `model.tar.gz` as plain files and folders: no links or devices, nothing outside the folder, no owners,
    permissions or times. One pass; what is refused is refused before it is written.

    # Parameters

    path : `str`
        The archive.
    folder : `str`
        An empty folder. After an error it may hold a part.

    # Raises

    ConfigurationError
        Where a member is something else than a file or a folder, or would lie elsewhere; where the archive unpacks to
        more than `ALWAYS_ALLOWED_BYTES` and more than `MAX_RATIO` times its size; where its `config.json` is not plain
        JSON, since jsonnet could read other files and the environment; where it is damaged.
    """
    max_bytes = _max_bytes(path)
    num_bytes = 0
    try:
        with gzip.open(path) as stream:
            bounded = cast(IO[bytes], _BoundedStream(cast(IO[bytes], stream), path, max_bytes))
            with tarfile.open(fileobj=bounded, mode="r:") as archive:
                for member in archive:
                    fault = _fault(member)
                    if fault is not None:
                        raise ConfigurationError(
                            f"{path} must hold files and folders below its own top only, but its member "
                            f"{member.name!r} {fault}; nothing of it was used, get the archive from its author"
                        )
                    num_bytes += max(member.size, _BLOCK_BYTES)
                    if num_bytes > max_bytes:
                        _refuse_size(path, max_bytes)
                    _write(archive, member, folder)
    except (tarfile.TarError, EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise ConfigurationError(
            f"{path} must be a whole .tar.gz archive, but cannot be read as one ({error}); copy or download it again"
        ) from error
    _check_config(path, os.path.join(folder, _CONFIG_NAME))


def check_unpacked_size(path: str) -> None:
    """
    For archives of data, which `cached_path` unpacks. Reads no more than headers of a ZIP, and all of a compressed tar
    up to the bound; of any other file nothing is said.

    # Parameters

    path : `str`

    # Raises

    ConfigurationError
        Where the archive unpacks to more than `ALWAYS_ALLOWED_BYTES` and more than `MAX_RATIO` times its size.
    """
    max_bytes = _max_bytes(path)
    for sizes in (_sizes_in_zip(path), _sizes_in_tar(path, max_bytes)):
        num_bytes = 0
        # What is damaged, or another kind of file, is told where the same libraries unpack it. `zipfile` raises the
        # second for a kind of ZIP that it cannot read.
        with contextlib.suppress(zipfile.BadZipFile, NotImplementedError, tarfile.TarError, *_DAMAGED):
            for size in sizes:
                num_bytes += max(size, _BLOCK_BYTES)
                if num_bytes > max_bytes:
                    _refuse_size(path, max_bytes)


def _sizes_in_zip(path: str) -> Iterator[int]:
    with zipfile.ZipFile(path) as archive:
        # `zipfile` never reads more of a member than this.
        yield from (member.file_size for member in archive.infolist())


def _sizes_in_tar(path: str, max_bytes: int) -> Iterator[int]:
    with open(path, "rb") as file:
        start = file.read(6)
    opener: Any = next((opener for magic, opener in _COMPRESSIONS if start.startswith(magic)), open)
    with opener(path, "rb") as stream:
        bounded = cast(IO[bytes], _BoundedStream(stream, path, max_bytes))
        with tarfile.open(fileobj=bounded, mode="r:") as archive:
            yield from (member.size for member in archive)


def _max_bytes(path: str) -> int:
    return max(ALWAYS_ALLOWED_BYTES, MAX_RATIO * os.path.getsize(path))


class _BoundedStream:
    """What `tarfile` needs of a file, with a limit on each read and on all of them together."""

    def __init__(self, stream: IO[bytes], path: str, max_bytes: int) -> None:
        self._stream = stream
        self._path = path
        # The blocks of headers come on top of what is unpacked.
        self._max_bytes = 2 * max_bytes
        self._refused_bytes = max_bytes
        self.tell = stream.tell
        self.seek = stream.seek

    def read(self, size: int = -1) -> bytes:
        if not 0 <= size <= _MAX_READ_BYTES or self._stream.tell() > self._max_bytes:
            _refuse_size(self._path, self._refused_bytes)
        return self._stream.read(size)


def _refuse_size(path: str, max_bytes: int) -> NoReturn:
    raise ConfigurationError(
        f"{path} must unpack to at most {max_bytes / 2**30:.1f} GiB, the larger of 1 GiB and {MAX_RATIO} times its "
        "size, but claims more; if you trust it, unpack it yourself and name the folder in its place"
    )


def _fault(member: tarfile.TarInfo) -> Optional[str]:
    """What is wrong with a member, or `None`."""
    if member.issym() or member.islnk():
        return f"is a link, to {member.linkname!r}"
    if not (member.isdir() or member.isreg()) or member.issparse():
        return "is a device, a pipe or a sparse file"
    # This class knows the separators and roots of both worlds.
    name = PureWindowsPath(member.name)
    if name.anchor or ".." in name.parts or "\0" in member.name:
        return "would be written elsewhere"
    return None


def _write(archive: tarfile.TarFile, member: tarfile.TarInfo, folder: str) -> None:
    target = os.path.join(folder, member.name)
    if member.isdir():
        os.makedirs(target, exist_ok=True)
        return
    os.makedirs(os.path.dirname(target), exist_ok=True)
    with cast(IO[bytes], archive.extractfile(member)) as source, open(target, "wb") as file:
        shutil.copyfileobj(source, file, _MAX_READ_BYTES)


def _check_config(path: str, config_path: str) -> None:
    if not os.path.exists(config_path):
        return  # an archive of weights alone, as an initializer takes it
    try:
        with open(config_path, encoding="utf-8") as file:
            json.load(file)
    except (ValueError, RecursionError) as error:
        raise ConfigurationError(
            f"{path} must have plain JSON in its member {_CONFIG_NAME}, as AllenNLP writes it, but has not ({error}); "
            "if you trust it, unpack it with tar and name the folder in its place"
        ) from error
