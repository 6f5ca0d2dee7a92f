"""`{"sentence": ...}` to a label."""

from allennlp.common.util import JsonDict
from allennlp.predictors import Predictor

from elmo_tasks.predictors.classifier_predictor import ClassifierPredictor


@Predictor.register("elmo_sentence")
class SentencePredictor(ClassifierPredictor):
    """
    Reads `{"sentence": "..."}`; see `ClassifierPredictor`. The default predictor of
    `elmo_sentence_classifier`.

    Registered as a `Predictor` with name "elmo_sentence".
    """

    text_keys = ("sentence",)

    def predict(self, sentence: str) -> JsonDict:
        """The prediction for one sentence."""
        return self.predict_json({"sentence": sentence})
