"""From a stream of sentences to batches of like length, in bounded memory."""

from typing import Iterable, Iterator, List, Tuple

import torch

from elmo_tasks.bilm import encode_sentences
from elmo_tasks.commands.sentence_file import Sentence
from elmo_tasks.modules.length_batches import length_batches

# Enough of them that batches hold sentences of like length, and few enough to keep all their vectors in memory.
_BATCHES_PER_WINDOW = 4


def windows(sentences: Iterable[Sentence], max_tokens: int) -> Iterator[List[Sentence]]:
    """
    # Parameters

    sentences : `Iterable[Sentence]`
    max_tokens : `int`
        Tokens of a batch, padding included.

    # Returns

    `Iterator[List[Sentence]]`
        Consecutive sentences that fill a few batches.
    """
    window: List[Sentence] = []
    num_tokens = 0
    for sentence in sentences:
        window.append(sentence)
        num_tokens += len(sentence.tokens) + 1  # blank lines fill a window too
        if num_tokens >= _BATCHES_PER_WINDOW * max_tokens:
            yield window
            window, num_tokens = [], 0
    if window:
        yield window


def batches(window: List[Sentence], max_tokens: int, device: torch.device) -> Iterator[Tuple[List[int], torch.Tensor]]:
    """
    # Parameters

    window : `List[Sentence]`
    max_tokens : `int`
        Tokens of a batch, padding included. A sentence beyond it is a batch by itself.
    device : `torch.device`
        For the character ids.

    # Returns

    `Iterator[Tuple[List[int], torch.Tensor]]`
        Positions of the sentences in the window, the longest first, and their character ids, int64 `(batch_size,
        num_tokens, 50)`, 0 = padding.
    """
    for positions in length_batches([len(sentence.tokens) for sentence in window], max_tokens):
        character_ids = encode_sentences([window[position].tokens for position in positions])
        yield positions, character_ids.to(device)
