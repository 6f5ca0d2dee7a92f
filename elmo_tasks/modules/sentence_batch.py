"""A batch of sentences as an ELMo embedder sees them, and the way back from its tokens to a padded tensor."""

from typing import Iterator, List

import numpy
import torch
from allennlp.common.checks import ConfigurationError
from allennlp.data import Field, Instance, Vocabulary
from allennlp.data.fields import ListField, TextField
from allennlp.data.token_indexers import ELMoTokenCharactersIndexer


class SentenceBatch:
    """
    Sentences as character ids.

    # Parameters

    character_ids : `torch.Tensor`
        int64 `(batch_size, num_tokens, max_characters_per_token)` without boundaries, rows of zeros after the last
        token of a sentence.

    # Raises

    ConfigurationError
        Where a token follows a row of zeros: the end of that sentence would be a guess.
    """

    def __init__(self, character_ids: torch.Tensor) -> None:
        self.character_ids = character_ids
        # One copy to the CPU for all that is decided there: a GPU waits once per batch.
        # An id that int16 cannot hold must not become another one, which may have vectors in a cache.
        self.array = character_ids.clamp(-1, torch.iinfo(torch.int16).max).to(torch.int16).cpu().numpy()
        """The character ids as int16, for keys."""
        # (batch_size, num_tokens)
        mask = numpy.asarray(self.array.any(axis=-1))
        if (mask[:, 1:] & ~mask[:, :-1]).any():
            raise ConfigurationError(
                "tokens of a sentence must come before its padding, but one follows a row of zeros"
            )
        self.lengths: List[int] = mask.sum(axis=1).tolist()
        """Number of tokens of each sentence."""
        self._positions = torch.from_numpy(numpy.flatnonzero(mask))

    def unpad(self, padded: torch.Tensor) -> torch.Tensor:
        """The way back from `pad`."""
        return padded.flatten(0, 1).index_select(0, self._positions.to(padded.device))

    def pad(self, rows: torch.Tensor) -> torch.Tensor:
        """
        # Parameters

        rows : `torch.Tensor`
            `(num_tokens_of_all_sentences, size)`, sentence after sentence.

        # Returns

        `torch.Tensor`
            `(batch_size, num_tokens, size)`, zeros at padding.
        """
        batch_size, num_tokens, _ = self.character_ids.shape
        padded = rows.new_zeros(batch_size * num_tokens, rows.size(-1))
        padded = padded.index_copy(0, self._positions.to(rows.device), rows)
        return padded.view(batch_size, num_tokens, rows.size(-1))


def sentences_of(instance: Instance) -> Iterator[numpy.ndarray]:
    """
    # Parameters

    instance : `Instance`
        Indexed or not; it is not changed.

    # Returns

    `Iterator[numpy.ndarray]`
        int16 `(num_tokens, max_characters_per_token)` for each text that has tokens and an indexer of ELMo characters,
        whatever its field and its indexer are called.
    """
    for field in instance.fields.values():
        yield from _sentences_of_field(field)


def _sentences_of_field(field: Field) -> Iterator[numpy.ndarray]:
    if isinstance(field, ListField):
        for part in field:
            yield from _sentences_of_field(part)
    elif isinstance(field, TextField) and len(field.tokens) > 0:
        for indexer in field.token_indexers.values():
            if isinstance(indexer, ELMoTokenCharactersIndexer):
                # Characters need no vocabulary.
                indices = indexer.tokens_to_indices(field.tokens, _NO_WORDS)
                padding_lengths = {"elmo_tokens": len(field.tokens)}
                tensor = indexer.as_padded_tensor_dict(indices, padding_lengths)["elmo_tokens"]
                yield tensor.numpy().astype("int16")


_NO_WORDS = Vocabulary()
