"""Classifiers of others, with the labels, the loss, the metrics and the output of ours."""

from typing import Any, Dict, List, Optional, Union

import torch
from allennlp.common.checks import ConfigurationError
from allennlp.data import TextFieldTensors, Vocabulary
from allennlp.models import Model
from allennlp.nn import RegularizerApplicator

from elmo_tasks.models.classifier import Classifier
from elmo_tasks.models.pair_classifier import PairClassifier
from elmo_tasks.models.sentence_classifier import SentenceClassifier

# Where models of AllenNLP put their scores before the softmax.
LOGITS_KEYS = ("logits", "label_logits")


@Model.register("adapted_sentence_classifier")
class AdaptedSentenceClassifier(Classifier):
    """
    A model that takes `tokens` and gives scores, such as `bcn` of allennlp-models, run on the instances of our readers:
    all that is said about labels, by their names, is as with `elmo_sentence_classifier`.

    Registered as a `Model` with name "adapted_sentence_classifier".

    # Parameters

    vocab : `Vocabulary`
        Its namespace "labels" holds the label names.
    network : `Model`
        The model. It sees no labels: its own loss, metrics and regularizer have no part in this.
    positive_label : `Union[str, int]`, optional (default = `None`)
        The name of the label for the metrics `precision`, `recall`, `f1` and `positive_share`.
    class_weights : `Union[str, Dict[str, float]]`, optional (default = `None`)
        What each label weighs in the loss, by name; or `"balanced"`, from the counts of the training part.
    regularizer : `RegularizerApplicator`, optional (default = `None`)
        Penalties on parameters, added to the training loss.

    # Raises

    `ConfigurationError`
        As `elmo_sentence_classifier`; in the first batch, if the network gives no scores.
    """

    default_predictor = SentenceClassifier.default_predictor
    tokens_keys = SentenceClassifier.tokens_keys

    def __init__(
        self,
        vocab: Vocabulary,
        network: Model,
        positive_label: Optional[Union[str, int]] = None,
        class_weights: Optional[Union[str, Dict[str, float]]] = None,
        regularizer: Optional[RegularizerApplicator] = None,
    ) -> None:
        super().__init__(vocab, positive_label, class_weights, regularizer)
        self.network = network

    def forward(
        self,
        tokens: TextFieldTensors,
        label: Optional[torch.Tensor] = None,
        metadata: Optional[List[Dict[str, Any]]] = None,
    ) -> Dict[str, Any]:
        """As that of `SentenceClassifier`."""
        return self.judge(_logits(self.network, tokens=tokens), label, metadata)


@Model.register("adapted_pair_classifier")
class AdaptedPairClassifier(Classifier):
    """
    A model that takes `premise` and `hypothesis` and gives scores, such as `esim` and `decomposable_attention` of
    allennlp-models, run on the instances of our readers: all that is said about labels, by their names, is as with
    `elmo_pair_classifier`.

    Registered as a `Model` with name "adapted_pair_classifier".

    # Parameters

    vocab : `Vocabulary`
        Its namespace "labels" holds the label names.
    network : `Model`
        The model. It sees no labels: its own loss, metrics and regularizer have no part in this.
    symmetric : `bool`, optional (default = `False`)
        For relations like paraphrase, where the order says nothing: let each sentence be the premise once, and take the
        mean of the scores.
    positive_label : `Union[str, int]`, optional (default = `None`)
        The name of the label for the metrics `precision`, `recall`, `f1` and `positive_share`.
    class_weights : `Union[str, Dict[str, float]]`, optional (default = `None`)
        What each label weighs in the loss, by name; or `"balanced"`, from the counts of the training part.
    regularizer : `RegularizerApplicator`, optional (default = `None`)
        Penalties on parameters, added to the training loss.

    # Raises

    `ConfigurationError`
        As `elmo_pair_classifier`; in the first batch, if the network gives no scores.
    """

    default_predictor = PairClassifier.default_predictor
    tokens_keys = PairClassifier.tokens_keys

    def __init__(
        self,
        vocab: Vocabulary,
        network: Model,
        symmetric: bool = False,
        positive_label: Optional[Union[str, int]] = None,
        class_weights: Optional[Union[str, Dict[str, float]]] = None,
        regularizer: Optional[RegularizerApplicator] = None,
    ) -> None:
        super().__init__(vocab, positive_label, class_weights, regularizer)
        self.network = network
        self.symmetric = symmetric

    def forward(
        self,
        sentence1: TextFieldTensors,
        sentence2: TextFieldTensors,
        label: Optional[torch.Tensor] = None,
        metadata: Optional[List[Dict[str, Any]]] = None,
    ) -> Dict[str, Any]:
        """As that of `PairClassifier`."""
        logits = _logits(self.network, premise=sentence1, hypothesis=sentence2)
        if self.symmetric:
            logits = (logits + _logits(self.network, premise=sentence2, hypothesis=sentence1)) / 2
        return self.judge(logits, label, metadata)


def _logits(network: Model, **texts: TextFieldTensors) -> torch.Tensor:
    """float32 `(batch_size, num_labels)`"""
    outputs = network(**texts)
    for key in LOGITS_KEYS:
        if key in outputs:
            # Loss and probabilities are float32 under autocast too.
            return outputs[key].float()
    raise ConfigurationError(
        f"`network` must give its scores as {' or '.join(map(repr, LOGITS_KEYS))}, but {type(network).__name__} gives "
        f"{sorted(outputs)}"
    )
