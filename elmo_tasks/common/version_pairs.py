"""Pairs of libraries that cannot work together, named at import instead of failing later somewhere inside."""

import re
from importlib import metadata
from typing import Callable, List, NamedTuple, Optional, Tuple

Version = Tuple[int, ...]


class WrongPair(NamedTuple):
    """`package` from `first_wrong` on does not work beside a `partner` below `partner_below`."""

    package: str
    first_wrong: Version
    partner: str
    partner_below: Optional[Version]
    """None: beside every version of the partner."""
    reason: str
    mend: str


# What fails before any plugin is imported (with the `allennlp` command: transformers and huggingface_hub)
# ends there with AllenNLP's own ImportError; the sentence here is for programs that import `elmo_tasks`
# themselves.
WRONG_PAIRS: List[WrongPair] = [
    WrongPair("numpy", (2,), "torch", (2, 3), "torch below 2.3 is built for numpy 1", "pip install 'numpy<2'"),
    WrongPair(
        "transformers",
        (4, 50),
        "allennlp",
        None,
        "AllenNLP imports AdamW, which transformers removed in 4.50",
        "pip install 'transformers<4.50'",
    ),
    WrongPair(
        "huggingface_hub",
        (1,),
        "allennlp",
        None,
        "AllenNLP imports HfFolder and Repository, which huggingface_hub removed in 1.0",
        "pip install 'huggingface_hub<1.0'",
    ),
]


def check_versions(installed: Callable[[str], str] = metadata.version) -> None:
    """
    Looks at the installed versions, not at the libraries: nothing is imported, and nothing needs to work yet.

    # Parameters

    installed : `Callable[[str], str]`, optional
        Gives the version of a package, or raises `importlib.metadata.PackageNotFoundError`.

    # Raises

    `ImportError`
        Two installed packages cannot work together: both with their versions, why, and the command that mends
        it.
    """
    for pair in WRONG_PAIRS:
        try:
            version, partner_version = installed(pair.package), installed(pair.partner)
        except metadata.PackageNotFoundError:
            continue
        partner_is_old = pair.partner_below is None or _parsed(partner_version) < pair.partner_below
        if _parsed(version) >= pair.first_wrong and partner_is_old:
            raise ImportError(
                f"{pair.package} {version} does not work with {pair.partner} {partner_version}: "
                f"{pair.reason}; run: {pair.mend}"
            )


def _parsed(version: str) -> Version:
    """The leading numbers: `"2.3.1+cu121"` is `(2, 3, 1)`."""
    match = re.match(r"\d+(\.\d+)*", version)
    return tuple(int(number) for number in match.group().split(".")) if match else ()
