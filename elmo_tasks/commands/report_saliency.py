"""Which words speak for what a model predicts."""

from typing import List

from allennlp.data import Instance
from allennlp.data.fields import TextField
from allennlp.interpret.saliency_interpreters import IntegratedGradient


class SignedSaliency(IntegratedGradient):
    """
    AllenNLP's integrated gradients of the predicted label, with their signs: AllenNLP itself gives absolute shares,
    in which a word that speaks against the prediction looks like one that speaks for it.

    (Its `SimpleGradient` multiplies the gradients of all tokens by the vector of the first one.)

    # Parameters

    predictor : `Predictor`

    # Source

    Sundararajan et al. 2017, "Axiomatic Attribution for Deep Networks", with zero vectors as the baseline.
    """

    def of_tokens(self, instance: Instance, label: str) -> List[List[float]]:
        """
        # Parameters

        instance : `Instance`
        label : `str`
            The label that is to be explained.

        # Returns

        `List[List[float]]`
            For each text, a number for each token: by how much [nats] it lowers the loss of the label, against a text
            of zero vectors. Above 0, it speaks for the label.
        """
        (labelled,) = self.predictor.predictions_to_labeled_instances(instance, {"label": label})  # type: ignore
        gradients = self._integrate_gradients(labelled)
        # The last text comes first. (1, num_tokens, embedding_dim) each, multiplied with the vectors already
        ordered = [gradients[f"grad_input_{number}"] for number in range(len(gradients), 0, -1)]
        lowered = [-one[0].sum(axis=-1) for one in ordered]
        num_texts = sum(isinstance(field, TextField) for field in labelled.fields.values())
        if len(lowered) == 2 * num_texts:
            # A symmetric model reads a pair in both orders.
            lowered = [numbers + again for numbers, again in zip(lowered, reversed(lowered[num_texts:]))]
        return [numbers.tolist() for numbers in lowered]
