"""
The environment variables, the only place that reads or sets them.

jsonnet has no default for an external variable, so the defaults are supplied here, when the plugin is
imported: AllenNLP imports plugins before a command reads its config. Precedence: `-o` over environment over
default.
"""

import os
from pathlib import Path
from typing import List, NamedTuple, Optional

# AllenNLP's own variable, which makes its log longer.
DEBUG = "ALLENNLP_DEBUG"

SOURCE_CHECKOUT = Path(__file__).resolve().parents[2]


class Knob(NamedTuple):
    """One environment variable that the shipped configs read."""

    name: str
    default: str
    """A value; for a folder that comes with this package, its place in the working directory or beside the package."""
    meaning: str
    """One sentence for the documentation."""
    is_folder: bool = False


KNOBS: List[Knob] = [
    Knob(
        "ELMO_TASKS_MR",
        "fixtures/mr",
        "Folder with the movie reviews: `rt_train.txt` and `rt_val.txt`, or `rt-polarity.pos` and `.neg`.",
        is_folder=True,
    ),
    Knob(
        "ELMO_TASKS_MRPC",
        "fixtures/mrpc",
        "Folder with the paraphrase corpus, `msr_paraphrase_train.txt` and `msr_paraphrase_test.txt`.",
        is_folder=True,
    ),
    Knob(
        "ELMO_TASKS_AG_NEWS",
        "fixtures/ag_news",
        "Folder with the news topics, `train.csv` and `test.csv`.",
        is_folder=True,
    ),
    Knob(
        "ELMO_TASKS_BILM",
        "elmo_tasks/bilm/mini",
        "Folder with the biLM, `options.json` and `weights.hdf5`, or the name of a published one.",
        is_folder=True,
    ),
    Knob(
        "ELMO_TASKS_WORD_BILM",
        "fixtures/word_bilm",
        "Archive or run of a language model over words, as `pretrain/mrpc_words.jsonnet` trains it.",
        is_folder=True,
    ),
    Knob(
        "ELMO_TASKS_CORPUS",
        "fixtures/text",
        "Folder with text to pretrain on: `.txt`, `.gz` or `.xz` files, tokenised, one sentence a line.",
        is_folder=True,
    ),
    Knob(
        "ELMO_TASKS_CACHE",
        "",
        "Folder that keeps the activations of a frozen biLM between runs; empty: in memory, for one run.",
    ),
]


def set_defaults() -> None:
    """Gives every knob that the environment does not set its default; what the user set stays."""
    for knob in KNOBS:
        os.environ.setdefault(knob.name, _own_folder(knob.default) if knob.is_folder else knob.default)


def num_processes_of_a_machine() -> Optional[int]:
    """What AllenNLP sets in each process of distributed training."""
    number = os.environ.get("ALLENNLP_PROCS_PER_NODE")
    return None if number is None else int(number)


def wants_tracebacks() -> bool:
    """Whether the user asks AllenNLP for what helps to find a fault of a program."""
    return bool(os.environ.get(DEBUG))


def keep_no_compiled_kernels() -> None:
    """
    torch keeps the operations that it compiles for a GPU in the user's cache, in files that a full disk or a kill can
    leave half-written; each later run would then fail. To compile ours again takes a process a second.
    """
    os.environ.setdefault("USE_PYTORCH_KERNEL_CACHE", "0")


def _own_folder(folder: str) -> str:
    """
    The folder below the working directory where it is there, else the one beside the installed package.

    Without either, as the sample data in an installation without the sources, the relative path stays: the error of
    the reader that misses it then names what the user can set.
    """
    in_checkout = SOURCE_CHECKOUT / folder
    return str(in_checkout) if in_checkout.is_dir() and not Path(folder).is_dir() else folder
