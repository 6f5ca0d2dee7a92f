"""What the classifiers share: labels, loss, metrics and readable output."""

from typing import Any, Dict, List, Optional, Tuple, Union

import torch
from allennlp.common.checks import ConfigurationError
from allennlp.data import Vocabulary
from allennlp.models import Model
from allennlp.nn import RegularizerApplicator

from elmo_tasks.common.excerpts import excerpt
from elmo_tasks.common.protocols import InstanceSource, ReportsMetrics
from elmo_tasks.models.class_weights import ClassWeights
from elmo_tasks.models.classification_metrics import ClassificationMetrics

LABEL_NAMESPACE = "labels"


class Classifier(Model):
    """
    The labels, what they weigh, and how well they are found. A subclass says in `forward` what goes in and
    how it is scored, and hands the scores to `judge`.

    # Parameters

    vocab : `Vocabulary`
        Its namespace "labels" holds the label names.
    positive_label : `Union[str, int]`, optional (default = `None`)
        The name of the label for the metrics `precision`, `recall`, `f1` and `positive_share`.
    class_weights : `Union[str, Dict[str, float]]`, optional (default = `None`)
        What each label weighs in the loss, by name; or `"balanced"`, from the counts of the training part.
    regularizer : `RegularizerApplicator`, optional (default = `None`)
        Penalties on parameters, added to the training loss.

    # Raises

    `ConfigurationError`
        If the vocabulary has fewer than two labels; if `positive_label` is none of them; if `class_weights`
        does not name exactly them.
    """

    # Keys of the metadata that hold words for the readable output.
    tokens_keys: Tuple[str, ...] = ()

    def __init__(
        self,
        vocab: Vocabulary,
        positive_label: Optional[Union[str, int]] = None,
        class_weights: Optional[Union[str, Dict[str, float]]] = None,
        regularizer: Optional[RegularizerApplicator] = None,
    ) -> None:
        super().__init__(vocab, regularizer)  # type: ignore[arg-type]  # AllenNLP annotates `= None` without Optional
        names_by_index = vocab.get_index_to_token_vocabulary(LABEL_NAMESPACE)
        self.label_names: List[str] = [names_by_index[index] for index in sorted(names_by_index)]
        if len(self.label_names) < 2:
            raise ConfigurationError(
                f"A classifier needs at least two labels, but the vocabulary has {self.label_names}. "
                "Does the training file hold labels?"
            )
        self.class_weights = None if class_weights is None else ClassWeights(self.label_names, class_weights)
        self._metrics = ClassificationMetrics(self.label_names, None if positive_label is None else str(positive_label))

    def prepare_for_training(self, training_instances: InstanceSource, all_instances: InstanceSource) -> None:
        """
        Looks at the vocabulary, to which `Model.from_archive` adds the labels of new data. See `PreparesForTraining`.

        # Raises

        `ConfigurationError`
            If there are labels that this model, once made, cannot learn.
        """
        known = self.vocab.get_token_to_index_vocabulary(LABEL_NAMESPACE)
        new = [name for name in known if name not in self.label_names]
        if new:
            raise ConfigurationError(
                f"the training rows must have labels that the model was made with, {excerpt(self.label_names)}, but "
                f"some have {excerpt(new)}; leave these out, or make a new model in place of one from an archive"
            )

    def judge(
        self,
        logits: torch.Tensor,
        label: Optional[torch.Tensor],
        metadata: Optional[List[Dict[str, Any]]],
    ) -> Dict[str, Any]:
        """
        # Parameters

        logits : `torch.Tensor`
            Scores before the softmax, float32 `(batch_size, num_labels)`; or `(num_dropout_samples, batch_size,
            num_labels)`, whose loss is the mean of their losses.
        label : `torch.Tensor`, optional
            Indices of the true labels, int64 `(batch_size,)`.
        metadata : `List[Dict[str, Any]]`, optional
            One per row.

        # Returns

        `Dict[str, Any]`
            What `forward` returns: `logits` and `label_probabilities`, both float32 `(batch_size,
            num_labels)`; with labels also `loss` [nats] and `gold_label`, the indices given; with metadata
            the ids and the words.
        """
        # (num_dropout_samples, batch_size, num_labels)
        samples = logits if logits.dim() == 3 else logits.unsqueeze(0)
        logits = samples.mean(dim=0)
        probabilities = logits.softmax(dim=-1)
        output: Dict[str, Any] = {"logits": logits, "label_probabilities": probabilities}
        for key in ("id", *self.tokens_keys):
            if metadata is not None and all(key in row for row in metadata):
                output[key] = [row[key] for row in metadata]
        if label is not None:
            weights = None if self.class_weights is None else self.class_weights()
            labels = label.repeat(samples.size(0))
            output["loss"] = torch.nn.functional.cross_entropy(samples.flatten(0, 1), labels, weight=weights)
            output["gold_label"] = label
            self._metrics(probabilities, label)
        else:
            self._metrics.count_unlabelled(logits.size(0))
        return output

    def make_output_human_readable(self, output_dict: Dict[str, Any]) -> Dict[str, Any]:
        """
        # Parameters

        output_dict : `Dict[str, Any]`
            What `forward` returned.

        # Returns

        `Dict[str, Any]`
            For each row: `id`, `label` (the most probable one), `label_probabilities` by name, `gold_label`
            (if it was given), and the words. The loss of the batch stays, if there is one; there are no other
            tensors.
        """
        probabilities = output_dict["label_probabilities"].tolist()
        best = output_dict["label_probabilities"].argmax(dim=-1).tolist()
        readable: Dict[str, Any] = {}
        if "id" in output_dict:
            readable["id"] = output_dict["id"]
        readable["label"] = [self.label_names[i] for i in best]
        readable["label_probabilities"] = [dict(zip(self.label_names, row)) for row in probabilities]
        if "gold_label" in output_dict:
            readable["gold_label"] = [self.label_names[i] for i in output_dict["gold_label"].tolist()]
        for key in (*self.tokens_keys, "loss"):
            if key in output_dict:
                readable[key] = output_dict[key]
        return readable

    def get_metrics(self, reset: bool = False) -> Dict[str, float]:
        """
        # Parameters

        reset : `bool`, optional (default = `False`)
            Start to count anew. After an evaluation, this warns if every row got the same label.

        # Returns

        `Dict[str, float]`
            `accuracy`; `precision`, `recall`, `f1` and `positive_share` of the positive label; and what the
            modules inside report about themselves, such as the weights of a layer mix.

        # Raises

        `ConfigurationError`
            After an evaluation of rows of which none had a label.
        """
        if reset and not self.training:
            self._metrics.check_labels()
            self._metrics.warn_if_constant()
        metrics = self._metrics.get_metric(reset)
        for module in self.modules():
            # A model inside has metrics of its own, over labels that it does not see.
            if isinstance(module, ReportsMetrics) and not isinstance(module, Model):
                metrics.update(module.get_metrics(reset))
        return metrics
