"""Two sentences, one label."""

from typing import Any, Dict, List, Optional, Union

import torch
from allennlp.common.checks import check_dimensions_match
from allennlp.data import TextFieldTensors, Vocabulary
from allennlp.models import Model
from allennlp.modules import FeedForward, Seq2SeqEncoder, Seq2VecEncoder, TextFieldEmbedder
from allennlp.nn import RegularizerApplicator

from elmo_tasks.models.classifier import Classifier
from elmo_tasks.models.label_scorer import LabelScorer
from elmo_tasks.models.pooling import Pooling
from elmo_tasks.models.sentence_encoder import SentenceEncoder
from elmo_tasks.models.word_alignment import WordAlignment


@Model.register("elmo_pair_classifier")
class PairClassifier(Classifier):
    """
    Both sentences go through the same embedder, encoder and pooling; with `u` and `v` their pooled vectors,
    `[u; v; |u - v|; u * v]` is classified. A sentence without tokens is legal: its vector is zeros.

    Registered as a `Model` with name "elmo_pair_classifier".

    # Parameters

    vocab : `Vocabulary`
        Its namespace "labels" holds the label names.
    text_field_embedder : `TextFieldEmbedder`
        Any one; with ELMo alone there need be no word vocabulary, the words shown come from the metadata.
    seq2seq_encoder : `Seq2SeqEncoder`, optional (default = `None`)
        Runs over the embedded tokens of each sentence.
    alignment : `WordAlignment`, optional (default = `None`)
        Joins every word with what the other sentence says about it, before pooling.
    seq2vec_encoder : `Seq2VecEncoder`, optional (default = the mean over the tokens)
        Makes one vector of a sentence; `max_pooling` is the largest value per dimension. `cnn` needs
        sentences as long as its widest filter: set `token_min_padding_length` of the token indexer to that
        width.
    feedforward : `FeedForward`, optional (default = `None`)
        Layers between `[u; v; |u - v|; u * v]` and the linear layer.
    dropout : `float`, optional (default = `0.0`)
        The share of the linear layer's inputs that are dropped in training.
    num_dropout_samples : `int`, optional (default = `1`)
        The training loss is the mean over so many samples of each row, that differ in what is dropped.
    symmetric : `bool`, optional (default = `False`)
        For relations like paraphrase, where the order says nothing: score both orders of `u` and `v` and take
        the mean, and likewise with the similarities of the alignment. `(a, b)` and `(b, a)` then get the same
        scores.
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

    # Source

    Conneau et al. 2017, "Supervised Learning of Universal Sentence Representations from Natural Language
    Inference Data", figure 1, for the features; Chen et al. 2017 for the alignment.
    """

    default_predictor = "elmo_pair"
    tokens_keys = ("sentence1_tokens", "sentence2_tokens")

    def __init__(
        self,
        vocab: Vocabulary,
        text_field_embedder: TextFieldEmbedder,
        seq2seq_encoder: Optional[Seq2SeqEncoder] = None,
        alignment: Optional[WordAlignment] = None,
        seq2vec_encoder: Optional[Seq2VecEncoder] = None,
        feedforward: Optional[FeedForward] = None,
        dropout: float = 0.0,
        num_dropout_samples: int = 1,
        symmetric: bool = False,
        positive_label: Optional[Union[str, int]] = None,
        class_weights: Optional[Union[str, Dict[str, float]]] = None,
        regularizer: Optional[RegularizerApplicator] = None,
    ) -> None:
        super().__init__(vocab, positive_label, class_weights, regularizer)
        self.encoder = SentenceEncoder(text_field_embedder, seq2seq_encoder)
        token_dim = self.encoder.get_output_dim()
        if alignment is not None:
            check_dimensions_match(
                4 * token_dim,
                alignment.projection.get_input_dim(),
                "4 * size of a token vector",
                "input of the alignment's projection",
            )
            token_dim = alignment.get_output_dim()
        self.alignment = alignment
        self.pooling = Pooling(token_dim, seq2vec_encoder)
        self.scorer = LabelScorer(
            4 * self.pooling.get_output_dim(), len(self.label_names), feedforward, dropout, num_dropout_samples
        )
        self.symmetric = symmetric

    def forward(
        self,
        sentence1: TextFieldTensors,
        sentence2: TextFieldTensors,
        label: Optional[torch.Tensor] = None,
        metadata: Optional[List[Dict[str, Any]]] = None,
    ) -> Dict[str, Any]:
        """
        # Parameters

        sentence1, sentence2 : `TextFieldTensors`
            Two batches of sentences, row by row the pairs.
        label : `torch.Tensor`, optional (default = `None`)
            Indices of the true labels, int64 `(batch_size,)`.
        metadata : `List[Dict[str, Any]]`, optional (default = `None`)
            One per row, with the keys `id`, `sentence1_tokens` and `sentence2_tokens`.

        # Returns

        `Dict[str, Any]`
            `logits` and `label_probabilities`, both float32 `(batch_size, num_labels)`; with labels also
            `loss` [nats] and `gold_label`; with metadata `id`, `sentence1_tokens` and `sentence2_tokens`.
        """
        # (batch_size, num_tokens1, token_dim) and (batch_size, num_tokens2, token_dim)
        vectors1, mask1 = self.encoder(sentence1)
        vectors2, mask2 = self.encoder(sentence2)
        if self.alignment is not None:
            vectors1, vectors2 = self.alignment(vectors1, mask1, vectors2, mask2, symmetric=self.symmetric)
        # (batch_size, pooled_dim)
        u, v = self.pooling(vectors1, mask1), self.pooling(vectors2, mask2)
        # (batch_size, num_labels)
        logits = self._compare(u, v)
        if self.symmetric:
            logits = (logits + self._compare(v, u)) / 2
        return self.judge(logits, label, metadata)

    def _compare(self, u: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        # (batch_size, 4 * pooled_dim)
        features = torch.cat([u, v, (u - v).abs(), u * v], dim=-1)
        return self.scorer(features)
