import numpy
import pytest
from scipy.sparse import csr_matrix

from elmo_tasks.modules.counted_vectors import count_neighbours, word_vectors


def test_neighbours_are_counted_by_hand():
    # a b a ? b with a window of two: 1 for the next word, 1/2 for the one after; "?" has no number.
    counts = count_neighbours([numpy.array([0, 1, 0, -1, 1])], num_words=2, window=2).toarray()
    assert counts.tolist() == [[2 * 0.5, 1 + 1 + 0.5], [1 + 1 + 0.5, 0.0]]


def test_windows_do_not_reach_from_one_text_to_the_next():
    apart = count_neighbours([numpy.array([0]), numpy.array([1])], num_words=2, window=5)
    together = count_neighbours([numpy.array([0, 1])], num_words=2, window=5)
    assert apart.nnz == 0
    assert together.toarray().tolist() == [[0, 1], [1, 0]]


def dense_oracle(counts, dim):
    """The same vectors by a full decomposition and without sparse matrices."""
    kept = numpy.where(counts > 0.5, counts, 0.0)
    of_contexts = kept.sum(axis=0) ** 0.75
    with numpy.errstate(divide="ignore"):
        information = numpy.log(kept / (kept.sum(axis=1, keepdims=True) * of_contexts / of_contexts.sum()))
    directions, strengths, _ = numpy.linalg.svd(numpy.maximum(information, 0.0))
    vectors = directions[:, :dim] * numpy.sqrt(strengths[:dim])
    return vectors / numpy.linalg.norm(vectors, axis=1, keepdims=True) * numpy.sqrt(dim)


def test_vectors_are_those_of_a_full_decomposition():
    # So small that the approximation has a direction for each word.
    draws = numpy.random.default_rng(0).poisson(1.5, (14, 14)).astype(numpy.float32)
    counts = draws + draws.T
    found, expected = word_vectors(csr_matrix(counts), 4), dense_oracle(counts, 4)
    # A direction may come with either sign: what words have in common does not depend on it.
    numpy.testing.assert_allclose(found @ found.T, expected @ expected.T, atol=1e-3)
    assert numpy.square(found).mean(axis=1) == pytest.approx(1.0, abs=1e-5)


def test_words_of_like_neighbours_get_like_vectors():
    rng = numpy.random.default_rng(0)
    # Words 0 to 9 stand among 20 to 29, words 10 to 19 among 30 to 39; 0 and 1 never meet.
    text = []
    for word in rng.integers(0, 20, 6000):
        contexts = 20 if word < 10 else 30
        text += [rng.integers(contexts, contexts + 10), word, rng.integers(contexts, contexts + 10), -1, -1]
    vectors = word_vectors(count_neighbours([numpy.array(text)], 40, window=1), 8)
    likeness = vectors[:20] @ vectors[:20].T / 8
    assert likeness[:10, :10].mean() > 0.8
    assert abs(likeness[:10, 10:].mean()) < 0.2


def test_word_without_neighbours_has_zeros():
    counts = csr_matrix(numpy.array([[0, 4, 3, 0], [4, 0, 6, 0], [3, 6, 0, 0], [0, 0, 0, 0]], dtype=numpy.float32))
    vectors = word_vectors(counts, 2)
    assert vectors[3].tolist() == [0, 0]
    assert vectors[:3].any(axis=1).all()
