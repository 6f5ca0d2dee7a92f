"""From token vectors to one vector per sentence."""

from typing import Optional

import torch
from allennlp.common.checks import check_dimensions_match
from allennlp.modules import Seq2VecEncoder
from allennlp.modules.seq2vec_encoders import BagOfEmbeddingsEncoder
from allennlp.nn.util import masked_max


class Pooling(torch.nn.Module):
    """
    Any `Seq2VecEncoder`, made safe for sentences without tokens: they get zeros, whatever the encoder and the
    rest of the batch.

    # Parameters

    input_dim : `int`
        The size of a token vector.
    seq2vec_encoder : `Seq2VecEncoder`, optional (default = the mean over the tokens)
        What makes one vector of a sentence.
    """

    def __init__(self, input_dim: int, seq2vec_encoder: Optional[Seq2VecEncoder] = None) -> None:
        super().__init__()
        if seq2vec_encoder is None:
            seq2vec_encoder = BagOfEmbeddingsEncoder(input_dim, averaged=True)
        check_dimensions_match(
            input_dim, seq2vec_encoder.get_input_dim(), "size of a token vector", "input of seq2vec_encoder"
        )
        self.seq2vec_encoder = seq2vec_encoder

    def get_output_dim(self) -> int:
        """The size of the pooled vector."""
        return self.seq2vec_encoder.get_output_dim()

    def forward(self, vectors: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """
        # Parameters

        vectors : `torch.Tensor`
            `(batch_size, num_tokens, input_dim)`
        mask : `torch.Tensor`
            Bool `(batch_size, num_tokens)`, true at tokens.

        # Returns

        `torch.Tensor`
            `(batch_size, output_dim)`
        """
        # (batch_size,)
        is_empty = ~mask.any(dim=1)
        if is_empty.all():
            # PyTorch's recurrent layers refuse a batch without a single token.
            return vectors.new_zeros(vectors.size(0), self.get_output_dim())
        return self.seq2vec_encoder(vectors, mask).masked_fill(is_empty.unsqueeze(1), 0.0)


@Seq2VecEncoder.register("max_pooling")
class MaxPooling(Seq2VecEncoder):
    """
    The largest value of each dimension over the tokens of a sentence (for the mean, AllenNLP has
    `bag_of_embeddings` with `averaged: true`). A sentence without tokens gets zeros.

    Registered as a `Seq2VecEncoder` with name "max_pooling".

    # Parameters

    embedding_dim : `int`
        The size of a token vector, and of the result.
    """

    def __init__(self, embedding_dim: int) -> None:
        super().__init__()
        self._embedding_dim = embedding_dim

    def get_input_dim(self) -> int:
        """The size of a token vector."""
        return self._embedding_dim

    def get_output_dim(self) -> int:
        """The size of the pooled vector."""
        return self._embedding_dim

    def forward(self, tokens: torch.Tensor, mask: Optional[torch.BoolTensor] = None) -> torch.Tensor:
        """
        # Parameters

        tokens : `torch.Tensor`
            `(batch_size, num_tokens, embedding_dim)`
        mask : `torch.BoolTensor`, optional (default = `None`)
            `(batch_size, num_tokens)`, true at tokens; without it, all are tokens.

        # Returns

        `torch.Tensor`
            `(batch_size, embedding_dim)`
        """
        if mask is None:
            return tokens.max(dim=1).values
        # (batch_size, num_tokens, 1)
        is_token = mask.unsqueeze(-1)
        largest = masked_max(tokens, is_token, dim=1)  # type: ignore[arg-type]
        return largest.masked_fill(~is_token.any(dim=1), 0.0)
