"""Names of pretrained biLMs, and where their files are. Nothing is downloaded or opened here."""

import os
from typing import NamedTuple

OPTIONS_FILE_NAME = "options.json"
WEIGHT_FILE_NAME = "weights.hdf5"

MINI_FOLDER = os.path.join(os.path.dirname(__file__), "mini")

_PUBLISHED_URL = "https://allennlp.s3.amazonaws.com/models/elmo"

# The names of the models as AllenNLP published them: LSTM layers x cell, projection, filters, highway layers.
PUBLISHED = {
    "original": "2x4096_512_2048cnn_2xhighway",
    "original_5.5b": "2x4096_512_2048cnn_2xhighway_5.5B",
    "small": "2x1024_128_2048cnn_1xhighway",
    "medium": "2x2048_256_2048cnn_1xhighway",
}

NAMES = ("mini", *PUBLISHED)


class BiLmFiles(NamedTuple):
    """
    The two files of a biLM.

    # Parameters

    options_file : `str`
    weight_file : `str`
        Paths, or URLs.
    """

    options_file: str
    weight_file: str


def resolve(name_or_folder: str) -> BiLmFiles:
    """
    # Parameters

    name_or_folder : `str`
        "mini", the small biLM that comes with this package; "original", "original_5.5b", "small" or "medium", as
        published with ELMo; or a folder that holds `options.json` and `weights.hdf5`.

    # Returns

    `BiLmFiles`
        Paths that exist, or the URLs of a published biLM.

    # Raises

    ValueError
        Where it is none of these, or a file is not there.
    """
    if name_or_folder in PUBLISHED:
        name = PUBLISHED[name_or_folder]
        return BiLmFiles(
            f"{_PUBLISHED_URL}/{name}/elmo_{name}_options.json", f"{_PUBLISHED_URL}/{name}/elmo_{name}_weights.hdf5"
        )
    folder = MINI_FOLDER if name_or_folder == "mini" else name_or_folder
    if name_or_folder != "mini" and not os.path.isdir(folder):
        raise ValueError(
            f"a pretrained biLM must be one of {', '.join(NAMES)}, or a folder with {OPTIONS_FILE_NAME} and "
            f"{WEIGHT_FILE_NAME}, but is {name_or_folder!r}"
        )
    files = BiLmFiles(os.path.join(folder, OPTIONS_FILE_NAME), os.path.join(folder, WEIGHT_FILE_NAME))
    missing = [path for path in files if not os.path.isfile(path)]
    if missing:
        raise ValueError(f"the biLM {name_or_folder!r} must have the files {', '.join(missing)}, but they are missing")
    return files
