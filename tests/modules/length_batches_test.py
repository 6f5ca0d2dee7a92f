import random

from elmo_tasks.modules.length_batches import length_batches


def test_longest_come_first_and_each_batch_keeps_within_the_budget():
    assert length_batches([2, 5, 3, 1, 4], max_tokens=10) == [[1, 4], [2, 0, 3]]


def test_sentence_beyond_the_budget_is_a_batch_by_itself():
    assert length_batches([100, 3, 3], max_tokens=10) == [[0], [1, 2]]


def test_every_sentence_is_in_exactly_one_batch():
    lengths = [random.Random(7).randrange(1, 60) for _ in range(500)]
    batches = length_batches(lengths, max_tokens=128)
    assert sorted(position for batch in batches for position in batch) == list(range(500))
    for batch in batches:
        assert len(batch) * max(lengths[position] for position in batch) <= 128


def test_equal_lengths_keep_their_order():
    assert length_batches([3, 3, 3], max_tokens=6) == [[0, 1], [2]]


def test_empty_sentences_take_a_place_and_no_sentences_no_batch():
    assert length_batches([0, 0], max_tokens=1) == [[0], [1]]
    assert length_batches([], max_tokens=10) == []
