"""Where commands are told to write: looked at before they work for it."""

import os
from pathlib import Path
from typing import Optional

from allennlp.common.checks import ConfigurationError


def check_output_file(path: str, option: Optional[str] = None) -> None:
    """
    # Parameters

    path : `str`
        Of a file that is there or not.
    option : `str`, optional (default = `None`)
        What the user gave it by. `None`: the path itself.

    # Raises

    `ConfigurationError`
        No file can be written there.
    """
    what = path if option is None else f"`{option}`"
    if os.path.isdir(path):
        raise ConfigurationError(f"{what} must be a file, but {path} is a folder")
    folder = os.path.dirname(path) or os.curdir
    if not os.path.isdir(folder) or not os.access(folder, os.W_OK):
        raise ConfigurationError(f"{what} must be in a folder that can be written to, but {folder} is none")


def check_output_folder(path: str) -> None:
    """
    # Parameters

    path : `str`
        Of a folder that is there or not.

    # Raises

    `ConfigurationError`
        There is a file in its place, or in that of a folder that it is to be in.
    """
    for place in (Path(path), *Path(path).parents):
        if place.exists() and not place.is_dir():
            raise ConfigurationError(f"{path} must be a folder, new or not, but {place} is a file")
