import logging
from math import exp, log, log1p

import pytest
import torch
from allennlp.common.checks import ConfigurationError
from allennlp.data import Vocabulary

from elmo_tasks.common.protocols import PreparesForTraining
from elmo_tasks.models.classification_metrics import MIN_ROWS_TO_JUDGE
from elmo_tasks.models.classifier import Classifier

LOGITS = torch.tensor([[2.0, 0.0], [0.0, 1.0], [3.0, 1.0]])
LABELS = torch.tensor([0, 0, 1])


def vocabulary(**counts):
    return Vocabulary({"labels": counts})


def classifier(**options):
    return Classifier(vocabulary(yes=2, no=1), **options)


class WithTokens(Classifier):
    tokens_keys = ("tokens",)


def test_loss_is_the_mean_cross_entropy_in_nats():
    loss = classifier().judge(LOGITS, LABELS, None)["loss"]
    losses = [log1p(exp(-2.0)), log1p(exp(1.0)), log1p(exp(2.0))]
    assert loss.item() == pytest.approx(sum(losses) / 3)


def test_class_weights_weigh_the_loss_by_label_name():
    loss = classifier(class_weights={"no": 3.0, "yes": 1.0}).judge(LOGITS, LABELS, None)["loss"]
    losses = [log1p(exp(-2.0)), log1p(exp(1.0)), 3 * log1p(exp(2.0))]
    assert loss.item() == pytest.approx(sum(losses) / (1 + 1 + 3))


@pytest.mark.parametrize("class_weights", [None, {"no": 3.0, "yes": 1.0}])
def test_loss_of_several_samples_is_the_mean_of_their_losses(class_weights):
    model = classifier(class_weights=class_weights)
    samples = torch.stack([LOGITS, -2 * LOGITS])
    output = model.judge(samples, LABELS, None)
    losses = [model.judge(sample, LABELS, None)["loss"].item() for sample in samples]
    assert losses[0] != pytest.approx(losses[1])
    assert output["loss"].item() == pytest.approx(sum(losses) / 2)
    torch.testing.assert_close(output["logits"], -LOGITS / 2)
    torch.testing.assert_close(output["label_probabilities"], (-LOGITS / 2).softmax(dim=-1))


def test_label_and_probabilities_come_by_name_in_every_order_of_the_vocabulary():
    for labels in ({"yes": 3, "no": 1}, {"yes": 1, "no": 3}):
        model = Classifier(vocabulary(**labels))
        yes = model.vocab.get_token_index("yes", "labels")
        logits = torch.zeros(1, 2)
        logits[0, yes] = log(3.0)
        readable = model.make_output_human_readable(model.judge(logits, None, None))
        assert readable["label"] == ["yes"]
        assert readable["label_probabilities"] == [{"yes": pytest.approx(0.75), "no": pytest.approx(0.25)}]


def test_readable_output_has_words_and_ids_from_the_metadata_and_no_big_tensor():
    model = WithTokens(vocabulary(yes=2, no=1))
    metadata = [{"id": str(row), "tokens": ["film", str(row)]} for row in range(3)]
    output = model.judge(LOGITS, LABELS, metadata)
    assert max(value.numel() for value in output.values() if isinstance(value, torch.Tensor)) == LOGITS.numel()
    readable = model.make_output_human_readable(output)
    assert list(readable) == ["id", "label", "label_probabilities", "gold_label", "tokens", "loss"]
    assert readable["id"] == ["0", "1", "2"]
    assert readable["label"] == ["yes", "no", "yes"]
    assert readable["gold_label"] == ["yes", "yes", "no"]
    assert readable["tokens"] == [["film", "0"], ["film", "1"], ["film", "2"]]
    assert [name for name, value in readable.items() if isinstance(value, torch.Tensor)] == ["loss"]


def test_output_without_labels_and_metadata_has_no_loss_and_no_words():
    model = WithTokens(vocabulary(yes=2, no=1))
    for metadata in (None, [{}, {}, {}]):
        readable = model.make_output_human_readable(model.judge(LOGITS, None, metadata))
        assert list(readable) == ["label", "label_probabilities"]
    assert model.get_metrics() == {"accuracy": 0.0}


def test_metrics_are_those_of_the_positive_label():
    model = classifier(positive_label="no")
    model.judge(LOGITS, LABELS, None)
    assert model.get_metrics() == {
        "accuracy": pytest.approx(1 / 3),
        "precision": 0.0,
        "recall": 0.0,
        "f1": 0.0,
        "positive_share": pytest.approx(1 / 3),
    }


def test_positive_label_may_be_written_as_a_number():
    model = Classifier(vocabulary(**{"1": 2, "0": 1}), positive_label=0)
    model.judge(torch.tensor([[0.0, 1.0]]), torch.tensor([1]), None)
    assert model.get_metrics()["f1"] == 1.0


def test_saturated_scores_count_like_all_others():
    # Scores that sum to zero are a trap of AllenNLP's F measure, which takes such rows for unlabelled.
    model = classifier(positive_label="yes")
    model.judge(torch.tensor([[1e4, -1e4], [0.5, -0.5]]), torch.tensor([0, 0]), None)
    assert model.get_metrics()["recall"] == 1.0


@pytest.mark.parametrize("option", [{"positive_label": "maybe"}, {"class_weights": {"yes": 1.0, "maybe": 2.0}}])
def test_unknown_label_names_are_errors_when_the_model_is_built(option):
    with pytest.raises(ConfigurationError, match="'yes', 'no'"):
        classifier(**option)


@pytest.mark.parametrize("labels", [{}, {"yes": 1}])
def test_fewer_than_two_labels_are_an_error(labels):
    with pytest.raises(ConfigurationError, match=r"at least two labels, but the vocabulary has \["):
        Classifier(vocabulary(**labels))


class Reporting(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.resets = []

    def get_metrics(self, reset=False):
        self.resets.append(reset)
        return {"mix_weight_0": 0.25}


def test_figures_of_the_modules_inside_are_among_the_metrics():
    model = classifier()
    model.embedder = torch.nn.Sequential(Reporting(), torch.nn.Linear(2, 2))
    assert model.get_metrics(reset=True) == {"accuracy": 0.0, "mix_weight_0": 0.25}
    assert model.embedder[0].resets == [True]


@pytest.mark.parametrize("training", [True, False])
def test_constant_predictions_warn_once_at_the_end_of_an_evaluation(training, caplog):
    model = classifier().train(training)
    logits = torch.tensor([[1.0, 0.0]]).expand(MIN_ROWS_TO_JUDGE, 2)
    labels = torch.arange(MIN_ROWS_TO_JUDGE) % 2
    with caplog.at_level(logging.WARNING):
        model.judge(logits, labels, None)
        model.get_metrics()
        model.get_metrics(reset=True)
        model.get_metrics(reset=True)
    assert len(caplog.records) == (0 if training else 1)


def test_an_evaluation_of_rows_without_labels_is_an_error():
    model = classifier().eval()
    model.get_metrics(reset=True)  # before any row
    model.judge(LOGITS, None, None)
    assert model.get_metrics() == {"accuracy": 0.0}
    with pytest.raises(ConfigurationError, match="none of 3 has one"):
        model.get_metrics(reset=True)


def test_rows_that_were_predicted_do_not_hinder_an_evaluation():
    model = classifier().eval()
    model.judge(LOGITS, None, None)
    model.judge(LOGITS, LABELS, None)
    assert model.get_metrics(reset=True) == {"accuracy": pytest.approx(1 / 3)}


def test_training_with_labels_that_the_model_was_not_made_with_is_an_error():
    model = classifier()
    assert isinstance(model, PreparesForTraining)
    model.prepare_for_training(lambda: iter([]), lambda: iter([]))
    model.vocab.extend_from_vocab(vocabulary(maybe=1))  # as `Model.from_archive` does
    with pytest.raises(ConfigurationError, match=r"made with, \['yes', 'no'\], but some have \['maybe'\]; "):
        model.prepare_for_training(lambda: iter([]), lambda: iter([]))
