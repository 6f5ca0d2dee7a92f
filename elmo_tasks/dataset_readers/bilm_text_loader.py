"""Batches of a language model as tensors."""

import functools
import logging
from collections import defaultdict
from typing import Any, Dict, Iterator, List, Optional, Tuple

import numpy as np
import torch
from allennlp.common.checks import ConfigurationError
from allennlp.common.util import is_distributed
from allennlp.data import DataLoader, DatasetReader, Instance, Vocabulary
from allennlp.data.data_loaders import TensorDict
from allennlp.nn.util import move_to_device

from elmo_tasks.bilm.character_ids import BEGIN_SENTENCE_TOKEN, END_SENTENCE_TOKEN, encode_token
from elmo_tasks.bilm.word_table import UNKNOWN_WORD
from elmo_tasks.dataset_readers.bilm_text import BiLmTextReader
from elmo_tasks.dataset_readers.bilm_text_batches import Row, pack_sentences, pack_streams
from elmo_tasks.dataset_readers.vocabulary import NAMESPACE

logger = logging.getLogger(__name__)

# Lines that a stream reads before it jumps ahead: long enough that jumps are rare, short enough to hold in memory for
# each of some hundred streams.
MAX_BLOCK_SIZE = 512
# Batches' worth of sentences that are sorted by length at a time.
BATCHES_IN_WINDOW = 100


@DataLoader.register("bilm_text")
class BiLmTextLoader(DataLoader):
    """
    Makes the batches of a `bilm_text` reader, streams or whole sentences, always in the same order for the same seed.
    Memory does not grow with the length of the text.

    With several processes, a batch is cut among them: all processes see equally many batches, and each prediction is
    made by exactly one of them.

    Registered as a `DataLoader` with name "bilm_text".

    # Parameters

    reader : `BiLmTextReader`
        AllenNLP supplies it.
    data_path : `Any`
        AllenNLP supplies it.
    batch_size : `int`, optional (default = `128`)
        Streams in a batch of one process. In the mode "sentence" a batch holds at most `batch_size * unroll_steps`
        predictions with padding, in as many rows as fit.

    # Returns

    Batches with these tensors, where `batch_size` is the number of rows and `num_steps` the longest row:

    character_ids : int64 `(num_distinct_words, 50)`
        Each distinct input word once.
    word_ids : int64 `(num_distinct_words,)`
        Its place in the vocabulary.
    forward_inputs, backward_inputs : int64 `(batch_size, num_steps)`
        Places in `character_ids`. Both directions are written in the order in which they read.
    forward_targets, backward_targets : int64 `(batch_size, num_steps)`
        The word to predict after each input, as its place in the vocabulary.
    mask : bool `(batch_size, num_steps)`
        Where there is something to predict.
    carries : `bool`
        Whether row `i` of the next batch, if there is one, continues row `i` of this one.
    continues : `bool`
        Whether row `i` continues row `i` of the batch before: no at the start of an epoch, and of validation.
    """

    def __init__(self, reader: DatasetReader, data_path: Any, batch_size: int = 128) -> None:
        if not isinstance(reader, BiLmTextReader):
            raise ConfigurationError(
                "the data loader `bilm_text` must have a reader `bilm_text`, but has "
                f"{type(reader).__name__}; wrap that reader: {{type: 'bilm_text', source: …}}"
            )
        if batch_size < 1:
            raise ConfigurationError(f"`batch_size` must be at least 1, but is {batch_size}")
        self._reader = reader
        self._data_path = data_path
        self._batch_size = batch_size
        self._num_epochs = 0
        self._vocab: Optional[Vocabulary] = None
        self._device: Optional[torch.device] = None

    def __len__(self) -> int:
        """Batches of an epoch, counted once by making them without tensors."""
        return self._num_batches

    def __iter__(self) -> Iterator[TensorDict]:
        if self._vocab is None:
            raise ConfigurationError("the data loader must know the vocabulary first; call `index_with`")
        make_tensors = _TensorMaker(self._vocab)
        carries = self._reader.mode == "carry"
        # A resumed run goes through all earlier epochs again, so that the count is right there too.
        epoch = self._num_epochs
        self._num_epochs += 1
        rank, num_processes = _process()
        for number, rows in enumerate(self._batches(epoch)):
            own = rows[rank * self._batch_size :][: self._batch_size] if carries else rows[rank::num_processes]
            tensors = make_tensors(own)
            tensors["carries"] = carries
            tensors["continues"] = carries and number > 0
            yield move_to_device(tensors, self._device) if self._device is not None else tensors

    def iter_instances(self) -> Iterator[Instance]:
        """The sentences as instances, for tools that count or look."""
        return iter(self._reader.read(self._data_path))

    def index_with(self, vocab: Vocabulary) -> None:
        """
        # Raises

        ConfigurationError
            Where the vocabulary is not one of words for a language model.
        """
        if UNKNOWN_WORD not in vocab.get_token_to_index_vocabulary(NAMESPACE):
            raise ConfigurationError(
                f"the vocabulary must have a namespace {NAMESPACE!r} with {UNKNOWN_WORD}, but has none; use the "
                "vocabulary type `bilm_text`"
            )
        self._vocab = vocab

    def set_target_device(self, device: torch.device) -> None:
        """Batches will be on this device."""
        self._device = device

    @functools.cached_property
    def _sources(self) -> Any:
        return self._reader.find_sources(self._data_path)

    @functools.cached_property
    def _num_batches(self) -> int:
        num_sentences = num_words = num_batches = 0
        for rows in self._batches(epoch=0):
            num_batches += 1
            for row in rows:
                # A sentence is counted with its first piece.
                lengths = [len(piece.sentence) for piece in row if piece.start == 0]
                num_sentences += len(lengths)
                num_words += sum(lengths)
        logger.info(
            "%s: %d sentences, %d words, %d predictions in each direction; an epoch is %d batches (%s, %d x %d, "
            "processes: %d)",
            self._data_path,
            num_sentences,
            num_words,
            num_words + num_sentences,
            num_batches,
            self._reader.mode,
            self._batch_size,
            self._reader.unroll_steps,
            _process()[1],
        )
        return num_batches

    def _batches(self, epoch: int) -> Iterator[List[Row]]:
        """The batches of all processes together."""
        _, num_processes = _process()
        num_lines = sum(map(len, self._sources))
        num_rows = self._batch_size * num_processes
        if self._reader.mode == "carry":
            # Blocks of about equal size, equally many for each stream, so that all streams end together.
            blocks_per_stream = -(-num_lines // (num_rows * MAX_BLOCK_SIZE))
            block_size = max(-(-num_lines // (num_rows * max(blocks_per_stream, 1))), 1)
            return pack_streams(self._reader.blocks(self._sources, block_size), num_rows, self._reader.unroll_steps)
        blocks = self._reader.blocks(self._sources, block_size=1)
        return pack_sentences(
            (sentence for block in blocks for sentence in block),
            max_predictions=num_rows * self._reader.unroll_steps,
            window_size=num_rows * BATCHES_IN_WINDOW,
            seed=self._reader.seed + epoch,
            num_parts=num_processes,
        )


class _TensorMaker:
    """Turns rows into tensors, with little work per word."""

    def __init__(self, vocab: Vocabulary) -> None:
        self._word_ids = vocab.get_token_to_index_vocabulary(NAMESPACE)
        self._unknown_id = self._word_ids[UNKNOWN_WORD]

    def __call__(self, rows: List[Row]) -> Dict[str, Any]:
        num_steps = max((sum(piece.stop - piece.start for piece in row) for row in rows), default=0)
        # A batch of empty rows only is one step of padding.
        shape = (len(rows), max(num_steps, 1))
        arrays = {
            f"{direction}_{part}": np.zeros(shape, dtype=np.int64)
            for direction in ("forward", "backward")
            for part in ("inputs", "targets")
        }
        mask = np.zeros(shape, dtype=bool)
        # Gives each new word the next number.
        places: Dict[str, int] = defaultdict()
        places.default_factory = places.__len__  # type: ignore[attr-defined]
        word_ids, unknown_id = self._word_ids, self._unknown_id
        for number, row in enumerate(rows):
            column = 0
            for piece in row:
                columns = slice(column, column + piece.stop - piece.start)
                column = columns.stop
                mask[number, columns] = True
                words = [BEGIN_SENTENCE_TOKEN, *piece.sentence, END_SENTENCE_TOKEN]
                for direction in ("forward", "backward"):
                    window = words[piece.start : piece.stop + 1]
                    arrays[direction + "_inputs"][number, columns] = [places[word] for word in window[:-1]]
                    arrays[direction + "_targets"][number, columns] = [
                        word_ids.get(word, unknown_id) for word in window[1:]
                    ]
                    words.reverse()
        distinct = list(places) or [BEGIN_SENTENCE_TOKEN]
        characters = np.frombuffer(b"".join(map(_character_ids, distinct)), dtype=np.uint16)
        tensors: Dict[str, Any] = {name: torch.from_numpy(array) for name, array in arrays.items()}
        tensors["mask"] = torch.from_numpy(mask)
        tensors["character_ids"] = torch.from_numpy(characters.reshape(len(distinct), -1).astype(np.int64))
        tensors["word_ids"] = torch.tensor([word_ids.get(word, unknown_id) for word in distinct])
        return tensors


@functools.lru_cache(maxsize=2**17)
def _character_ids(word: str) -> bytes:
    """A word's row of ids as 16-bit numbers: small to keep, fast to join."""
    return np.array(encode_token(word), dtype=np.uint16).tobytes()


def _process() -> Tuple[int, int]:
    """The rank of this process and the number of processes."""
    if not is_distributed():
        return 0, 1
    return torch.distributed.get_rank(), torch.distributed.get_world_size()
