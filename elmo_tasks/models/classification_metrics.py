"""Accuracy, and precision, recall and F1 of one label given by name."""

import logging
from typing import Dict, Optional, Sequence

import torch
from allennlp.common.checks import ConfigurationError
from allennlp.common.util import is_global_primary
from allennlp.nn.util import dist_reduce_sum
from allennlp.training.metrics import Metric

logger = logging.getLogger(__name__)

# Fewer rows than this may well carry one label by chance.
MIN_ROWS_TO_JUDGE = 20


class ClassificationMetrics(Metric):
    """
    Everything is read off one confusion matrix. AllenNLP's `CategoricalAccuracy` and `FBetaMeasure` give the
    same figures, but know labels by index only, and `FBetaMeasure` raises before it has seen any row, when a
    training run already wants to know the names of the metrics.

    # Parameters

    label_names : `Sequence[str]`
        The name of every label, in the order of the model's scores.
    positive_label : `str`, optional (default = `None`)
        The label whose precision, recall and F1 are reported. The vocabulary orders labels by frequency, so
        only a name says which one is meant.

    # Raises

    `ConfigurationError`
        If `positive_label` is no label.
    """

    supports_distributed = True

    def __init__(self, label_names: Sequence[str], positive_label: Optional[str] = None) -> None:
        if positive_label is not None and positive_label not in label_names:
            raise ConfigurationError(
                f"positive_label must be one of the labels {', '.join(map(repr, label_names))}, "
                f"but is {positive_label!r}."
            )
        self._label_names = label_names
        self._positive = None if positive_label is None else label_names.index(positive_label)
        self.reset()

    def reset(self) -> None:
        num_labels = len(self._label_names)
        # (num_labels, num_labels): rows counted by true label, then by predicted label
        self._confusion = torch.zeros(num_labels, num_labels, dtype=torch.long)
        self._num_unlabelled = 0  # of this process

    def __call__(
        self,
        predictions: torch.Tensor,
        gold_labels: torch.Tensor,
        mask: Optional[torch.BoolTensor] = None,
    ) -> None:
        """
        # Parameters

        predictions : `torch.Tensor`
            Probabilities or scores, `(batch_size, num_labels)`.
        gold_labels : `torch.Tensor`
            Indices of the true labels, int64 `(batch_size,)`.
        mask : `torch.BoolTensor`, optional (default = `None`)
            Rows to count, `(batch_size,)`.
        """
        num_labels = len(self._label_names)
        # (batch_size,)
        cells = gold_labels * num_labels + predictions.argmax(dim=-1)
        if mask is not None:
            cells = cells[mask]
        counts = torch.bincount(cells, minlength=num_labels * num_labels)
        self._confusion += dist_reduce_sum(counts).view(num_labels, num_labels).cpu()

    def get_metric(self, reset: bool = False) -> Dict[str, float]:
        """
        # Returns

        `Dict[str, float]`
            `accuracy`; with a positive label also its `precision`, `recall` and `f1`, and `positive_share`,
            the share of rows for which it was predicted. All are 0.0 where they would divide by nothing, and
            before any row.
        """
        num_rows = self._confusion.sum().item()
        metrics = {"accuracy": _ratio(self._confusion.trace().item(), num_rows)}
        if self._positive is not None:
            hits = self._confusion[self._positive, self._positive].item()
            num_predicted = self._confusion[:, self._positive].sum().item()
            num_true = self._confusion[self._positive].sum().item()
            metrics["precision"] = _ratio(hits, num_predicted)
            metrics["recall"] = _ratio(hits, num_true)
            metrics["f1"] = _ratio(2 * hits, num_predicted + num_true)
            metrics["positive_share"] = _ratio(num_predicted, num_rows)
        if reset:
            self.reset()
        return metrics

    def count_unlabelled(self, num_rows: int) -> None:
        """Takes note of rows that have no label, which are in no figure."""
        self._num_unlabelled += num_rows

    def check_labels(self) -> None:
        """
        # Raises

        `ConfigurationError`
            If there were rows but none had a label: figures of 0.0 would look like a result.
        """
        # Each process of several sees rows of its own, but the matrix is that of all: no need to ask the others.
        if self._num_unlabelled and not self._confusion.any():
            raise ConfigurationError(
                f"rows must have labels where a model is evaluated, but none of {self._num_unlabelled} has one; "
                "`allennlp predict` takes rows without labels"
            )

    def warn_if_constant(self) -> None:
        """
        Warn when every row got the same label although the true labels differ: the accuracy of such a model
        is a base rate (always "1" scores 66.5 % accuracy and 79.9 % F1 on the test part of MRPC) and can look
        like success.
        """
        predicted = self._confusion.sum(dim=0)
        num_rows = int(predicted.sum())
        winner = int(predicted.argmax())
        if num_rows < MIN_ROWS_TO_JUDGE or predicted[winner] < num_rows or not is_global_primary():
            return
        num_other = num_rows - int(self._confusion[winner, winner])
        if num_other:
            logger.warning(
                "The model predicts label '%s' for each of the %d rows, although %d of them carry another; "
                "its figures say no more than how frequent that label is.",
                self._label_names[winner],
                num_rows,
                num_other,
            )


def _ratio(part: float, whole: float) -> float:
    return float(part / whole) if whole else 0.0
