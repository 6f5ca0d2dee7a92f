"""Each word beside what the other sentence says about it."""

from typing import Optional, Tuple

import torch
from allennlp.common import FromParams
from allennlp.common.checks import check_dimensions_match
from allennlp.modules import FeedForward, Seq2SeqEncoder
from allennlp.modules.matrix_attention import DotProductMatrixAttention, MatrixAttention
from allennlp.nn.util import masked_softmax, weighted_sum


class WordAlignment(torch.nn.Module, FromParams):
    """
    Soft alignment of the words of two sentences. Every word vector `x` is joined by `y`, the average of the
    other sentence's word vectors weighted by their similarity to `x`; `[x; y; x - y; x * y]` is projected
    and, if wanted, encoded again. Both sentences go through the same layers.

    # Parameters

    projection : `FeedForward`
        Takes four times the size of a word vector.
    matrix_attention : `MatrixAttention`, optional (default = `DotProductMatrixAttention()`)
        The similarity of two words.
    encoder : `Seq2SeqEncoder`, optional (default = `None`)
        Runs over the projected words of each sentence.

    # Source

    Chen et al. 2017, "Enhanced LSTM for Natural Language Inference", sections 3.2 and 3.3.
    """

    def __init__(
        self,
        projection: FeedForward,
        matrix_attention: Optional[MatrixAttention] = None,
        encoder: Optional[Seq2SeqEncoder] = None,
    ) -> None:
        super().__init__()
        if encoder is not None:
            check_dimensions_match(
                projection.get_output_dim(),
                encoder.get_input_dim(),
                "output of the alignment's projection",
                "input of the alignment's encoder",
            )
        self.projection = projection
        self.matrix_attention = matrix_attention or DotProductMatrixAttention()
        self.encoder = encoder

    def get_output_dim(self) -> int:
        """The size of an aligned word vector."""
        if self.encoder is not None:
            return self.encoder.get_output_dim()
        return self.projection.get_output_dim()

    def forward(
        self,
        vectors1: torch.Tensor,
        mask1: torch.BoolTensor,
        vectors2: torch.Tensor,
        mask2: torch.BoolTensor,
        symmetric: bool = False,
    ) -> Tuple[torch.Tensor, torch.Tensor]:
        """
        # Parameters

        vectors1, vectors2 : `torch.Tensor`
            `(batch_size, num_tokens1, input_dim)` and `(batch_size, num_tokens2, input_dim)`
        mask1, mask2 : `torch.BoolTensor`
            `(batch_size, num_tokens1)` and `(batch_size, num_tokens2)`, true at tokens.
        symmetric : `bool`, optional (default = `False`)
            Take the mean of the similarities in both orders, so that swapping the sentences swaps the
            results.

        # Returns

        `Tuple[torch.Tensor, torch.Tensor]`
            `(batch_size, num_tokens1, output_dim)` and `(batch_size, num_tokens2, output_dim)`
        """
        # (batch_size, num_tokens1, num_tokens2)
        similarity = self.matrix_attention(vectors1, vectors2)
        if symmetric:
            similarity = (similarity + self.matrix_attention(vectors2, vectors1).transpose(1, 2)) / 2
        aligned1 = self._align(vectors1, mask1, vectors2, mask2, similarity)
        aligned2 = self._align(vectors2, mask2, vectors1, mask1, similarity.transpose(1, 2).contiguous())
        return aligned1, aligned2

    def _align(
        self,
        vectors: torch.Tensor,
        mask: torch.BoolTensor,
        other: torch.Tensor,
        other_mask: torch.BoolTensor,
        similarity: torch.Tensor,
    ) -> torch.Tensor:
        # The "memory efficient" softmax is the one in which padding takes no part in the sum, however far
        # below zero the similarities lie; the factor makes the weights zero where the other sentence is
        # empty.
        # (batch_size, num_tokens, num_other_tokens)
        weights = masked_softmax(similarity, other_mask, memory_efficient=True) * other_mask.unsqueeze(1)
        # (batch_size, num_tokens, input_dim)
        attended = weighted_sum(other, weights)
        # (batch_size, num_tokens, 4 * input_dim)
        compared = torch.cat([vectors, attended, vectors - attended, vectors * attended], dim=-1)
        projected = self.projection(compared)
        if self.encoder is None:
            return projected
        if not mask.any():
            # PyTorch's recurrent layers refuse a batch without a single token.
            return projected.new_zeros(*mask.shape, self.get_output_dim())
        return self.encoder(projected, mask)
