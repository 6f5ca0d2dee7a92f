"""Files that are either whole or not there."""

import contextlib
import io
import os
from typing import Any, Iterator, Optional, Union

import torch

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

    # Raises

    `OSError`
        Where the file cannot be written, such as on a full disk, in one sentence.
    """
    path = os.fspath(path)
    partial = path + PARTIAL_SUFFIX
    with refusal_in_one_sentence(path):
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


@contextlib.contextmanager
def refusal_in_one_sentence(path: str) -> Iterator[None]:
    """
    For `with`, around what writes a file or a folder, or leaves it as it was.

    # Raises

    `OSError`
        With the name that the error of a full disk lacks.
    """
    try:
        yield
    except OSError as error:
        if error.errno is None:
            raise
        raise OSError(error.errno, f"{path} cannot be written, and is left as it was: {reason(error)}") from error


def save_whole(content: Any, path: Union[str, os.PathLike]) -> None:
    """
    `torch.save` to a file that is whole or not there (`written_whole`).

    # Parameters

    content : `Any`
        What `torch.save` takes.
    path : `Union[str, os.PathLike]`

    # Raises

    `OSError`
        As there: torch itself reports a full disk as an "unexpected pos".
    """
    with written_whole(path) as partial, _RememberingFile(io.FileIO(partial, "w")) as file:
        try:
            torch.save(content, file)
        except RuntimeError as error:
            if file.error is None:
                raise
            raise file.error from error


class _RememberingFile(io.BufferedWriter):
    error: Optional[OSError] = None

    def write(self, content: Any) -> int:
        try:
            return super().write(content)
        except OSError as error:
            self.error = error
            raise


def reason(error: OSError) -> str:
    """Why the system refused something, in the few words that it has for it."""
    return os.strerror(error.errno) if error.errno is not None else str(error)


def flush_to_disk(path: str) -> None:
    """Waits until the content of a file, or the names in a folder, would outlast a loss of power."""
    descriptor = os.open(path, os.O_RDONLY if os.name == "posix" else os.O_RDWR)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
