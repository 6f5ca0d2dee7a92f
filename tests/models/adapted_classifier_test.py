import pytest
import torch
from allennlp.common.checks import ConfigurationError
from allennlp.models import Model
from allennlp.nn.util import get_text_field_mask

from elmo_tasks.models.adapted_classifier import AdaptedPairClassifier, AdaptedSentenceClassifier

LABELS = {"yes": 2, "no": 1}


class Network(Model):
    """Counts what it is given: scores that one can tell from the texts; and an accuracy of labels that never come."""

    def __init__(self, vocab, key="logits"):
        super().__init__(vocab)
        self.factor = torch.nn.Parameter(torch.ones(1))
        self.key = key

    def forward(self, **texts):
        # (batch_size, 2)
        counts = torch.stack([get_text_field_mask(text).sum(dim=1) for text in texts.values()], dim=1).float()
        self.seen = list(texts)
        return {self.key: self.factor * counts}

    def get_metrics(self, reset=False):
        return {"accuracy": -1.0, "of_the_network": 0.0}


def sentence_model(toy, **options):
    vocab = toy.vocabulary(LABELS)
    return AdaptedSentenceClassifier(vocab, Network(vocab), **options)


def pair_model(toy, key="logits", **options):
    vocab = toy.vocabulary(LABELS)
    return AdaptedPairClassifier(vocab, Network(vocab, key), **options)


def test_sentence_goes_to_the_network_as_tokens(toy):
    model = sentence_model(toy)
    assert toy.logits(model, [toy.sentence("a dull film"), toy.sentence("no end")]).tolist() == [[3.0], [2.0]]
    assert model.network.seen == ["tokens"]


@pytest.mark.parametrize("key", ["logits", "label_logits"])
def test_pair_goes_to_the_network_as_premise_and_hypothesis(toy, key):
    model = pair_model(toy, key)
    assert toy.logits(model, [toy.pair("a dull film", "no end")]).tolist() == [[3.0, 2.0]]
    assert model.network.seen == ["premise", "hypothesis"]


def test_symmetric_pair_has_the_same_scores_in_both_orders(toy):
    model = pair_model(toy, symmetric=True)
    there, back = toy.pair("a dull film", "no end"), toy.pair("no end", "a dull film")
    assert toy.logits(model, [there, back]).tolist() == [[2.5, 2.5], [2.5, 2.5]]


def test_loss_metrics_and_output_are_ours(toy):
    model = pair_model(toy, positive_label="no", class_weights={"yes": 1.0, "no": 3.0})
    rows = [toy.pair("a dull film", "no end", "yes"), toy.pair("a slow film", "no", "no")]
    output = model.forward_on_instances(rows)
    yes, no = (model.vocab.get_token_index(name, "labels") for name in ("yes", "no"))
    logits = torch.tensor([[3.0, 2.0], [3.0, 1.0]])
    assert [row["label"] for row in output] == [model.label_names[0]] * 2
    assert output[0]["sentence2_tokens"] == ["no", "end"]
    metrics = model.get_metrics()
    assert metrics["accuracy"] == 0.5
    assert {"precision", "recall", "f1"} < set(metrics)
    assert "of_the_network" not in metrics
    losses = torch.nn.functional.cross_entropy(logits, torch.tensor([yes, no]), reduction="none")
    loss = model(**toy.tensors(model, rows))["loss"]
    assert loss.item() == pytest.approx((losses[0] + 3 * losses[1]).item() / 4)


def test_network_without_scores_is_an_error(toy):
    with pytest.raises(ConfigurationError, match=r"must give its scores as 'logits' or 'label_logits', but Network"):
        toy.logits(pair_model(toy, key="spans"), [toy.pair("a dull film", "no end")])
