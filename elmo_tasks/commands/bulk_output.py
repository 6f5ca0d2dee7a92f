"""The folder of a bulk prediction: a file for each part, each whole or not there."""

import contextlib
import json
import os
from pathlib import Path
from typing import Any, Dict, Iterator

from allennlp.common.checks import ConfigurationError
from filelock import FileLock, Timeout

from elmo_tasks.commands.bulk_input import Part
from elmo_tasks.common.config_changes import config_changes
from elmo_tasks.common.files import written_whole

STATE = "bulk.json"
LOCK = ".lock"
PARTS = "part-*.jsonl"


class BulkOutput:
    """
    # Parameters

    folder : `Path`
        Gets `part-000000.jsonl` and so on, whose order by name is that of the rows; and `bulk.json`, which says what
        they were made of.
    settings : `Dict[str, Any]`
        All that the outputs depend on but the rows.

    # Raises

    ConfigurationError
        Where the folder has other files, or was begun with other settings.
    """

    def __init__(self, folder: Path, settings: Dict[str, Any]) -> None:
        self.folder = folder
        self._settings = settings
        self._digests: Dict[str, str] = {}
        if (folder / STATE).exists():
            state = json.loads((folder / STATE).read_text(encoding="utf-8"))
            self._check_same(state["settings"])
            self._digests = state["parts"]
        elif set(os.listdir(folder)) - {LOCK}:
            raise ConfigurationError(f"{folder} must be new, empty or the folder of a bulk prediction, but is none")
        else:
            self._save_state()

    def has(self, part: Part) -> bool:
        """Whether the outputs of these very rows are there. A file with those of other rows is removed."""
        path = self._path(part.number)
        if path.exists() and self._digests.get(path.name) != part.digest:
            path.unlink()
        return path.exists()

    def write(self, part: Part, outputs: str) -> None:
        """Once it returns, the outputs of the part are not lost."""
        path = self._path(part.number)
        # In this order a file is never without its digest; `has` left none of other rows.
        self._digests[path.name] = part.digest
        self._save_state()
        _write_whole(path, outputs)

    def finish(self, num_parts: int) -> None:
        """Removes what is left of longer inputs."""
        for path in set(self.folder.glob(PARTS)) - {self._path(number) for number in range(num_parts)}:
            path.unlink()

    def _save_state(self) -> None:
        state = {"settings": self._settings, "parts": self._digests}
        _write_whole(self.folder / STATE, json.dumps(state, indent=2))

    def _path(self, number: int) -> Path:
        return self.folder / PARTS.replace("*", f"{number:06d}")

    def _check_same(self, old: Dict[str, Any]) -> None:
        changes = config_changes(old, self._settings)
        if changes:
            raise ConfigurationError(
                f"{self.folder} must be what this command began, but {'; '.join(changes)}; repeat the command that "
                "began it, or choose another folder"
            )


@contextlib.contextmanager
def bulk_output(folder: Path, settings: Dict[str, Any]) -> Iterator[BulkOutput]:
    """
    For `with`: the folder, made if it is not there, and locked.

    # Raises

    ConfigurationError
        As `BulkOutput`, or where another process writes to it.
    """
    folder.mkdir(parents=True, exist_ok=True)
    lock = FileLock(str(folder / LOCK))
    try:
        lock.acquire(timeout=0)
    except Timeout:
        raise ConfigurationError(f"{folder} must be written by one process, but another one is at it") from None
    try:
        yield BulkOutput(folder, settings)
    finally:
        lock.release()
        with contextlib.suppress(FileNotFoundError):
            os.remove(lock.lock_file)


def _write_whole(path: Path, text: str) -> None:
    with written_whole(path) as partial, open(partial, "w", encoding="utf-8") as file:
        file.write(text)
