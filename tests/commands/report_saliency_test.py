from pathlib import Path

import numpy
import pytest
import torch
from allennlp.common import Params
from allennlp.data import Batch, Vocabulary
from allennlp.models import Model

from elmo_tasks.commands.report_saliency import SignedSaliency
from elmo_tasks.dataset_readers import MrpcReader, MrReader
from elmo_tasks.predictors import PairPredictor, SentencePredictor

BILM = Path(__file__).parents[2] / "fixtures" / "bilm"


@pytest.fixture
def model():
    """One layer over the mean of the token vectors, through an activation cache."""

    def model(kind):
        vocabulary = Vocabulary.empty()
        for label in ("0", "1"):
            vocabulary.add_token_to_namespace(label, "labels")
        embedder = {"type": "elmo", "pretrained": str(BILM), "cache": {}}
        config = {"type": kind, "text_field_embedder": {"token_embedders": {"elmo": embedder}}}
        torch.manual_seed(1)
        return Model.from_params(Params(config), vocab=vocabulary).eval()

    return model


def test_saliency_of_a_linear_model_is_what_each_word_adds(model):
    """The gradient has the same direction everywhere: what a word gets is in proportion to its part of the score."""
    linear, reader = model("elmo_sentence_classifier"), MrReader()
    instance = reader.text_to_instance("a slow , warm film")
    ((found,),) = [SignedSaliency(SentencePredictor(linear, reader)).of_tokens(instance, "1")]
    reader.apply_token_indexers(instance)
    batch = Batch([instance])
    batch.index_instances(linear.vocab)
    with torch.no_grad():
        # (num_tokens, bilm_dim)
        vectors = linear.encoder.text_field_embedder(batch.as_tensor_dict()["tokens"])[0]
        weight = next(parameter for name, parameter in linear.scorer.named_parameters() if parameter.dim() == 2)
        # (num_tokens,)
        parts = (vectors @ (weight[1] - weight[0]) / len(vectors)).numpy()
    ratios = numpy.array(found) / parts
    assert ratios == pytest.approx(numpy.full(5, ratios[0]), rel=1e-4)
    # The loss of label 1 is log(1 + exp(-score)); its slope lies between 0 and -1.
    assert 0 < ratios[0] < 1


def test_saliency_for_one_label_is_saliency_against_the_other(model):
    reader = MrReader()
    saliency = SignedSaliency(SentencePredictor(model("elmo_sentence_classifier"), reader))
    instance = reader.text_to_instance("a slow , warm film")
    ((for_one,), (for_other,)) = (saliency.of_tokens(instance, label) for label in ("0", "1"))
    assert (numpy.sign(for_one) == -numpy.sign(for_other)).all()


def test_saliency_sums_up_to_the_change_of_the_loss(model):
    """Integrated gradients are complete, up to the ten steps of the integral."""
    linear, reader = model("elmo_sentence_classifier"), MrReader()
    predictor = SentencePredictor(linear, reader)
    instance = reader.text_to_instance("a slow , warm film")
    ((found,),) = [SignedSaliency(predictor).of_tokens(instance, "1")]
    loss = -numpy.log(predictor.predict_instance(instance)["label_probabilities"]["1"])
    bias = next(parameter for name, parameter in linear.scorer.named_parameters() if parameter.dim() == 1)
    loss_without_words = -torch.log_softmax(bias.detach(), dim=0)[1].item()
    assert sum(found) == pytest.approx(loss_without_words - loss, rel=0.05)


def test_each_text_of_a_pair_gets_its_own(model):
    reader = MrpcReader()
    instance = reader.text_to_instance("Rain fell in the north .", "No rain .")
    first, second = SignedSaliency(PairPredictor(model("elmo_pair_classifier"), reader)).of_tokens(instance, "1")
    assert (len(first), len(second)) == (6, 3)


def test_the_label_of_the_instance_stays(model):
    reader = MrReader()
    instance = reader.text_to_instance("a warm film", label="0")
    SignedSaliency(SentencePredictor(model("elmo_sentence_classifier"), reader)).of_tokens(instance, "1")
    assert instance["label"].label == "0"


def test_of_a_pair_that_is_read_in_both_orders_both_count(model):
    reader = MrpcReader()
    saliency = SignedSaliency(PairPredictor(model("elmo_pair_classifier"), reader))
    # What the embedder was asked for, in turn: the first text of two tokens, the second of one, and again, swapped.
    asked = [[[1.0, 0.5], [2.0, 0.0]], [[4.0, 0.0]], [[8.0, 0.0]], [[16.0, 0.0], [32.0, 0.0]]]
    saliency._integrate_gradients = lambda _: {
        f"grad_input_{4 - place}": numpy.array([rows]) for place, rows in enumerate(asked)
    }
    found = saliency.of_tokens(reader.text_to_instance("no rain", "dry"), "1")
    assert found == [[-17.5, -34.0], [-12.0]]
