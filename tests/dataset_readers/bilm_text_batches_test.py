from collections import Counter

import pytest

from elmo_tasks.dataset_readers.bilm_text_batches import Piece, num_predictions, pack_sentences, pack_streams


def sentences_of_lengths(*lengths):
    return [[f"s{number}w{word}" for word in range(length)] for number, length in enumerate(lengths)]


def predictions(batches):
    """How often each prediction of each sentence is made."""
    return Counter(
        (piece.sentence[0], step)
        for batch in batches
        for row in batch
        for piece in row
        for step in range(piece.start, piece.stop)
    )


def test_three_sentences_three_steps_two_streams():
    first, second, third = sentences_of_lengths(3, 2, 3)
    batches = list(pack_streams([[first], [second], [third]], num_streams=2, unroll_steps=3))
    assert batches == [
        [[Piece(first, 0, 3)], [Piece(second, 0, 3)]],
        # The first stream comes to the end of its sentence first and takes the third one.
        [[Piece(first, 3, 4), Piece(third, 0, 2)], []],
        [[Piece(third, 2, 4)], []],
    ]


def test_a_stream_reads_consecutive_sentences_of_a_block():
    sentences = sentences_of_lengths(4, 4, 4, 4)
    batches = list(pack_streams([sentences[:2], sentences[2:]], num_streams=2, unroll_steps=7))
    for row, block in enumerate((sentences[:2], sentences[2:])):
        stream = [piece.sentence[0] for batch in batches for piece in batch[row]]
        assert list(dict.fromkeys(stream)) == [sentence[0] for sentence in block]


@pytest.mark.parametrize("unroll_steps", [1, 4, 100])
@pytest.mark.parametrize("num_streams", [1, 3, 16])
def test_streams_make_each_prediction_once(num_streams, unroll_steps):
    sentences = sentences_of_lengths(5, 1, 12, 3, 7, 2, 2)
    blocks = [sentences[start : start + 2] for start in range(0, len(sentences), 2)]
    batches = list(pack_streams(blocks, num_streams, unroll_steps))
    counts = predictions(batches)
    assert set(counts.values()) == {1}
    assert len(counts) == sum(map(num_predictions, sentences))
    assert all(len(batch) == num_streams for batch in batches)
    assert all(sum(piece.stop - piece.start for piece in row) <= unroll_steps for batch in batches for row in batch)


def test_streams_of_equal_blocks_end_together():
    sentences = sentences_of_lengths(*[9] * 6)
    lengths = [
        [sum(piece.stop - piece.start for piece in row) for row in batch]
        for batch in pack_streams([sentences[:3], sentences[3:]], num_streams=2, unroll_steps=20)
    ]
    assert lengths == [[20, 20], [10, 10]]


@pytest.mark.parametrize("num_parts", [1, 2, 3])
def test_whole_sentences_are_packed_once_each(num_parts):
    sentences = sentences_of_lengths(5, 1, 12, 3, 7, 2, 2, 40, 1, 1)
    batches = list(pack_sentences(sentences, max_predictions=20, window_size=6, seed=1, num_parts=num_parts))
    counts = predictions(batches)
    assert set(counts.values()) == {1}
    assert len(counts) == sum(map(num_predictions, sentences))
    assert all(len(batch) % num_parts == 0 for batch in batches)


def test_batches_of_sentences_keep_to_their_size_and_pad_little():
    sentences = sentences_of_lengths(*[3 + number * 7 % 30 for number in range(300)])
    batches = list(pack_sentences(sentences, max_predictions=200, window_size=300, seed=1))
    sizes = [len(batch) * max(num_predictions(row[0].sentence) for row in batch) for batch in batches]
    assert max(sizes) <= 200
    assert sum(map(num_predictions, sentences)) / sum(sizes) > 0.95


def test_a_sentence_longer_than_a_batch_is_a_batch_of_its_own():
    (long,) = sentences_of_lengths(50)
    assert list(pack_sentences([long], max_predictions=20, window_size=10, seed=1)) == [[[Piece(long, 0, 51)]]]


def test_the_order_of_batches_depends_on_the_seed_only():
    sentences = sentences_of_lengths(*range(1, 40))

    def order(seed):
        return [batch[0][0].sentence[0] for batch in pack_sentences(sentences, 30, 39, seed)]

    assert order(1) == order(1)
    assert order(1) != order(2)
    assert sorted(order(1)) == sorted(order(2))


def test_packing_reads_no_further_ahead_than_a_window():
    taken = []

    def source():
        for sentence in sentences_of_lengths(*[3] * 100):
            taken.append(sentence)
            yield sentence

    next(pack_sentences(source(), max_predictions=8, window_size=10, seed=1))
    assert len(taken) <= 11
