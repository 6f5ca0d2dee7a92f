"""How much each label counts in the loss."""

import math
from collections import Counter
from typing import Dict, Iterator, List, Sequence, Union

import torch
from allennlp.common.checks import ConfigurationError
from allennlp.data import Instance
from allennlp.data.fields import LabelField
from allennlp.nn.util import dist_reduce_sum

from elmo_tasks.common.protocols import InstanceSource

BALANCED = "balanced"


class ClassWeights(torch.nn.Module):
    """
    One weight per label, in the order of the model's scores, kept with the model's weights so that an archive
    has them.

    # Parameters

    label_names : `Sequence[str]`
        The name of every label, in the order of the model's scores.
    weights : `Union[str, Dict[str, float]]`
        A positive number for each label name; or `"balanced"`: the number of training rows divided by the
        number of labels and by the number of rows of the label, so that every label contributes the same to
        the loss. The rows are counted before the first epoch
        (`elmo_tasks.common.protocols.PreparesForTraining`).

    # Raises

    `ConfigurationError`
        If a label has no weight, a name is no label, or a weight is not a positive number.
    """

    weights: torch.Tensor

    def __init__(self, label_names: Sequence[str], weights: Union[str, Dict[str, float]]) -> None:
        super().__init__()
        self._label_names = list(label_names)
        self._balanced = weights == BALANCED
        self._known = not self._balanced
        if self._balanced:
            # Not a number until the rows are counted, or until the weights come out of an archive.
            values = [math.nan] * len(self._label_names)
        elif isinstance(weights, str):
            raise ConfigurationError(
                f"class_weights must be '{BALANCED}' or a number for each of the labels {self._label_names}, "
                f"but is {weights!r}."
            )
        else:
            values = self._by_label(weights)
        # (num_labels,)
        self.register_buffer("weights", torch.tensor(values))

    def _by_label(self, weights: Dict[str, float]) -> List[float]:
        if set(weights) != set(self._label_names):
            raise ConfigurationError(
                f"class_weights must name exactly the labels {self._label_names}, but names {list(weights)}."
            )
        for name, weight in weights.items():
            if not 0 < weight < math.inf:
                raise ConfigurationError(f"class_weights must be positive numbers, but is {weight} for label {name!r}.")
        return [float(weights[name]) for name in self._label_names]

    def prepare_for_training(self, training_instances: InstanceSource, all_instances: InstanceSource) -> None:
        """
        Count the labels of the training part, over all processes, if the weights are to be balanced.

        # Raises

        `ConfigurationError`
            If a training row has no label, or a label has no training row.
        """
        if not self._balanced:
            return
        found = Counter(_labels(training_instances()))
        counts = torch.tensor([float(found[name]) for name in self._label_names])
        counts = dist_reduce_sum(counts).to(self.weights.device)
        absent = [name for name, count in zip(self._label_names, counts) if count == 0]
        if absent:
            raise ConfigurationError(
                f"class_weights '{BALANCED}' needs training rows of every label, but has none of {absent}."
            )
        self.weights.copy_(counts.sum() / (len(counts) * counts))

    def forward(self) -> torch.Tensor:
        """
        # Returns

        `torch.Tensor`
            Float `(num_labels,)`

        # Raises

        `ConfigurationError`
            If the weights are to be balanced, but neither counted nor loaded.
        """
        if not self._known:
            if self.weights.isnan().any():
                raise ConfigurationError(
                    f"class_weights '{BALANCED}' needs the labels to be counted before the first loss, but nobody has: "
                    "a training run does it unless `enable_default_callbacks` is false; else call "
                    "`prepare_for_training`."
                )
            # Looked at once only: it makes a GPU wait.
            self._known = True
        return self.weights


def _labels(instances: Iterator[Instance]) -> Iterator[str]:
    for instance in instances:
        label = instance.fields.get("label")
        if not isinstance(label, LabelField):
            raise ConfigurationError(
                f"class_weights '{BALANCED}' needs a label in every training row, but there is {instance}"
            )
        yield str(label.label)
