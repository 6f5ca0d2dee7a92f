"""The classifiers, and the parts that they are made of."""

from elmo_tasks.models.adapted_classifier import AdaptedPairClassifier, AdaptedSentenceClassifier
from elmo_tasks.models.bilm_language_model import BiLmLanguageModel
from elmo_tasks.models.bypass_encoder import BypassEncoder
from elmo_tasks.models.class_weights import ClassWeights
from elmo_tasks.models.classification_metrics import ClassificationMetrics
from elmo_tasks.models.classifier import Classifier
from elmo_tasks.models.label_scorer import LabelScorer
from elmo_tasks.models.pair_classifier import PairClassifier
from elmo_tasks.models.pooling import MaxPooling, Pooling
from elmo_tasks.models.prediction_rows import PredictionRows, PredictionRowsEvaluator
from elmo_tasks.models.self_attentive_pooling import SelfAttentivePooling
from elmo_tasks.models.sentence_classifier import SentenceClassifier
from elmo_tasks.models.sentence_encoder import SentenceEncoder
from elmo_tasks.models.word_alignment import WordAlignment

__all__ = [
    "AdaptedPairClassifier",
    "AdaptedSentenceClassifier",
    "BiLmLanguageModel",
    "BypassEncoder",
    "ClassWeights",
    "ClassificationMetrics",
    "Classifier",
    "LabelScorer",
    "MaxPooling",
    "PairClassifier",
    "Pooling",
    "PredictionRows",
    "PredictionRowsEvaluator",
    "SelfAttentivePooling",
    "SentenceClassifier",
    "SentenceEncoder",
    "WordAlignment",
]
