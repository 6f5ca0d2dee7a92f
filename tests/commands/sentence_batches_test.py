import itertools

import torch

from elmo_tasks.bilm import encode_sentences
from elmo_tasks.commands.sentence_batches import batches, windows
from elmo_tasks.commands.sentence_file import Sentence


def sentences(lengths):
    return [Sentence(str(number), ["word"] * length) for number, length in enumerate(lengths)]


def test_windows_are_consecutive_and_fill_four_batches():
    some = sentences([3, 0, 5, 2, 9, 1])
    # Each sentence counts one more than its tokens, until there are 8: 4 + 1 + 6, 3 + 10, 2.
    assert [[sentence.name for sentence in window] for window in windows(some, max_tokens=2)] == [
        ["0", "1", "2"],
        ["3", "4"],
        ["5"],
    ]


def test_a_window_does_not_wait_for_the_end_of_the_sentences():
    endless = (Sentence("0", []) for _ in itertools.count())
    assert len(next(windows(endless, max_tokens=5))) == 20


def test_batches_hold_each_sentence_once_and_the_longest_first():
    window = sentences([1, 4, 0, 3, 2])
    found = list(batches(window, max_tokens=8, device=torch.device("cpu")))
    assert [positions for positions, _ in found] == [[1, 3], [4, 0, 2]]
    for positions, character_ids in found:
        assert torch.equal(character_ids, encode_sentences([window[position].tokens for position in positions]))
