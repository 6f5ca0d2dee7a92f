"""One sentence, one label."""

from typing import Any, Dict, List, Optional, Union

import torch
from allennlp.data import TextFieldTensors, Vocabulary
from allennlp.models import Model
from allennlp.modules import FeedForward, Seq2SeqEncoder, Seq2VecEncoder, TextFieldEmbedder
from allennlp.nn import RegularizerApplicator

from elmo_tasks.models.classifier import Classifier
from elmo_tasks.models.label_scorer import LabelScorer
from elmo_tasks.models.pooling import Pooling
from elmo_tasks.models.sentence_encoder import SentenceEncoder


@Model.register("elmo_sentence_classifier")
class SentenceClassifier(Classifier):
    """
    Embed, encode if there is an encoder, pool, classify. A sentence without tokens is legal: its features are
    zeros.

    Registered as a `Model` with name "elmo_sentence_classifier".

    # Parameters

    vocab : `Vocabulary`
        Its namespace "labels" holds the label names.
    text_field_embedder : `TextFieldEmbedder`
        Any one; with ELMo alone there need be no word vocabulary, the words shown come from the metadata.
    seq2seq_encoder : `Seq2SeqEncoder`, optional (default = `None`)
        Runs over the embedded tokens.
    seq2vec_encoder : `Seq2VecEncoder`, optional (default = the mean over the tokens)
        Makes one vector of a sentence; `max_pooling` is the largest value per dimension. `cnn` needs
        sentences as long as its widest filter: set `token_min_padding_length` of the token indexer to that
        width.
    feedforward : `FeedForward`, optional (default = `None`)
        Layers between the pooled vector and the linear layer.
    dropout : `float`, optional (default = `0.0`)
        The share of the linear layer's inputs that are dropped in training.
    num_dropout_samples : `int`, optional (default = `1`)
        The training loss is the mean over so many samples of each row, that differ in what is dropped.
    positive_label : `Union[str, int]`, optional (default = `None`)
        The name of the label for the metrics `precision`, `recall`, `f1` and `positive_share`.
    class_weights : `Union[str, Dict[str, float]]`, optional (default = `None`)
        What each label weighs in the loss, by name; or `"balanced"`, from the counts of the training part.
    regularizer : `RegularizerApplicator`, optional (default = `None`)
        Penalties on parameters, added to the training loss.

    # Raises

    `ConfigurationError`
        If the vocabulary has fewer than two labels; if `positive_label` is none of them; if `class_weights`
        does not name exactly them; if the sizes of the parts do not match.
    """

    default_predictor = "elmo_sentence"
    tokens_keys = ("tokens",)

    def __init__(
        self,
        vocab: Vocabulary,
        text_field_embedder: TextFieldEmbedder,
        seq2seq_encoder: Optional[Seq2SeqEncoder] = None,
        seq2vec_encoder: Optional[Seq2VecEncoder] = None,
        feedforward: Optional[FeedForward] = None,
        dropout: float = 0.0,
        num_dropout_samples: int = 1,
        positive_label: Optional[Union[str, int]] = None,
        class_weights: Optional[Union[str, Dict[str, float]]] = None,
        regularizer: Optional[RegularizerApplicator] = None,
    ) -> None:
        super().__init__(vocab, positive_label, class_weights, regularizer)
        self.encoder = SentenceEncoder(text_field_embedder, seq2seq_encoder)
        self.pooling = Pooling(self.encoder.get_output_dim(), seq2vec_encoder)
        self.scorer = LabelScorer(
            self.pooling.get_output_dim(), len(self.label_names), feedforward, dropout, num_dropout_samples
        )

    def forward(
        self,
        tokens: TextFieldTensors,
        label: Optional[torch.Tensor] = None,
        metadata: Optional[List[Dict[str, Any]]] = None,
    ) -> Dict[str, Any]:
        """
        # Parameters

        tokens : `TextFieldTensors`
            A batch of sentences.
        label : `torch.Tensor`, optional (default = `None`)
            Indices of the true labels, int64 `(batch_size,)`.
        metadata : `List[Dict[str, Any]]`, optional (default = `None`)
            One per row, with the keys `id` and `tokens`.

        # Returns

        `Dict[str, Any]`
            `logits` and `label_probabilities`, both float32 `(batch_size, num_labels)`; with labels also
            `loss` [nats] and `gold_label`; with metadata `id` and `tokens`.
        """
        # (batch_size, num_tokens, encoding_dim)
        vectors, mask = self.encoder(tokens)
        # (batch_size, num_labels)
        logits = self.scorer(self.pooling(vectors, mask))
        return self.judge(logits, label, metadata)
