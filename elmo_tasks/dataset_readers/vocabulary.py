"""The words that a language model predicts: counted in a text, or read from a file as bilm-tf users know it."""

import logging
from collections import Counter
from typing import Any, Iterable, List, Optional

from allennlp.common.checks import ConfigurationError
from allennlp.data import DatasetReader, Vocabulary

from elmo_tasks.bilm.character_ids import BEGIN_SENTENCE_TOKEN, END_SENTENCE_TOKEN
from elmo_tasks.bilm.word_table import UNKNOWN_WORD

logger = logging.getLogger(__name__)

NAMESPACE = "words"
# bilm-tf puts these three first.
SPECIAL_WORDS = [BEGIN_SENTENCE_TOKEN, END_SENTENCE_TOKEN, UNKNOWN_WORD]


@Vocabulary.register("bilm_text", constructor="from_text")
@Vocabulary.register("bilm_words_file", constructor="from_words_file")
class WordVocabulary(Vocabulary):
    """
    A vocabulary with one namespace, "words": "<S>", "</S>" and "<UNK>", then words by falling count. Saved to a folder,
    it is `words.txt`, one word a line, which is the vocabulary file of bilm-tf.

    Registered as a `Vocabulary` with name "bilm_text" (constructor `from_text`), which counts the words of a text, and
    with name "bilm_words_file" (constructor `from_words_file`), which reads such a file.
    """

    @classmethod
    def from_words(cls, words: List[str]) -> "WordVocabulary":
        """
        # Parameters

        words : `List[str]`
            All words in their order, the special ones first.

        # Raises

        ConfigurationError
            Where a word is there twice, or the special words do not come first.
        """
        _check(words)
        vocabulary = cls(non_padded_namespaces=[NAMESPACE])
        for word in words:
            vocabulary.add_token_to_namespace(word, NAMESPACE)
        return vocabulary

    @classmethod
    def from_text(
        cls, reader: DatasetReader, data_path: Any, max_words: Optional[int] = None, min_count: int = 1
    ) -> "WordVocabulary":
        """
        Counts while it reads: the memory depends on the number of distinct words, not on the length of the text.

        # Parameters

        reader : `DatasetReader`
            A `bilm_text` reader, usually `$.dataset_reader` of the config.
        data_path : `Any`
            What the reader shall read, usually `$.train_data_path`.
        max_words : `Optional[int]`, optional (default = `None`)
            The most frequent words that are kept, besides the special ones; `None`: all.
        min_count : `int`, optional (default = `1`)
            Words with fewer occurrences are left out.

        # Raises

        ConfigurationError
            Where the reader is of another kind.
        """
        sentences = getattr(reader, "sentences", None)
        if sentences is None:
            raise ConfigurationError(f"the reader must be a `bilm_text`, but is a {type(reader).__name__}")
        counts = count_words(sentences(data_path))
        words = by_falling_count(counts, max_words, min_count)
        num_known = sum(counts[word] for word in words)
        logger.info(
            "The vocabulary has %d of %d distinct words; they cover %.2f %% of the %d words of the text",
            len(words),
            len(counts),
            100 * num_known / max(sum(counts.values()), 1),
            sum(counts.values()),
        )
        return cls.from_words(SPECIAL_WORDS + words)

    @classmethod
    def from_words_file(cls, path: str) -> "WordVocabulary":
        """
        # Parameters

        path : `str`
            One word a line: "<S>", "</S>", "<UNK>", then words, the most frequent first. The sampled softmax rests on
            that order, since it draws early words more often.
        """
        with open(path, encoding="utf-8", newline="\n") as words_file:
            try:
                words = words_file.read().split("\n")
            except UnicodeDecodeError as error:
                raise ConfigurationError(f"{path} must be UTF-8, but is not: {error}; convert the file") from None
        if words[-1] == "":
            words.pop()
        try:
            return cls.from_words(words)
        except ConfigurationError as error:
            raise ConfigurationError(f"{error.message} (in {path})") from error


def count_words(sentences: Iterable[List[str]]) -> "Counter[str]":
    """The number of occurrences of each word, in the order of first occurrence."""
    counts: Counter = Counter()
    for sentence in sentences:
        counts.update(sentence)
    return counts


def by_falling_count(counts: "Counter[str]", max_words: Optional[int], min_count: int) -> List[str]:
    """The words by falling count, of equal counts the one that occurred first, without the special words."""
    words = [word for word in counts if counts[word] >= min_count and word not in SPECIAL_WORDS]
    # Python's sort keeps the order of equal keys.
    return sorted(words, key=lambda word: -counts[word])[:max_words]


def _check(words: List[str]) -> None:
    if words[:3] != SPECIAL_WORDS:
        raise ConfigurationError(
            f"a vocabulary must begin with {', '.join(SPECIAL_WORDS)}, but begins with {', '.join(words[:3])}; "
            "put these three lines first"
        )
    seen = set()
    for number, word in enumerate(words, start=1):
        if word in seen:
            raise ConfigurationError(f"each word must be there once, but line {number} repeats {word!r}")
        seen.add(word)
