"""AllenNLP's own biLM with its states from batch to batch, for results as it gives them, bit for bit."""

import os
import tempfile
from typing import Any, List, Optional, Sequence, Tuple, cast

import torch
from allennlp.modules.elmo import _ElmoBiLm

from elmo_tasks.bilm import BiLm, BiLmOptions, encode_sentences, save_weights
from elmo_tasks.bilm.products import without_autocast

States = Tuple[torch.Tensor, ...]


class StatefulBiLm:
    """
    Each row of a batch starts in the state that the same row of the batch before it left.

    # Parameters

    bilm : `BiLm`
        Whose weights to take; over characters.
    warm_up_sentences : `Sequence[Sequence[str]]`
        Tokenised sentences that are read, one after another, before anything else; a row that no batch has used yet
        starts in the state after them. None: it starts from zeros, as AllenNLP's embedder does.
    """

    def __init__(self, bilm: BiLm, warm_up_sentences: Sequence[Sequence[str]]) -> None:
        with tempfile.TemporaryDirectory() as folder:
            options_file, weight_file = os.path.join(folder, "options.json"), os.path.join(folder, "weights.hdf5")
            cast(BiLmOptions, bilm.options).to_file(options_file)
            save_weights(bilm, weight_file)
            self._stock = _ElmoBiLm(options_file, weight_file)
        self.device = next(bilm.parameters()).device
        self._stock.to(self.device)
        self._warm_states: Optional[States] = None
        for sentence in warm_up_sentences:
            self(encode_sentences([sentence]).to(self.device))
        if self._stock._elmo_lstm._states is not None:
            # A copy: AllenNLP writes into its states.
            self._warm_states = tuple(state.clone() for state in self._stock._elmo_lstm._states)

    def __call__(self, character_ids: torch.Tensor) -> List[torch.Tensor]:
        """
        # Parameters

        character_ids : `torch.Tensor`
            int64 `(batch_size, num_tokens, max_characters_per_token)`, at least one sentence not empty.

        # Returns

        `List[torch.Tensor]`
            float32 `(batch_size, num_tokens, bilm_dim)` for each layer, without boundaries.
        """
        self._add_warm_rows(character_ids.size(0))
        with torch.no_grad(), without_autocast(character_ids.device):
            activations = self._stock(character_ids)["activations"]
        return [layer[:, 1:-1] for layer in activations]

    def _add_warm_rows(self, batch_size: int) -> None:
        lstm: Any = self._stock._elmo_lstm
        if self._warm_states is not None and lstm._states[0].size(1) < batch_size:
            # Each state is (num_layers, batch_size, ...).
            num_new = batch_size - lstm._states[0].size(1)
            lstm._states = tuple(
                torch.cat([state, warm.expand(-1, num_new, -1)], dim=1)
                for state, warm in zip(lstm._states, self._warm_states)
            )
