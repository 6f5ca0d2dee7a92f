"""A file of vectors on its way: it may be interrupted at any time, and bears its name only when it is complete."""

import contextlib
import json
import logging
import os
import shutil
from typing import Any, Dict, Generator, Iterator, List, Tuple

import numpy
from allennlp.common.checks import ConfigurationError
from allennlp.common.tqdm import Tqdm
from filelock import FileLock, Timeout

from elmo_tasks.commands.output_paths import check_output_file
from elmo_tasks.commands.sentence_file import Sentence, SentenceFile
from elmo_tasks.commands.vector_file import ArrayType, vector_file_type
from elmo_tasks.common.config_changes import config_changes
from elmo_tasks.common.files import PARTIAL_SUFFIX, flush_to_disk, reason, written_whole

logger = logging.getLogger(__name__)


def check_output(path: str) -> None:
    """
    # Raises

    ConfigurationError
        Where a file of vectors cannot be written there, or something is there already.
    """
    vector_file_type(path)
    check_output_file(path)
    if os.path.exists(path) and not _lacks_only_the_end(path):
        raise ConfigurationError(f"{path} must be a new file, but is there already; remove it or choose another name")


class PartialOutput:
    """
    Takes the arrays of all lines, in their order.

    # Parameters

    output_path : `str`
        The file that it is going to be. Until then it has ".partial" at the end of its name, and another file beside
        it says what it holds.
    array_type : `ArrayType`
    settings : `Dict[str, Any]`
        All that its content depends on.

    # Raises

    ConfigurationError
        Where there is a partial file with other settings.
    """

    def __init__(self, output_path: str, array_type: ArrayType, settings: Dict[str, Any]) -> None:
        self.path = output_path + PARTIAL_SUFFIX
        self.num_arrays = 0
        """How many are in it, whatever happens to this process."""
        self._output_path = output_path
        self._state_path = _state_path(output_path)
        self._file_type = vector_file_type(output_path)
        self._array_type = array_type
        self._settings = settings
        if self.is_begun:
            with open(self._state_path, encoding="utf-8") as state_file:
                state = json.load(state_file)
            self._check_same(state["settings"])
            self.num_arrays = state["num_arrays"]

    @property
    def is_begun(self) -> bool:
        """Whether there is a partial file to go on with."""
        return os.path.exists(self.path) and os.path.exists(self._state_path)

    def begin(self, sentences: SentenceFile, with_sentences: bool) -> None:
        """
        Lays out the file.

        # Parameters

        sentences : `SentenceFile`
        with_sentences : `bool`
            Write "sentence_to_index". A sentence that comes twice stands for its last line.
        """
        with contextlib.suppress(FileNotFoundError):
            os.remove(self._state_path)  # of a file that is gone
        index = {" ".join(tokens): name for name, tokens in sentences} if with_sentences else {}
        # Closed before an error is told, and not shown by a kind of file that does not ask.
        with contextlib.closing(_lengths(sentences)) as lengths:
            self._file_type.begin(self.path, lengths, self._array_type, index)
        flush_to_disk(self.path)
        self._save_state()

    @contextlib.contextmanager
    def opened(self) -> Iterator[None]:
        """For `with`: arrays can be written."""
        self._file = self._file_type(self.path, self.num_arrays)
        try:
            yield
        except BaseException:
            with contextlib.suppress(Exception):  # what a full disk did not take, it does not take now either
                self._file.close()
            raise
        self._file.close()

    def write(self, sentences: List[Sentence], arrays: List[numpy.ndarray]) -> None:
        """Adds the arrays of the next sentences. Once it returns, they are not lost."""
        for sentence, array in zip(sentences, arrays):
            self._file.write(sentence.name, array)
        self._file.flush()
        flush_to_disk(self.path)
        self.num_arrays += len(sentences)
        self._save_state()

    def finish(self) -> None:
        """Gives the file its name."""
        flush_to_disk(self.path)
        os.replace(self.path, self._output_path)

    def forget(self) -> None:
        """The very last step: a process that is killed before it leaves a sign that something may be lying about."""
        os.remove(self._state_path)

    def _save_state(self) -> None:
        state = {"num_arrays": self.num_arrays, "settings": self._settings}
        with written_whole(self._state_path) as partial, open(partial, "w", encoding="utf-8") as state_file:
            json.dump(state, state_file, indent=2)

    def _check_same(self, old: Dict[str, Any]) -> None:
        changes = config_changes(old, self._settings)
        if changes:
            raise ConfigurationError(
                f"{self.path} must be what this command began, but {'; '.join(changes)}; repeat the command that began "
                "it, or remove it"
            )


@contextlib.contextmanager
def partial_output(
    output_path: str,
    sentences: SentenceFile,
    array_type: ArrayType,
    settings: Dict[str, Any],
    with_sentences: bool,
) -> Iterator[PartialOutput]:
    """
    For `with`: the output, begun or continued. At the end of the block the complete file gets its name; an exception
    leaves what there is to the next try.

    # Parameters

    output_path : `str`
    sentences : `SentenceFile`
    array_type : `ArrayType`
    settings : `Dict[str, Any]`
        Besides all these, what the vectors depend on.
    with_sentences : `bool`
        As for `PartialOutput.begin`.

    # Raises

    ConfigurationError
        Where the file cannot be written, is being written by another process, or was begun with other settings.
    OSError
        Where the disk is full; the sentence says how to go on.
    """
    check_output(output_path)
    settings = {
        "input": f"{sentences.num_lines} lines, {sentences.num_tokens} tokens, digest {sentences.digest}",
        "arrays": f"{array_type.dtype} {array_type.describe_shape()}",
        "sentence_to_index": with_sentences,
        **settings,
    }
    with _locked(output_path):
        if _lacks_only_the_end(output_path):
            os.replace(output_path, output_path + PARTIAL_SUFFIX)
        output = PartialOutput(output_path, array_type, settings)
        try:
            if output.is_begun:
                logger.info("%s is continued after line %s.", output.path, f"{output.num_arrays:,}")
            else:
                _check_room(output_path, array_type.num_bytes(sentences.num_tokens))
                output.begin(sentences, with_sentences)
            with output.opened():
                yield output
        except OSError as error:
            raise OSError(
                error.errno,
                f"{output.path} cannot be written: {reason(error)}. With room for it, the same command goes on after "
                f"line {output.num_arrays:,}",
            ) from error
        output.finish()
    output.forget()


@contextlib.contextmanager
def _locked(output_path: str) -> Iterator[None]:
    lock = FileLock(output_path + ".lock")
    try:
        lock.acquire(timeout=0)
    except Timeout:
        raise ConfigurationError(f"{output_path} must be written by one process, but another one is at it") from None
    try:
        yield
    finally:
        lock.release()
        with contextlib.suppress(FileNotFoundError):
            os.remove(lock.lock_file)


def _state_path(output_path: str) -> str:
    return output_path + PARTIAL_SUFFIX + ".json"


def _lengths(sentences: SentenceFile) -> Generator[Tuple[str, int], None, None]:
    """Name and number of tokens of each array, with a progress bar."""
    for name, tokens in Tqdm.tqdm(sentences, total=sentences.num_lines, desc="laying out"):
        yield name, len(tokens)


def _lacks_only_the_end(path: str) -> bool:
    """Whether the process that wrote a complete file was killed when it only had to tidy up."""
    return os.path.exists(path) and os.path.exists(_state_path(path)) and not os.path.exists(path + PARTIAL_SUFFIX)


def _check_room(path: str, num_bytes: int) -> None:
    # The names and headers of the arrays are small beside them.
    num_free_bytes = shutil.disk_usage(os.path.dirname(path) or os.curdir).free
    if num_bytes > num_free_bytes:
        raise ConfigurationError(
            f"{path} needs {num_bytes / 1e6:,.1f} MB, but its disk has {num_free_bytes / 1e6:,.1f} MB free; float16 "
            "and fewer layers need less"
        )
