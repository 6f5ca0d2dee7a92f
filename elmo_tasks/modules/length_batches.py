"""Batches of sentences of like length, within a budget of tokens."""

from typing import List, Sequence


def length_batches(lengths: Sequence[int], max_tokens: int) -> List[List[int]]:
    """
    # Parameters

    lengths : `Sequence[int]`
        Number of tokens of each sentence.
    max_tokens : `int`
        Budget of a batch: its sentences times the tokens of its longest. A sentence that is longer than that is
        a batch by itself.

    # Returns

    `List[List[int]]`
        Positions in `lengths`, each once, the longest sentences first: what memory cannot hold shows at once.
    """
    batches: List[List[int]] = []
    room = 0
    for position in sorted(range(len(lengths)), key=lambda position: -lengths[position]):
        if room == 0:
            batches.append([])
            room = max(1, max_tokens // max(1, lengths[position]))
        batches[-1].append(position)
        room -= 1
    return batches
