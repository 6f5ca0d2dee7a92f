import logging

import pytest
import torch
from allennlp.common.checks import ConfigurationError
from allennlp.common.testing import run_distributed_test
from allennlp.training.metrics import CategoricalAccuracy, FBetaMeasure

from elmo_tasks.models.classification_metrics import MIN_ROWS_TO_JUDGE, ClassificationMetrics


def scores(predicted, num_labels=2):
    return torch.nn.functional.one_hot(torch.tensor(predicted), num_labels).float()


def test_figures_of_the_positive_label_equal_a_hand_count():
    # Index 0 is "1", as on MRPC, where it is the more frequent label.
    metrics = ClassificationMetrics(["1", "0"], "1")
    metrics(scores([0, 0, 0, 1]), torch.tensor([0, 0, 1, 0]))
    metrics(scores([1]), torch.tensor([1]))
    assert metrics.get_metric() == {
        "accuracy": 3 / 5,
        "precision": 2 / 3,
        "recall": 2 / 3,
        "f1": 2 / 3,
        "positive_share": 3 / 5,
    }


def test_figures_equal_those_of_allennlp():
    generator = torch.Generator().manual_seed(3)
    names = ["calm", "merry", "sad"]
    for positive, name in enumerate(names):
        ours = ClassificationMetrics(names, name)
        accuracy, fbeta = CategoricalAccuracy(), FBetaMeasure()
        for batch_size in (1, 5, 32):
            probabilities = torch.rand(batch_size, 3, generator=generator)
            labels = torch.randint(3, (batch_size,), generator=generator)
            for metric in (ours, accuracy, fbeta):
                metric(probabilities, labels)
        found, expected = ours.get_metric(), fbeta.get_metric()
        assert found["accuracy"] == pytest.approx(accuracy.get_metric())
        assert found["precision"] == pytest.approx(expected["precision"][positive])
        assert found["recall"] == pytest.approx(expected["recall"][positive])
        assert found["f1"] == pytest.approx(expected["fscore"][positive])


def test_masked_rows_do_not_count():
    metrics = ClassificationMetrics(["no", "yes"])
    metrics(scores([0, 1]), torch.tensor([0, 0]), torch.tensor([True, False]))
    assert metrics.get_metric() == {"accuracy": 1.0}


def test_names_and_floats_are_there_before_any_row_and_after_reset():
    metrics = ClassificationMetrics(["no", "yes"], "yes")
    zeros = {"accuracy": 0.0, "precision": 0.0, "recall": 0.0, "f1": 0.0, "positive_share": 0.0}
    assert metrics.get_metric() == zeros
    metrics(scores([1]), torch.tensor([1]))
    counted = metrics.get_metric(reset=True)
    assert counted == dict.fromkeys(zeros, 1.0)
    assert {type(value) for value in counted.values()} == {float}
    assert metrics.get_metric() == zeros


def test_predicting_no_positive_gives_f1_zero():
    metrics = ClassificationMetrics(["no", "yes"], "yes")
    metrics(scores([0, 0]), torch.tensor([0, 1]))
    assert metrics.get_metric() == {
        "accuracy": 0.5,
        "precision": 0.0,
        "recall": 0.0,
        "f1": 0.0,
        "positive_share": 0.0,
    }


def test_unknown_positive_label_is_an_error_that_lists_the_labels():
    with pytest.raises(ConfigurationError, match="one of the labels 'no', 'yes', but is 'maybe'"):
        ClassificationMetrics(["no", "yes"], "maybe")


@pytest.mark.parametrize(
    ("predicted", "true", "warns"),
    [
        ([1] * MIN_ROWS_TO_JUDGE, [1, 0] * (MIN_ROWS_TO_JUDGE // 2), True),
        ([1] * (MIN_ROWS_TO_JUDGE - 1) + [0], [1, 0] * (MIN_ROWS_TO_JUDGE // 2), False),
        ([1] * MIN_ROWS_TO_JUDGE, [1] * MIN_ROWS_TO_JUDGE, False),
        ([1] * (MIN_ROWS_TO_JUDGE - 1), [0] * (MIN_ROWS_TO_JUDGE - 1), False),
    ],
    ids=["constant", "one differs", "all are right", "too few rows"],
)
def test_constant_predictions_over_an_evaluation_warn(predicted, true, warns, caplog):
    metrics = ClassificationMetrics(["no", "yes"], "yes")
    metrics(scores(predicted), torch.tensor(true))
    with caplog.at_level(logging.WARNING):
        metrics.warn_if_constant()
    assert ("predicts label 'yes' for each" in caplog.text) == warns


def test_figures_of_rows_without_any_label_are_an_error():
    metrics = ClassificationMetrics(["no", "yes"])
    metrics.check_labels()  # before any row
    metrics.count_unlabelled(3)
    with pytest.raises(ConfigurationError, match="must have labels where a model is evaluated, but none of 3 has one"):
        metrics.check_labels()
    metrics(scores([1]), torch.tensor([0]))
    metrics.check_labels()
    metrics.count_unlabelled(3)
    metrics.reset()
    metrics.check_labels()


def count_one_share(global_rank, world_size, gpu_id):
    metrics = ClassificationMetrics(["no", "yes"], "yes")
    # Rank 0 is right in 1 of 1, rank 1 in 1 of 3: the mean of the ranks would be 2/3.
    predicted, true = [([1], [1]), ([1, 1, 0], [0, 0, 0])][global_rank]
    metrics(scores(predicted), torch.tensor(true))
    assert metrics.get_metric() == {
        "accuracy": 2 / 4,
        "precision": 1 / 3,
        "recall": 1.0,
        "f1": 2 / 4,
        "positive_share": 3 / 4,
    }


@pytest.mark.slow
def test_rows_are_counted_over_all_processes():
    run_distributed_test([-1, -1], func=count_one_share)
