"""What AllenNLP's interpreters get from a classifier with ELMo."""

from pathlib import Path

import numpy
import pytest
from allennlp.common import Params
from allennlp.data import Vocabulary
from allennlp.interpret.saliency_interpreters import IntegratedGradient, SimpleGradient
from allennlp.models import Model
from allennlp.predictors import Predictor

from elmo_tasks.dataset_readers import MrpcReader, MrReader
from elmo_tasks.predictors import PairPredictor, SentencePredictor

BILM = Path(__file__).parents[2] / "fixtures" / "bilm"
INPUTS = {
    "sentence": {"sentence": "a slow , warm film"},
    "pair": {"sentence1": "Rain fell in the north .", "sentence2": "The north was dry ."},
}


def predictor_with_elmo(kind, **options):
    """A model as it starts, with the same weights each time."""
    vocabulary = Vocabulary.empty()
    for label in ("0", "1"):
        vocabulary.add_token_to_namespace(label, "labels")
    embedder = {"type": "elmo", "pretrained": str(BILM), "dropout": 0.0, **options}
    config = {
        "type": f"elmo_{kind}_classifier",
        "text_field_embedder": {"token_embedders": {"elmo": embedder}},
        "seq2seq_encoder": {"type": "lstm", "input_size": 64, "hidden_size": 6},
    }
    model = Model.from_params(Params(config), vocab=vocabulary)
    for number, parameter in enumerate(model.encoder.seq2seq_encoder.parameters()):
        values = numpy.random.RandomState(number).normal(size=parameter.shape, scale=0.3)
        parameter.data.copy_(parameter.data.new_tensor(values))
    model.scorer.load_state_dict(
        {
            name: value.new_tensor(numpy.random.RandomState(len(name)).normal(size=value.shape))
            for name, value in model.scorer.state_dict().items()
        }
    )
    return SentencePredictor(model, MrReader()) if kind == "sentence" else PairPredictor(model, MrpcReader())


@pytest.mark.filterwarnings("ignore:Using a? ?non-full backward hook")
@pytest.mark.parametrize("kind", ["sentence", "pair"])
def test_gradients_are_those_of_allennlp(kind):
    ours, theirs = predictor_with_elmo(kind), predictor_with_elmo(kind)
    gradients, outputs = ours.get_gradients(ours.json_to_labeled_instances(INPUTS[kind]))
    expected, expected_outputs = Predictor.get_gradients(theirs, theirs.json_to_labeled_instances(INPUTS[kind]))
    assert list(gradients) == list(expected)
    for name, gradient in gradients.items():
        assert numpy.abs(gradient).max() > 1e-3
        numpy.testing.assert_allclose(gradient, expected[name], atol=1e-6)
    assert outputs["label"] == expected_outputs["label"]
    assert outputs["loss"].item() == pytest.approx(expected_outputs["loss"].item())


@pytest.mark.parametrize("kind", ["sentence", "pair"])
@pytest.mark.parametrize("interpreter", [IntegratedGradient, SimpleGradient])
def test_interpreters_see_the_same_through_an_activation_cache(kind, interpreter):
    plain, cached = predictor_with_elmo(kind), predictor_with_elmo(kind, cache={})
    expected = interpreter(plain).saliency_interpret_from_json(INPUTS[kind])
    for _ in range(2):  # the second time, nothing that the first one did is left
        found = interpreter(cached).saliency_interpret_from_json(INPUTS[kind])
        for name, weights in expected["instance_1"].items():
            assert found["instance_1"][name] == pytest.approx(weights, abs=1e-6)


def test_a_mix_without_parameters_has_gradients_too():
    predictor = predictor_with_elmo("sentence", cache={}, mix={"type": "single_layer"})
    (instance,) = predictor.json_to_labeled_instances(INPUTS["sentence"])
    gradients, _ = predictor.get_gradients([instance])
    assert gradients["grad_input_1"].shape == (1, 5, 64)
    assert numpy.abs(gradients["grad_input_1"]).max() > 1e-3


def test_the_frozen_bilm_stays_frozen_and_the_model_keeps_no_gradients():
    predictor = predictor_with_elmo("sentence", cache={})
    before = {name: parameter.requires_grad for name, parameter in predictor._model.named_parameters()}
    predictor.get_gradients(predictor.json_to_labeled_instances(INPUTS["sentence"]))
    assert {name: parameter.requires_grad for name, parameter in predictor._model.named_parameters()} == before
    assert all(parameter.grad is None for parameter in predictor._model.parameters())
