"""Runs the biLM of an embedder on sentences: within a budget of tokens, and through the cache."""

import logging
from typing import Any, Dict, Iterable, List, Optional, Tuple

import numpy
import torch
from allennlp.common.checks import ConfigurationError
from allennlp.common.tqdm import Tqdm

from elmo_tasks.bilm import BiLm, weights_digest
from elmo_tasks.bilm.products import num_changes
from elmo_tasks.modules.activation_cache import ActivationCache
from elmo_tasks.modules.length_batches import length_batches
from elmo_tasks.modules.sentence_batch import SentenceBatch

logger = logging.getLogger(__name__)


class BiLmRunner:
    """
    Gives what a biLM makes of a token as one row: its token vector, then each layer of the LSTM.

    # Parameters

    bilm : `BiLm`
    cache : `Optional[ActivationCache]`
        Keeps the rows of sentences; `None`: the biLM runs each time.
    max_tokens_per_forward : `int`
        Sentences of a batch times the tokens of its longest; larger batches are cut into several.
    """

    def __init__(self, bilm: BiLm, cache: Optional[ActivationCache], max_tokens_per_forward: int) -> None:
        self.bilm = bilm
        self._cache = cache
        self._max_tokens_per_forward = max_tokens_per_forward
        self.fills_cache = False
        """Whether new entries are kept: not before there is a sign of training."""
        self._known_digest: Tuple[Any, str] = (None, "")

    @property
    def num_values(self) -> int:
        """Length of a row."""
        options = self.bilm.options
        return options.projection_dim + options.num_layers * options.bilm_dim

    def layers(self, rows: torch.Tensor) -> List[torch.Tensor]:
        """
        # Returns

        `List[torch.Tensor]`
            `(num_rows, bilm_dim)` for each layer. The token vector stands twice in the first, as both directions.
        """
        options = self.bilm.options
        token_vectors, *contextual = rows.split(
            [options.projection_dim] + [options.bilm_dim] * options.num_layers, dim=-1
        )
        return [torch.cat([token_vectors, token_vectors], dim=-1), *contextual]

    def rows(self, batch: SentenceBatch) -> torch.Tensor:
        """
        # Returns

        `torch.Tensor`
            float32 `(num_tokens_of_all_sentences, num_values)`, sentence after sentence.

        # Raises

        ConfigurationError
            Where there is a cache, and the biLM is being trained.
        """
        if self._cache is None:
            rows = self._run_in_batches(batch.character_ids, batch.lengths)
        else:
            rows = self._look_up(self._cache, batch)
        return torch.cat([self._no_rows(), *rows]).float()

    def fill_cache(self, sentences: Iterable[numpy.ndarray]) -> None:
        """
        Runs the biLM on the sentences that the cache does not have yet, in batches of like length, as far as there is
        room for them.

        # Parameters

        sentences : `Iterable[numpy.ndarray]`
            int16 `(num_tokens, max_characters_per_token)` each; doubles count once.
        """
        if self._cache is None:
            raise ConfigurationError("there must be a cache to be filled, but there is none")
        self.fills_cache = True
        context = self._context()
        num_bytes_per_token = self.num_values * self._cache.num_bytes_per_value
        room = self._cache.num_free_bytes // num_bytes_per_token
        wanted: Dict[bytes, numpy.ndarray] = {}
        for sentence in sentences:
            (key,) = self._cache.keys(sentence[None], [len(sentence)], context)
            if key in wanted or not self._cache.missing([key]):
                continue
            room -= len(sentence)
            if room < 0:
                break
            wanted[key] = sentence
        if not wanted:
            return
        lengths = [len(sentence) for sentence in wanted.values()]
        logger.info(
            "The biLM runs on %s sentences with %s tokens, %s MB for the activation cache (%s).",
            f"{len(lengths):,}",
            f"{sum(lengths):,}",
            f"{sum(lengths) * num_bytes_per_token / 1e6:,.0f}",
            self._cache.describe_room(),
        )
        arrays = list(wanted.values())
        batches = length_batches(lengths, self._max_tokens_per_forward)
        for positions in Tqdm.tqdm(batches, desc="filling the activation cache"):
            padded = numpy.zeros((len(positions), lengths[positions[0]], arrays[0].shape[1]), dtype="int64")
            for row, position in enumerate(positions):
                padded[row, : lengths[position]] = arrays[position]
            self.rows(SentenceBatch(torch.from_numpy(padded).to(self._device)))

    def digest(self) -> str:
        """
        # Returns

        `str`
            Digest of the options and of the weights as they are now, but for what was written to their `.data`.
        """
        # The weights are read again only after a change.
        state = [(parameter.data_ptr(), num_changes(parameter)) for parameter in self.bilm.parameters()]
        if self._known_digest[0] != state:
            self._known_digest = (state, weights_digest(self.bilm))
        return self._known_digest[1]

    def _look_up(self, cache: ActivationCache, batch: SentenceBatch) -> List[torch.Tensor]:
        if any(parameter.requires_grad for parameter in self.bilm.parameters()):
            raise ConfigurationError("the biLM must be frozen while there is a cache, but some of it is to be trained")
        keys = cache.keys(batch.array, batch.lengths, self._context())
        row_of_key = {key: row for row, key in enumerate(keys) if batch.lengths[row] > 0}
        found = cache.get(row_of_key, self.num_values, self._device, keep=self.fills_cache)
        if len(found) < len(row_of_key):
            absent = {key: row for key, row in row_of_key.items() if key not in found}
            positions = list(absent.values())
            computed = self._run_in_batches(
                batch.character_ids[positions], [batch.lengths[position] for position in positions]
            )
            # Rounded also when they are new, so that a sentence has the same vectors before and after.
            new = {key: rows.to(cache.dtype) for key, rows in zip(absent, computed)}
            if self.fills_cache:
                cache.put(new)
            found.update(new)
        return [found[key] for key in keys if key in found]

    def _run_in_batches(self, character_ids: torch.Tensor, lengths: List[int]) -> List[torch.Tensor]:
        """For each sentence `(num_tokens, num_values)`."""
        results = [self._no_rows()] * len(lengths)
        for positions in length_batches(lengths, self._max_tokens_per_forward):
            positions = [position for position in positions if lengths[position] > 0]
            if positions:
                rows = self._run(character_ids[positions, : lengths[positions[0]]])
                for position, part in zip(positions, rows.split([lengths[position] for position in positions])):
                    results[position] = part
        return results

    def _run(self, character_ids: torch.Tensor) -> torch.Tensor:
        # A frozen biLM needs no history.
        is_trained = any(parameter.requires_grad for parameter in self.bilm.parameters())
        with torch.set_grad_enabled(is_trained and torch.is_grad_enabled()):
            output = self.bilm(character_ids)
            # (batch_size, num_tokens, num_values)
            rows = torch.cat([output.token_vectors, *output.contextual], dim=-1)[:, 1:-1]
            return rows[(character_ids > 0).any(dim=-1)]

    def _context(self) -> bytes:
        precision = (
            f"{self.bilm.precision} tf32" if self._device.type == "cuda" and _rounds_on_gpus() else self.bilm.precision
        )
        return f"{self.digest()} {precision} stateless".encode()

    def _no_rows(self) -> torch.Tensor:
        return next(self.bilm.parameters()).new_zeros(0, self.num_values)

    @property
    def _device(self) -> torch.device:
        return next(self.bilm.parameters()).device


def _rounds_on_gpus() -> bool:
    """Whether torch may take TF32 for float32, which is the user's choice or that of a container's environment."""
    matmul = torch.backends.cuda.matmul
    if hasattr(matmul, "fp32_precision"):  # torch 2.9 refuses the older question where this has been set
        return matmul.fp32_precision == "tf32"
    return bool(matmul.allow_tf32)
