"""Predictors: from JSON or a data file to JSON lines."""

from elmo_tasks.predictors.classifier_predictor import ClassifierPredictor
from elmo_tasks.predictors.pair_predictor import PairPredictor
from elmo_tasks.predictors.sentence_predictor import SentencePredictor
from elmo_tasks.predictors.text_generator import TextGenerator

__all__ = ["ClassifierPredictor", "PairPredictor", "SentencePredictor", "TextGenerator"]
