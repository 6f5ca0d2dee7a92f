import pytest
import torch
from allennlp.common.checks import ConfigurationError
from allennlp.common.testing import run_distributed_test
from allennlp.data import Instance
from allennlp.data.fields import LabelField

from elmo_tasks.common.protocols import PreparesForTraining
from elmo_tasks.models.class_weights import ClassWeights


def rows(*labels):
    return lambda: iter([Instance({"label": LabelField(label)}) for label in labels])


def no_rows():
    raise AssertionError("only the training part is to be counted")


def test_weights_by_name_stand_in_the_order_of_the_labels():
    weights = ClassWeights(["1", "0"], {"0": 3, "1": 0.5})
    assert weights().tolist() == [0.5, 3.0]


@pytest.mark.parametrize("given", [{"yes": 1.0}, {"yes": 1.0, "no": 1.0, "maybe": 1.0}, {"yes": 1.0, "nope": 1.0}])
def test_missing_and_unknown_names_are_errors_that_list_the_labels(given):
    with pytest.raises(ConfigurationError, match=r"exactly the labels \['no', 'yes'\]"):
        ClassWeights(["no", "yes"], given)


@pytest.mark.parametrize("weight", [0, -1.0, float("nan"), float("inf")])
def test_weight_that_is_no_positive_number_is_an_error(weight):
    with pytest.raises(ConfigurationError, match=r"positive numbers.*label 'yes'"):
        ClassWeights(["no", "yes"], {"no": 1.0, "yes": weight})


def test_misspelt_balanced_is_an_error():
    with pytest.raises(ConfigurationError, match=r"'balanced' or .*'balenced'"):
        ClassWeights(["no", "yes"], "balenced")


def test_balanced_weights_come_from_the_counts_of_the_training_part():
    weights = ClassWeights(["yes", "no"], "balanced")
    assert isinstance(weights, PreparesForTraining)
    weights.prepare_for_training(rows("yes", "yes", "no", "yes"), no_rows)
    # 4 rows, 2 labels: 4 / (2 * 3) and 4 / (2 * 1)
    assert weights().tolist() == pytest.approx([2 / 3, 2.0])


def test_given_weights_are_not_counted():
    weights = ClassWeights(["yes", "no"], {"yes": 1.0, "no": 2.0})
    weights.prepare_for_training(no_rows, no_rows)
    assert weights().tolist() == [1.0, 2.0]


def test_balanced_weights_travel_with_the_weights_of_the_model():
    counted = ClassWeights(["yes", "no"], "balanced")
    counted.prepare_for_training(rows("yes", "yes", "yes", "no"), no_rows)
    loaded = ClassWeights(["yes", "no"], "balanced")
    loaded.load_state_dict(counted.state_dict())
    assert torch.equal(loaded(), counted())


def test_balanced_weights_that_nobody_counted_are_an_error():
    with pytest.raises(ConfigurationError, match="needs the labels to be counted before the first loss"):
        ClassWeights(["yes", "no"], "balanced")()


def test_label_without_training_rows_cannot_be_balanced():
    with pytest.raises(ConfigurationError, match=r"has none of \['no'\]"):
        ClassWeights(["yes", "no"], "balanced").prepare_for_training(rows("yes", "yes"), no_rows)


def test_training_row_without_label_cannot_be_balanced():
    with pytest.raises(ConfigurationError, match="needs a label in every training row"):
        ClassWeights(["yes", "no"], "balanced").prepare_for_training(lambda: iter([Instance({})]), no_rows)


def count_one_share(global_rank, world_size, gpu_id):
    weights = ClassWeights(["yes", "no"], "balanced")
    # One process sees no row of "no" at all.
    share = [rows("yes", "yes", "yes"), rows("no")][global_rank]
    weights.prepare_for_training(share, no_rows)
    assert weights().tolist() == pytest.approx([2 / 3, 2.0])


@pytest.mark.slow
def test_rows_are_counted_over_all_processes():
    run_distributed_test([-1, -1], func=count_one_share)
