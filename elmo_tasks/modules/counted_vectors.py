"""Word vectors out of counts: which words stand near a word, in a few hundred numbers."""

from typing import Iterable

import numpy
from scipy.sparse import coo_matrix, csr_matrix
from sklearn.utils.extmath import randomized_svd

# Context words count with this power of their frequency, so that rare ones are not overrated.
_SMOOTHING = 0.75
# Pairs that were seen less, at a distance, are noise.
_SMALLEST_COUNT = 0.5


def count_neighbours(texts: Iterable[numpy.ndarray], num_words: int, window: int) -> csr_matrix:
    """
    # Parameters

    texts : `Iterable[numpy.ndarray]`
        Running texts, int32 `(num_tokens,)`: the number of each word, -1 for a word that has none. Windows do not reach
        from one to the next.
    num_words : `int`
    window : `int`
        Words to each side. The next word counts 1, the last of the window `1 / window`.

    # Returns

    `csr_matrix`
        float32 `(num_words, num_words)`, symmetric.
    """
    counts = csr_matrix((num_words, num_words), dtype=numpy.float32)
    for text in texts:
        for distance in range(1, window + 1):
            left, right = text[:-distance], text[distance:]
            known = (left >= 0) & (right >= 0)
            weights = numpy.full(known.sum(), (window + 1 - distance) / window, dtype=numpy.float32)
            counts = counts + coo_matrix((weights, (left[known], right[known])), counts.shape).tocsr()
    return counts + counts.T


def word_vectors(counts: csr_matrix, dim: int, seed: int = 0) -> numpy.ndarray:
    """
    The strongest directions of the positive pointwise mutual information of words and neighbours.

    # Parameters

    counts : `csr_matrix`
        Of `count_neighbours`.
    dim : `int`
        At most the number of words.
    seed : `int`, optional (default = `0`)
        Of the approximate decomposition.

    # Returns

    `numpy.ndarray`
        float32 `(num_words, dim)`. The squares of a vector have the mean 1; a word without neighbours has zeros.

    # Source

    Levy, Goldberg and Dagan 2015, "Improving Distributional Similarity with Lessons Learned from Word Embeddings",
    sections 2 and 3: smoothed contexts, the square roots of the singular values.
    """
    pairs = counts.tocoo()
    seen = pairs.data > _SMALLEST_COUNT
    rows, columns, values = pairs.row[seen], pairs.col[seen], pairs.data[seen].astype(numpy.float64)
    of_words = numpy.bincount(rows, values, counts.shape[0])
    of_contexts = numpy.bincount(columns, values, counts.shape[0]) ** _SMOOTHING
    of_contexts /= of_contexts.sum()
    information = numpy.log(values / (of_words[rows] * of_contexts[columns])).astype(numpy.float32)
    positive = information > 0
    matrix = csr_matrix((information[positive], (rows[positive], columns[positive])), counts.shape)
    directions, strengths, _ = randomized_svd(matrix, dim, n_iter=2, random_state=seed)
    vectors = directions * numpy.sqrt(strengths)
    lengths = numpy.linalg.norm(vectors, axis=1, keepdims=True)
    # What is left of a word without neighbours is rounding.
    vectors = numpy.where(lengths > 1e-6, vectors / numpy.maximum(lengths, 1e-6), 0.0) * numpy.sqrt(dim)
    return vectors.astype(numpy.float32)
