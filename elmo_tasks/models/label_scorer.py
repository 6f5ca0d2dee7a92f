"""From a feature vector to one score per label."""

from typing import Optional

import torch
from allennlp.common.checks import check_dimensions_match
from allennlp.modules import FeedForward


class LabelScorer(torch.nn.Module):
    """
    Optional feed-forward layers, dropout, one linear layer.

    # Parameters

    features_dim : `int`
        The size of a feature vector.
    num_labels : `int`
        The number of scores.
    feedforward : `FeedForward`, optional (default = `None`)
        Layers between the features and the linear layer.
    dropout : `float`, optional (default = `0.0`)
        The share of the linear layer's inputs that are dropped in training.
    """

    def __init__(
        self,
        features_dim: int,
        num_labels: int,
        feedforward: Optional[FeedForward] = None,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        if feedforward is not None:
            check_dimensions_match(
                features_dim, feedforward.get_input_dim(), "size of the features", "input of feedforward"
            )
            features_dim = feedforward.get_output_dim()
        self.feedforward = feedforward
        self.dropout = torch.nn.Dropout(dropout)
        self.linear = torch.nn.Linear(features_dim, num_labels)

    def forward(self, features: torch.Tensor) -> torch.Tensor:
        """
        # Parameters

        features : `torch.Tensor`
            `(batch_size, features_dim)`

        # Returns

        `torch.Tensor`
            Scores before the softmax, float32 `(batch_size, num_labels)`.
        """
        if self.feedforward is not None:
            features = self.feedforward(features)
        # Reduced precision is for the big products only: loss and probabilities are float32 under autocast
        # too.
        return self.linear(self.dropout(features)).float()
