"""A pooling that learns which words count."""

from typing import Optional

import torch
from allennlp.common.checks import ConfigurationError
from allennlp.modules import Seq2VecEncoder
from allennlp.nn.util import masked_softmax, weighted_sum


@Seq2VecEncoder.register("self_attentive")
class SelfAttentivePooling(Seq2VecEncoder):
    """
    The mean of the token vectors, weighted by `softmax(w2 . tanh(W1 h))` over the tokens `h` of a sentence. A sentence
    without tokens gets zeros.

    The source stacks several such means and punishes those that are alike; this is one, which needs no penalty.

    Registered as a `Seq2VecEncoder` with name "self_attentive".

    # Parameters

    embedding_dim : `int`
        The size of a token vector, and of the result.
    attention_dim : `int`, optional (default = `350`)
        The size of `W1 h`; the default is the source's.

    # Raises

    `ConfigurationError`
        If `attention_dim` is below 1.

    # Source

    Lin et al. 2017, "A Structured Self-attentive Sentence Embedding", equation 5.
    """

    def __init__(self, embedding_dim: int, attention_dim: int = 350) -> None:
        super().__init__()
        if attention_dim < 1:
            raise ConfigurationError(f"`attention_dim` must be at least 1, but is {attention_dim}")
        self._embedding_dim = embedding_dim
        self.hidden = torch.nn.Linear(embedding_dim, attention_dim, bias=False)
        self.score = torch.nn.Linear(attention_dim, 1, bias=False)

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
        # (batch_size, num_tokens)
        scores = self.score(torch.tanh(self.hidden(tokens))).squeeze(-1)
        if mask is None:
            return weighted_sum(tokens, scores.softmax(dim=-1))
        # In the "memory efficient" softmax padding takes no part in the sum, however far below zero the scores lie; the
        # factor makes the weights zero where there is no token.
        weights = masked_softmax(scores, mask, memory_efficient=True) * mask
        return weighted_sum(tokens, weights)
