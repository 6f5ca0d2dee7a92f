"""Predictors: from JSON or a data file to JSON lines."""

from elmo_tasks.predictors.classifier_predictor import ClassifierPredictor
from elmo_tasks.predictors.pair_predictor import PairPredictor
from elmo_tasks.predictors.sentence_predictor import SentencePredictor

__all__ = ["ClassifierPredictor", "PairPredictor", "SentencePredictor"]
