"""`{"sentence1": ..., "sentence2": ...}` to a label."""

from allennlp.common.util import JsonDict
from allennlp.predictors import Predictor

from elmo_tasks.predictors.classifier_predictor import ClassifierPredictor


@Predictor.register("elmo_pair")
class PairPredictor(ClassifierPredictor):
    """
    Reads `{"sentence1": "...", "sentence2": "..."}`; see `ClassifierPredictor`. The default predictor of
    `elmo_pair_classifier`.

    Registered as a `Predictor` with name "elmo_pair".
    """

    text_keys = ("sentence1", "sentence2")

    def predict(self, sentence1: str, sentence2: str) -> JsonDict:
        """The prediction for one pair of sentences."""
        return self.predict_json({"sentence1": sentence1, "sentence2": sentence2})
