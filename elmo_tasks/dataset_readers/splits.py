"""
Parts of a data set that has no official ones.

Membership depends on a seed and on the text and label of the rows: not on file names, on the order of the
rows, on a random state, the machine or the version of Python.
"""

import hashlib
from typing import Dict, Iterator, List, Optional, Sequence, Set


def dev_share_parts(texts: Sequence[str], labels: Sequence[Optional[str]], dev_share: float, seed: int) -> List[str]:
    """
    Keeps a stratified share of the rows for development.

    # Parameters

    texts : `Sequence[str]`
        The text of each row.
    labels : `Sequence[Optional[str]]`
        The label of each row, or `None`.
    dev_share : `float`
        The share of `dev`; of each class, it holds this share within one row.
    seed : `int`
        Another seed gives another choice.

    # Returns

    `List[str]`
        `"train"` or `"dev"` for each row.
    """
    chosen = _choose_share(texts, labels, dev_share, str(seed))
    return ["dev" if index in chosen else "train" for index in range(len(texts))]


def fold_parts(
    texts: Sequence[str],
    labels: Sequence[Optional[str]],
    fold: int,
    num_folds: int,
    dev_share: float,
    seed: int,
) -> List[str]:
    """
    One round of a stratified k-fold cross-validation.

    The test parts of all folds have no row in common and hold all rows together. Their sizes differ by at
    most one, and so do the numbers of rows of each class in them.

    # Parameters

    texts, labels, seed
        As for `dev_share_parts`.
    fold : `int`
        The fold that is tested, from 0.
    num_folds : `int`
        The number of folds.
    dev_share : `float`
        The share of `dev` in the rows of the other folds.

    # Returns

    `List[str]`
        `"train"`, `"dev"` or `"test"` for each row.
    """
    folds = _assign_folds(texts, labels, num_folds, str(seed))
    rest = [index for index, other in enumerate(folds) if other != fold]
    chosen = _choose_share(
        [texts[index] for index in rest], [labels[index] for index in rest], dev_share, f"{seed} dev {fold}"
    )
    parts = ["test"] * len(texts)
    for position, index in enumerate(rest):
        parts[index] = "dev" if position in chosen else "train"
    return parts


def nested_share(texts: Sequence[str], labels: Sequence[Optional[str]], share: float, salt: str) -> List[int]:
    """
    Keeps a stratified share of the rows, such that a smaller share is a part of a larger one.

    # Parameters

    texts, labels
        As for `dev_share_parts`.
    share : `float`
        Of all rows, rounded; of each class too, within a row or so.
    salt : `str`
        Another text gives another choice.

    # Returns

    `List[int]`
        The indices of the rows that are kept, in order.
    """
    # One order of all rows, over which each class is spread evenly: every beginning of it is stratified.
    places = [
        ((rank + 0.5) / len(members), index)
        for members in _classes_in_hash_order(texts, labels, salt)
        for rank, index in enumerate(members)
    ]
    places.sort(key=lambda place: place[0])
    return sorted(index for _, index in places[: round(share * len(texts))])


def _assign_folds(texts: Sequence[str], labels: Sequence[Optional[str]], num_folds: int, salt: str) -> List[int]:
    folds = [0] * len(texts)
    num_placed = 0
    for members in _classes_in_hash_order(texts, labels, salt):
        # Dealing round and round through all classes keeps every size within one. The numbers are handed out
        # in order, so that equal texts, which are neighbours here, nearly always share a fold.
        numbers = sorted((num_placed + rank) % num_folds for rank in range(len(members)))
        for index, number in zip(members, numbers):
            folds[index] = number
        num_placed += len(members)
    return folds


def _choose_share(texts: Sequence[str], labels: Sequence[Optional[str]], share: float, salt: str) -> Set[int]:
    chosen: Set[int] = set()
    num_seen = 0
    for members in _classes_in_hash_order(texts, labels, salt):
        # Rounding the running total, not each class, makes the whole exact as well.
        first = round(share * num_seen)
        num_seen += len(members)
        chosen.update(members[: round(share * num_seen) - first])
    return chosen


def _classes_in_hash_order(texts: Sequence[str], labels: Sequence[Optional[str]], salt: str) -> Iterator[List[int]]:
    hashes = [hashlib.sha256(f"{salt}\n{text}".encode("utf-8", "surrogatepass")).digest() for text in texts]
    members: Dict[str, List[int]] = {}
    for index, label in enumerate(labels):
        members.setdefault(label or "", []).append(index)
    for label in sorted(members):
        yield sorted(members[label], key=lambda index: hashes[index])
