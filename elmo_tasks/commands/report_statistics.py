"""How predictions compare with the truth: confusion matrix and calibration."""

import math
from typing import List, NamedTuple, Sequence, Tuple

NUM_BINS = 15


class Bin(NamedTuple):
    """
    The predictions whose confidence is above `lower` and at most `upper`. Without any, the means are 0.
    """

    lower: float
    upper: float
    num_rows: int
    mean_confidence: float
    accuracy: float


class Calibration(NamedTuple):
    """
    # Parameters

    bins : `List[Bin]`
        Of equal width, from 0 to 1.
    expected_error : `float`
        The expected calibration error: the distance of accuracy and mean confidence within a bin, averaged over all
        predictions.
    """

    bins: List[Bin]
    expected_error: float


def confusion_matrix(pairs: Sequence[Tuple[str, str]], labels: Sequence[str]) -> List[List[int]]:
    """
    # Parameters

    pairs : `Sequence[Tuple[str, str]]`
        True and predicted label of each row.
    labels : `Sequence[str]`

    # Returns

    `List[List[int]]`
        Counts: a row for each true label, a column for each predicted one, in the order of `labels`.
    """
    counts = {(true, predicted): 0 for true in labels for predicted in labels}
    for pair in pairs:
        counts[pair] += 1
    return [[counts[true, predicted] for predicted in labels] for true in labels]


def calibration(confidences: Sequence[float], are_right: Sequence[bool], num_bins: int = NUM_BINS) -> Calibration:
    """
    # Parameters

    confidences : `Sequence[float]`
        The probability of the predicted label, 0 to 1.
    are_right : `Sequence[bool]`
        Whether it is the true one.
    num_bins : `int`, optional (default = `15`)

    # Returns

    `Calibration`

    # Source

    Guo et al. 2017, "On Calibration of Modern Neural Networks", equations 2 and 3, with their number of bins.
    """
    members: List[List[Tuple[float, bool]]] = [[] for _ in range(num_bins)]
    for confidence, is_right in zip(confidences, are_right):
        members[max(0, math.ceil(confidence * num_bins) - 1)].append((confidence, is_right))
    bins = []
    for number, rows in enumerate(members):
        count = max(1, len(rows))
        mean_confidence = sum(confidence for confidence, _ in rows) / count
        accuracy = sum(is_right for _, is_right in rows) / count
        bins.append(Bin(number / num_bins, (number + 1) / num_bins, len(rows), mean_confidence, accuracy))
    total = max(1, len(confidences))
    return Calibration(bins, sum(one.num_rows * abs(one.accuracy - one.mean_confidence) for one in bins) / total)
