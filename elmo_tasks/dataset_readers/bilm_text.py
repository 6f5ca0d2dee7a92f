"""Plain text for the pretraining of a biLM."""

import copy
import logging
import zlib
from dataclasses import dataclass
from typing import Any, Dict, Iterator, List, Optional, Sequence, Union

from allennlp.common.checks import ConfigurationError
from allennlp.data import DatasetReader, Instance, Token, TokenIndexer
from allennlp.data.fields import TextField
from allennlp.data.token_indexers import SingleIdTokenIndexer

from elmo_tasks.bilm.character_ids import BEGIN_SENTENCE_TOKEN, END_SENTENCE_TOKEN
from elmo_tasks.bilm.word_table import NUMBER
from elmo_tasks.dataset_readers.bilm_text_files import Line, Source, find_sources, first_lines, interleave
from elmo_tasks.dataset_readers.vocabulary import NAMESPACE

logger = logging.getLogger(__name__)

MODES = ("carry", "sentence")
UNITS = ("words", "characters")


@dataclass(frozen=True)
class InstanceSource(Source):
    """
    The sentences that another reader finds: each of its text fields is a line.

    # Parameters

    reader : `DatasetReader`
    data_path : `str`
        For that reader.
    num_lines : `int`
        How many they are.
    """

    reader: DatasetReader
    data_path: str
    num_lines: int

    @classmethod
    def of(cls, reader: DatasetReader, data_path: str) -> "InstanceSource":
        """Reads once, to count."""
        reader = _of_all_processes(reader)
        return cls(reader, data_path, sum(1 for _ in cls(reader, data_path, 0).lines()))

    def __len__(self) -> int:
        return self.num_lines

    def lines(self) -> Iterator[Line]:
        number = 0
        for instance in self.reader.read(self.data_path):
            for field in instance.fields.values():
                if isinstance(field, TextField):
                    number += 1
                    yield Line(" ".join(str(token) for token in field.tokens), self.data_path, number)


def _of_all_processes(reader: DatasetReader) -> DatasetReader:
    """With several processes, a reader of AllenNLP gives each its share; here it is batches that are shared out."""
    reader = copy.copy(reader)
    reader._distributed_info = None
    reader.shard_iterable = iter  # type: ignore[method-assign, assignment]
    return reader


@DatasetReader.register("bilm_text")
class BiLmTextReader(DatasetReader):
    """
    Reads text to pretrain a biLM on: tokenised, one sentence a line, words between blanks, without boundary marks; case
    matters. Empty lines are skipped. Files are streamed.

    Registered as a `DatasetReader` with name "bilm_text"; goes with the `DataLoader` of the same name, which makes the
    batches.

    # Parameters

    mode : `str`, optional (default = `"carry"`)
        "carry": each row of a batch is a stream of consecutive sentences, cut every `unroll_steps`, and the language
        model carries its state from batch to batch, as bilm-tf does. "sentence": a batch holds whole sentences of
        similar length, each from a state of zeros, as ELMo is used later.
    unroll_steps : `int`, optional (default = `20`)
        Predictions of each stream in a batch. In the mode "sentence", batches are cut to the same number of
        predictions, `batch_size * unroll_steps`.
    unit : `str`, optional (default = `"words"`)
        "characters": each character of a line, blanks too, is a word to the language model.
    lowercase_share : `float`, optional (default = `0.0`)
        This share of the lines is lower-cased, so that the biLM knows both styles.
    number_word : `Optional[str]`, optional (default = `None`)
        Stands for each word that is a number, such as "<NUM>".
    source : `Optional[DatasetReader]`, optional (default = `None`)
        Reads the data path in place of plain text: the sentences of a labelled data set, say.
    seed : `int`, optional (default = `13`)
        Chooses the lower-cased lines. The choice depends on the text of a line only.
    max_instances : `Optional[int]`, optional (default = `None`)
        Stops after this many lines; to try a config out.
    """

    def __init__(
        self,
        mode: str = "carry",
        unroll_steps: int = 20,
        unit: str = "words",
        lowercase_share: float = 0.0,
        number_word: Optional[str] = None,
        source: Optional[DatasetReader] = None,
        seed: int = 13,
        max_instances: Optional[int] = None,
    ) -> None:
        super().__init__()
        if mode not in MODES:
            raise ConfigurationError(f"`mode` must be one of {MODES}, but is {mode!r}")
        if unit not in UNITS:
            raise ConfigurationError(f"`unit` must be one of {UNITS}, but is {unit!r}")
        if unroll_steps < 1:
            raise ConfigurationError(f"`unroll_steps` must be at least 1, but is {unroll_steps}")
        if not 0 <= lowercase_share <= 1:
            raise ConfigurationError(f"`lowercase_share` must be between 0 and 1, but is {lowercase_share}")
        if max_instances is not None and max_instances < 1:
            raise ConfigurationError(f"`max_instances` must be at least 1, but is {max_instances}")
        self.mode = mode
        self.unroll_steps = unroll_steps
        self.seed = seed
        self._unit = unit
        self._lowercase_share = lowercase_share
        self._number_word = number_word
        self._source = source
        # Not AllenNLP's, which would give each of several processes a share: here it is batches that are shared out.
        self._max_lines = max_instances
        self._token_indexers: Dict[str, TokenIndexer] = {"tokens": SingleIdTokenIndexer(namespace=NAMESPACE)}

    def find_sources(self, data_path: Union[str, Sequence[str]]) -> Sequence[Source]:
        """
        # Parameters

        data_path : `Union[str, Sequence[str]]`
            Files or globs (`.txt`, `.gz`, `.xz`). Several files are read in turn, in proportion to their sizes. Each
            path may end in a slice of lines: `news.txt.xz#:-5000` is all but the last 5,000, `#:99%` the first 99 %.
        """
        sources: Sequence[Source]
        if self._source is None:
            sources = find_sources(data_path)
        else:
            entries = [data_path] if isinstance(data_path, str) else data_path
            sources = [InstanceSource.of(self._source, entry) for entry in entries]
        return sources if self._max_lines is None else first_lines(sources, self._max_lines)

    def blocks(self, sources: Sequence[Source], block_size: int) -> Iterator[List[List[str]]]:
        """
        # Parameters

        sources : `Sequence[Source]`
            From `find_sources`.
        block_size : `int`
            Consecutive lines in a block, of which the empty ones are left out.

        # Returns

        `Iterator[List[List[str]]]`
            The words of each sentence of each block.
        """
        for block in interleave(sources, block_size):
            yield [words for words in map(self._words, block) if words]

    def sentences(self, data_path: Union[str, Sequence[str]]) -> Iterator[List[str]]:
        """The words of each sentence, in reading order."""
        for block in self.blocks(self.find_sources(data_path), block_size=1):
            yield from block

    def text_to_instance(self, words: List[str]) -> Instance:
        """
        # Parameters

        words : `List[str]`
            One sentence.

        # Returns

        `Instance`
            With the field `tokens`. Only tools that look at instances use it: the data loader takes the words.
        """
        return Instance({"tokens": TextField([Token(word) for word in words], self._token_indexers)})

    def _read(self, file_path: Any) -> Iterator[Instance]:
        yield from map(self.text_to_instance, self.sentences(file_path))

    def split(self, text: str) -> List[str]:
        """
        # Parameters

        text : `str`
            A line, without its end.

        # Returns

        `List[str]`
            Its words, or its characters, as the language model sees them.
        """
        words = text.split() if self._unit == "words" else list(text)
        if self._number_word is not None:
            words = [self._number_word if NUMBER.fullmatch(word) else word for word in words]
        return words

    def join(self, words: List[str]) -> str:
        """The reverse of `split`, but for the kind of blanks."""
        return (" " if self._unit == "words" else "").join(words)

    def _words(self, line: Line) -> List[str]:
        text = line.text.rstrip("\r\n")
        if self._lowercase_share and _share_of(text, self.seed) < self._lowercase_share:
            text = text.lower()
        words = self.split(text)
        if BEGIN_SENTENCE_TOKEN in words or END_SENTENCE_TOKEN in words:
            raise ConfigurationError(
                f"{line.path}, line {line.number}: must not hold the boundary marks {BEGIN_SENTENCE_TOKEN} and "
                f"{END_SENTENCE_TOKEN}, which are added to each line of a text for pretraining; remove or rename them"
            )
        return words


def _share_of(text: str, seed: int) -> float:
    """A number in [0, 1) that the text and the seed determine, evenly spread over texts."""
    return zlib.crc32(text.encode("utf-8", "surrogatepass"), seed) / 2**32
