"""What a user writes for a data path, and the files it stands for."""

import os
from os import PathLike
from pathlib import Path
from typing import List, NamedTuple, Optional, Tuple
from urllib.parse import urlsplit

from allennlp.common.checks import ConfigurationError
from allennlp.common.file_utils import cached_path
from allennlp.data.dataset_readers.dataset_reader import DatasetReaderInput, PathOrStr

from elmo_tasks.common.archives import check_unpacked_size

PARTS = ("train", "dev", "test")

# Files that are named where one is missing beside them.
_MAX_NEIGHBOURS = 8


class DataFile(NamedTuple):
    """
    A file as the user names it, and where it lies on this machine.

    # Parameters

    given : `str`
        A path, URL or archive member, without part. Messages name the file by it, and the format follows from
        its extension: a downloaded file lies under a name that has none.
    local : `Path`
        The file, or folder, on this machine.
    """

    given: str
    local: Path

    @property
    def name(self) -> str:
        """The file's own name: `rt_train.txt` for `https://example.org/mr.zip!data/rt_train.txt`."""
        member = self.given.rpartition("!")[2]
        return Path(urlsplit(member).path if "://" in member else member).name

    @property
    def stem(self) -> str:
        """`name` without its last extension."""
        return Path(self.name).stem

    @property
    def suffix(self) -> str:
        """The last extension of `name`, in lower case: `.tsv`."""
        return Path(self.name).suffix.lower()

    def member(self, name: str) -> "DataFile":
        """The file called `name` in this folder."""
        return DataFile(f"{self.given.rstrip('/')}/{name}", self.local / name)


def parse_path(path: PathOrStr) -> Tuple[str, Optional[str]]:
    """
    Takes the part of the data set from the end of a path: `rt_train.txt#dev` is `("rt_train.txt", "dev")`.

    A `#` inside a folder name, or in the name of a file that exists as it is written, belongs to the path.

    # Raises

    `ConfigurationError`
        If the path ends in a part that is none of `train`, `dev`, `test`.
    """
    path = str(path)
    location, hash_sign, part = path.rpartition("#")
    if not hash_sign or "/" in part or Path(path).exists():
        return path, None
    if part not in PARTS:
        raise ConfigurationError(
            f"the part of a data set must be one of {', '.join(PARTS)}, but is {part!r} in {path!r}"
        )
    return location, part


def parse_paths(paths: DatasetReaderInput) -> Tuple[List[str], Optional[str]]:
    """
    The same for one path, or for several that are read together as one data set.

    # Raises

    `ConfigurationError`
        If there is no path, something else than paths, or if the paths name different parts.
    """
    if not paths or isinstance(paths, dict):
        raise ConfigurationError(f"the data path must be a path or a list of paths, but is {paths!r}")
    given = [paths] if isinstance(paths, (str, PathLike)) else paths
    parsed = [parse_path(path) for path in given]
    parts = {part for _, part in parsed}
    if len(parts) > 1:
        raise ConfigurationError(
            f"paths that are read together must name the same part, but are {', '.join(map(str, given))}"
        )
    return [location for location, _ in parsed], parts.pop()


def locate(path: str) -> DataFile:
    """
    Finds a local path, a URL, a folder inside or a member of an archive (`archive.zip!folder/file.txt`).

    Downloads and unpacked archives stay in AllenNLP's cache.

    # Raises

    `FileNotFoundError`
        If there is no such file, with what its folder has; or no such member.
    `ConfigurationError`
        If an archive would unpack to very much more than its size.
    """
    if Path(path).exists():
        return DataFile(path, Path(path))
    try:
        if "!" in path:
            check_unpacked_size(str(cached_path(path.partition("!")[0])))
        return DataFile(path, Path(cached_path(path, extract_archive="!" in path)))
    except FileNotFoundError as error:
        raise FileNotFoundError(f"{error}{_neighbours(Path(path).parent)}") from None


def _neighbours(folder: Path) -> str:
    if not folder.is_dir():
        return ""
    names = sorted(os.listdir(folder))
    shown = ", ".join(names[:_MAX_NEIGHBOURS]) + ", …" * (len(names) > _MAX_NEIGHBOURS)
    return f"; {folder} has {shown or 'nothing'}"
