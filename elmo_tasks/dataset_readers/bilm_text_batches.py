"""
How sentences become batches of a language model: contiguous streams, or whole sentences of similar length.

A sentence of n words gives n + 1 predictions in each direction: forward the words and "</S>", backward the words in
reverse and "<S>". Both packings hand these out in pieces, each exactly once.
"""

import itertools
import random
from typing import Any, Iterable, Iterator, List, NamedTuple, Sequence, Sized


class Piece(NamedTuple):
    """
    Some of the `len(sentence) + 1` predictions that a sentence gives.

    # Parameters

    sentence : `Any`
        Something with a length in words.
    start, stop : `int`
        From this prediction on, and before that one.
    """

    sentence: Any
    start: int
    stop: int


# The pieces of one row, one after the other; rows may differ in length.
Row = List[Piece]


def num_predictions(sentence: Sized) -> int:
    """Predictions that a sentence gives in one direction: one after each word, one after the boundary."""
    return len(sentence) + 1


def pack_streams(blocks: Iterable[Sequence[Sized]], num_streams: int, unroll_steps: int) -> Iterator[List[Row]]:
    """
    Row `i` of each batch continues row `i` of the batch before it (truncated back-propagation with a carried state).

    # Parameters

    blocks : `Iterable[Sequence[Sized]]`
        Consecutive sentences. A stream takes a block, reads it to its end, and takes the next one.
    num_streams : `int`
        Rows of each batch.
    unroll_steps : `int`
        Predictions of each row. Where the text runs out, the last rows are shorter, or empty.
    """
    remaining_blocks = iter(blocks)
    streams = [_cut_at_steps(_stream(remaining_blocks), unroll_steps) for _ in range(num_streams)]
    while True:
        batch = [next(stream, []) for stream in streams]
        if not any(batch):
            return
        yield batch


def pack_sentences(
    sentences: Iterable[Sized], max_predictions: int, window_size: int, seed: int, num_parts: int = 1
) -> Iterator[List[Row]]:
    """
    Batches of whole sentences. The sentences of a window are sorted by length, cut into batches, and the batches come
    in random order; the window then moves on.

    # Parameters

    sentences : `Iterable[Sized]`
        In reading order.
    max_predictions : `int`
        The padded size of a batch is at most this, but a batch has at least `num_parts` rows.
    window_size : `int`
        Sentences that are held at a time.
    seed : `int`
        Of the order of batches.
    num_parts : `int`, optional (default = `1`)
        Rows come in multiples of this, with empty rows at the end where sentences run out.
    """
    order = random.Random(seed)
    remaining = iter(sentences)
    while True:
        window = sorted(itertools.islice(remaining, window_size), key=len, reverse=True)
        if not window:
            return
        batches = list(_cut_at_size(window, max_predictions, num_parts))
        order.shuffle(batches)
        yield from batches


def _stream(blocks: Iterator[Sequence[Sized]]) -> Iterator[Sized]:
    for block in blocks:
        yield from block


def _cut_at_steps(sentences: Iterator[Sized], unroll_steps: int) -> Iterator[Row]:
    row: List[Piece] = []
    missing = unroll_steps
    for sentence in sentences:
        start, end = 0, num_predictions(sentence)
        while start < end:
            stop = min(start + missing, end)
            row.append(Piece(sentence, start, stop))
            missing -= stop - start
            start = stop
            if not missing:
                yield row
                row, missing = [], unroll_steps
    if row:
        yield row


def _cut_at_size(window: Sequence[Sized], max_predictions: int, num_parts: int) -> Iterator[List[Row]]:
    start = 0
    while start < len(window):
        num_rows = max_predictions // num_predictions(window[start])
        num_rows = max(num_rows - num_rows % num_parts, num_parts)
        rows = [[Piece(sentence, 0, num_predictions(sentence))] for sentence in window[start : start + num_rows]]
        yield rows + [[] for _ in range(-len(rows) % num_parts)]
        start += num_rows
