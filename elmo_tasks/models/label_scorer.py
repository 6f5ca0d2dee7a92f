"""From a feature vector to one score per label."""

from typing import Optional

import torch
from allennlp.common.checks import ConfigurationError, check_dimensions_match
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
    num_dropout_samples : `int`, optional (default = `1`)
        Score so many samples of each training row, that differ in what is dropped.

    # Raises

    `ConfigurationError`
        If the sizes of the parts do not match; if there are several samples and no dropout to tell them apart.

    # Source

    Inoue 2019, "Multi-Sample Dropout for Accelerated Training and Better Generalization", for several samples.
    """

    def __init__(
        self,
        features_dim: int,
        num_labels: int,
        feedforward: Optional[FeedForward] = None,
        dropout: float = 0.0,
        num_dropout_samples: int = 1,
    ) -> None:
        super().__init__()
        if num_dropout_samples < 1:
            raise ConfigurationError(f"`num_dropout_samples` must be at least 1, but is {num_dropout_samples}")
        if num_dropout_samples > 1 and not dropout:
            raise ConfigurationError(
                f"`dropout` must be above 0 with `num_dropout_samples` {num_dropout_samples}: else samples are alike"
            )
        if feedforward is not None:
            check_dimensions_match(
                features_dim, feedforward.get_input_dim(), "size of the features", "input of feedforward"
            )
            features_dim = feedforward.get_output_dim()
        self.feedforward = feedforward
        self.dropout = torch.nn.Dropout(dropout)
        self.num_dropout_samples = num_dropout_samples
        self.linear = torch.nn.Linear(features_dim, num_labels)

    def forward(self, features: torch.Tensor) -> torch.Tensor:
        """
        # Parameters

        features : `torch.Tensor`
            `(batch_size, features_dim)`

        # Returns

        `torch.Tensor`
            Scores before the softmax, float32 `(batch_size, num_labels)`; in training with several samples,
            `(num_dropout_samples, batch_size, num_labels)`.
        """
        if self.feedforward is not None:
            features = self.feedforward(features)
        if self.training and self.num_dropout_samples > 1:
            # (num_dropout_samples, batch_size, features_dim)
            features = features.expand(self.num_dropout_samples, *features.shape)
        # Reduced precision is for the big products only: loss and probabilities are float32 under autocast
        # too.
        return self.linear(self.dropout(features)).float()
