"""Files that are either whole or not there."""

import contextlib
import os
from typing import Iterator, Union

PARTIAL_SUFFIX = ".partial"


@contextlib.contextmanager
def written_whole(path: Union[str, os.PathLike]) -> Iterator[str]:
    """
    Gives a temporary path beside `path` to write to, and moves the finished file to `path` at the end.

    The move is one step of the file system, and comes after the content has reached the disk: whoever looks
    at `path`, also after `kill -9` or a loss of power, finds the old file or the new one, never a part. An
    exception inside the block leaves `path` as it was and removes the temporary file; a killed process leaves
    it, with the suffix `".partial"`.

    # Parameters

    path : `Union[str, os.PathLike]`
        Where the file shall be. A file that is already there is replaced; other hard links to it keep their
        content.

    # Returns

    `Iterator[str]`
        For `with`: the path to write to.
    """
    path = os.fspath(path)
    partial = path + PARTIAL_SUFFIX
    try:
        yield partial
        flush_to_disk(partial)
        os.replace(partial, path)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.remove(partial)
        raise
    if os.name == "posix":  # elsewhere a folder cannot be opened
        flush_to_disk(os.path.dirname(path) or os.curdir)


def flush_to_disk(path: str) -> None:
    """Waits until the content of a file, or the names in a folder, would outlast a loss of power."""
    descriptor = os.open(path, os.O_RDONLY if os.name == "posix" else os.O_RDWR)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
