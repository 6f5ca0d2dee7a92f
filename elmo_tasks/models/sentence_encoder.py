"""From a text field to token vectors."""

from itertools import islice
from typing import Optional, Tuple

import torch
from allennlp.common.checks import ConfigurationError, check_dimensions_match
from allennlp.data import TextFieldTensors
from allennlp.data.fields import TextField
from allennlp.modules import Seq2SeqEncoder, TextFieldEmbedder
from allennlp.modules.text_field_embedders import BasicTextFieldEmbedder
from allennlp.nn.util import get_text_field_mask

from elmo_tasks.common.protocols import InstanceSource


class SentenceEncoder(torch.nn.Module):
    """
    Embeds a text field and, if there is an encoder, lets the token vectors see each other.

    # Parameters

    text_field_embedder : `TextFieldEmbedder`
        Any one: ELMo, word vectors, or several side by side.
    seq2seq_encoder : `Seq2SeqEncoder`, optional (default = `None`)
        Runs over the embedded tokens.
    """

    def __init__(
        self, text_field_embedder: TextFieldEmbedder, seq2seq_encoder: Optional[Seq2SeqEncoder] = None
    ) -> None:
        super().__init__()
        if seq2seq_encoder is not None:
            check_dimensions_match(
                text_field_embedder.get_output_dim(),
                seq2seq_encoder.get_input_dim(),
                "output of text_field_embedder",
                "input of seq2seq_encoder",
            )
        self.text_field_embedder = text_field_embedder
        self.seq2seq_encoder = seq2seq_encoder

    def get_output_dim(self) -> int:
        """The size of a token vector."""
        if self.seq2seq_encoder is not None:
            return self.seq2seq_encoder.get_output_dim()
        return self.text_field_embedder.get_output_dim()

    def prepare_for_training(self, training_instances: InstanceSource, all_instances: InstanceSource) -> None:
        """
        Looks at one instance before anything is computed. See `PreparesForTraining`.

        # Raises

        ConfigurationError
            Where the reader's indexers and the embedders do not have the same keys.
        """
        if not isinstance(self.text_field_embedder, BasicTextFieldEmbedder):
            return
        wanted = sorted(self.text_field_embedder._token_embedders)
        for instance in islice(training_instances(), 1):
            for field in instance.fields.values():
                if isinstance(field, TextField) and sorted(field.token_indexers) != wanted:
                    raise ConfigurationError(
                        "`token_indexers` of the reader must have the keys of `token_embedders` of the model, "
                        f"{wanted}, but has {sorted(field.token_indexers)}"
                    )

    def forward(self, text: TextFieldTensors) -> Tuple[torch.Tensor, torch.Tensor]:
        """
        # Parameters

        text : `TextFieldTensors`
            A batch of sentences as a `TextField` gives it.

        # Returns

        vectors : `torch.Tensor`
            `(batch_size, num_tokens, output_dim)`, zero at padding.
        mask : `torch.Tensor`
            Bool `(batch_size, num_tokens)`, true at tokens.
        """
        # (batch_size, num_tokens)
        mask = get_text_field_mask(text)
        if not mask.any():
            # Without a single token, indexers give tensors that embedders cannot take (ELMo's has two
            # dimensions).
            batch_size, num_tokens = mask.size(0), max(mask.size(1), 1)
            vectors = torch.zeros(batch_size, num_tokens, self.get_output_dim(), device=mask.device)
            return vectors, mask.new_zeros(batch_size, num_tokens)
        # (batch_size, num_tokens, embedding_dim)
        vectors = self.text_field_embedder(text)
        if self.seq2seq_encoder is not None:
            vectors = self.seq2seq_encoder(vectors, mask)
        return vectors.masked_fill(~mask.unsqueeze(-1), 0.0), mask
