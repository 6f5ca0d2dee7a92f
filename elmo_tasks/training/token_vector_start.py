"""A head start for the token vectors of a biLM that is pretrained on little text or in little time."""

import logging
from typing import Any, Iterator, List, Tuple, cast

import numpy
import torch
from allennlp.common import Tqdm
from allennlp.common.checks import ConfigurationError
from allennlp.common.util import is_distributed
from allennlp.data import DatasetReader
from allennlp.training.callbacks import TrainerCallback
from allennlp.training.gradient_descent_trainer import GradientDescentTrainer

from elmo_tasks.bilm.character_encoder import CharacterEncoder
from elmo_tasks.bilm.character_ids import encode_token
from elmo_tasks.dataset_readers.bilm_text import BiLmTextReader
from elmo_tasks.dataset_readers.vocabulary import by_falling_count, count_words
from elmo_tasks.modules.bilm_network import CharacterNetwork
from elmo_tasks.modules.counted_vectors import count_neighbours, word_vectors

logger = logging.getLogger(__name__)

_LINES_PER_BLOCK = 50_000
# How often a word begins with a capital, beside once in small letters.
_CAPITALISED_SHARE = 0.3


@TrainerCallback.register("start_token_vectors")
class TokenVectorStartCallback(TrainerCallback):
    """
    Before the first epoch, counts which words of a text stand near each other, makes word vectors of the counts, and
    teaches the character encoder to give them: a matter of minutes, since it takes words, not running text. A language
    model alone needs hundreds of millions of tokens until "good" is nearer to "great" than to "food".

    Each word is counted in small letters, and its vector is learnt for the capitalised form too. A run that is resumed
    goes on with what it has. `"train_token_vectors": false` of the network keeps the vectors as they are then.

    Registered as a `TrainerCallback` with name "start_token_vectors".

    # Parameters

    serialization_dir : `str`
        Given by the trainer; no entry in a config.
    reader : `DatasetReader`
        A `bilm_text` reader, usually `$.dataset_reader` of the config.
    data_path : `Any`
        The text that is counted, as the reader takes it. It may be more than the language model has the time to read.
    max_words : `int`, optional (default = `40000`)
        The most frequent words have vectors.
    min_count : `int`, optional (default = `8`)
        Words that are rarer have none.
    window : `int`, optional (default = `8`)
        Words to each side that are near, over the ends of sentences.
    num_steps : `int`, optional (default = `6000`)
    batch_size : `int`, optional (default = `512`)
        Words in a step, drawn by the square root of their counts.
    lr : `float`, optional (default = `0.003`)
        Of Adam, falling to 0.
    seed : `int`, optional (default = `13`)

    # Raises

    ConfigurationError
        Where the reader is of another kind, the biLM is not over characters, or the text has fewer words than a token
        vector has numbers.
    """

    def __init__(
        self,
        serialization_dir: str,
        reader: DatasetReader,
        data_path: Any,
        max_words: int = 40000,
        min_count: int = 8,
        window: int = 8,
        num_steps: int = 6000,
        batch_size: int = 512,
        lr: float = 3e-3,
        seed: int = 13,
    ) -> None:
        super().__init__(serialization_dir)
        if not isinstance(reader, BiLmTextReader):
            raise ConfigurationError(f"the reader must be a `bilm_text`, but is a {type(reader).__name__}")
        self._reader = reader
        self._data_path = data_path
        self._max_words = max_words
        self._min_count = min_count
        self._window = window
        self._num_steps = num_steps
        self._batch_size = batch_size
        self._lr = lr
        self._seed = seed

    def on_start(self, trainer: GradientDescentTrainer, is_primary: bool = True, **kwargs: Any) -> None:
        """See `TrainerCallback`."""
        super().on_start(trainer, is_primary=is_primary, **kwargs)
        if trainer._start_after_epochs_completed or trainer._start_after_batches_in_epoch_completed:
            return
        network = getattr(trainer.model, "network", None)
        if not isinstance(network, CharacterNetwork):
            raise ConfigurationError(
                "only a language model over characters has token vectors to start, but this is a "
                f"{type(trainer.model).__name__} over {type(network).__name__}"
            )
        encoder = cast(CharacterEncoder, network.bilm.character_encoder)
        if is_primary:
            self._fit(encoder, *self._counted_vectors(network.projection_dim))
        if is_distributed():
            for parameter in encoder.parameters():
                torch.distributed.broadcast(parameter.detach(), src=0)

    def _counted_vectors(self, dim: int) -> Tuple[List[str], numpy.ndarray, numpy.ndarray]:
        """Words, their counts and their vectors."""
        counts = count_words(sentence for block in self._blocks("counting words") for sentence in block)
        words = by_falling_count(counts, self._max_words, self._min_count)
        if len(words) < dim:
            raise ConfigurationError(
                f"a text must have at least {dim} words that occur {self._min_count} times, as many as a token vector "
                f"has numbers, but {self._data_path} has {len(words)}; lower `min_count`, or leave this callback out"
            )
        numbers = {word: number for number, word in enumerate(words)}
        texts = (
            numpy.array([numbers.get(word, -1) for sentence in block for word in sentence], dtype=numpy.int32)
            for block in self._blocks("counting neighbours")
        )
        vectors = word_vectors(count_neighbours(texts, len(words), self._window), dim, self._seed)
        return words, numpy.array([counts[word] for word in words]), vectors

    def _blocks(self, description: str) -> Iterator[List[List[str]]]:
        """Consecutive sentences of one file, in small letters."""
        sources = self._reader.find_sources(self._data_path)
        with Tqdm.tqdm(total=sum(map(len, sources)), desc=description) as progress:
            for source in sources:
                for block in self._reader.blocks([source], _LINES_PER_BLOCK):
                    yield [[word.lower() for word in sentence] for sentence in block]
                    progress.update(len(block))

    def _fit(self, encoder: CharacterEncoder, words: List[str], counts: numpy.ndarray, vectors: numpy.ndarray) -> None:
        device = encoder.projection.weight.device
        # (2 * num_words, max_characters_per_token)
        characters = torch.tensor(
            [encode_token(form) for form in words] + [encode_token(word.capitalize()) for word in words]
        )
        # (2 * num_words,)
        shares = torch.from_numpy(numpy.sqrt(counts)).repeat(2)
        shares[len(words) :] *= _CAPITALISED_SHARE
        # (2 * num_words, projection_dim)
        targets = torch.from_numpy(vectors).repeat(2, 1)
        generator = torch.Generator().manual_seed(self._seed)
        parameters = list(encoder.parameters())
        are_trained = [parameter.requires_grad for parameter in parameters]
        for parameter in parameters:
            parameter.requires_grad_(True)
        optimizer = torch.optim.Adam(parameters, lr=self._lr)
        schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.0, total_iters=self._num_steps)
        error = 1.0
        with Tqdm.tqdm(range(self._num_steps), desc="fitting token vectors") as steps:
            for _ in steps:
                drawn = torch.multinomial(shares, self._batch_size, replacement=True, generator=generator)
                difference = encoder(characters[drawn].to(device)) - targets[drawn].to(device)
                loss = difference.square().mean()
                optimizer.zero_grad(set_to_none=True)
                loss.backward()
                optimizer.step()
                schedule.step()
                error += 0.01 * (loss.item() - error)
                steps.set_description(f"fitting token vectors, error {error:.3f}", refresh=False)
        optimizer.zero_grad(set_to_none=True)
        for parameter, is_trained in zip(parameters, are_trained):
            parameter.requires_grad_(is_trained)
        logger.info(
            "The token vectors give the vectors of %d counted words with an error of %.3f (1 is that of zeros)",
            len(words),
            error,
        )
