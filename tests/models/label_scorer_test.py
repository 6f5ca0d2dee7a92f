import pytest
import torch
from allennlp.common.checks import ConfigurationError
from allennlp.modules import FeedForward

from elmo_tasks.models.label_scorer import LabelScorer


def test_scores_are_a_linear_map_of_the_features():
    scorer = LabelScorer(2, 3)
    scorer.linear.weight.data = torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    scorer.linear.bias.data = torch.tensor([0.0, 0.0, 0.5])
    assert scorer(torch.tensor([[2.0, 3.0]])).tolist() == [[2.0, 3.0, 5.5]]


def test_feedforward_comes_first():
    feedforward = FeedForward(2, 1, 1, torch.nn.ReLU())
    scorer = LabelScorer(2, 2, feedforward)
    features = torch.randn(4, 2)
    assert torch.equal(scorer(features), scorer.linear(feedforward(features)))


def test_dropout_acts_in_training_only():
    scorer = LabelScorer(64, 2, dropout=0.5)
    features = torch.randn(1, 64)
    assert not torch.equal(scorer(features), scorer(features))
    scorer.eval()
    assert torch.equal(scorer(features), scorer.linear(features))


def test_samples_of_a_row_differ_in_what_is_dropped_in_training_only():
    scorer = LabelScorer(64, 2, dropout=0.5, num_dropout_samples=3)
    features = torch.randn(4, 64)
    torch.manual_seed(1)
    samples = scorer(features)
    torch.manual_seed(1)
    dropped = torch.nn.functional.dropout(features.repeat(3, 1, 1), 0.5)
    torch.testing.assert_close(samples, scorer.linear(dropped))
    assert not torch.equal(samples[0], samples[1])
    scorer.eval()
    assert torch.equal(scorer(features), scorer.linear(features))


def test_several_samples_without_dropout_are_an_error():
    with pytest.raises(ConfigurationError, match="`dropout` must be above 0 with `num_dropout_samples` 2"):
        LabelScorer(2, 2, num_dropout_samples=2)
    with pytest.raises(ConfigurationError, match="`num_dropout_samples` must be at least 1, but is 0"):
        LabelScorer(2, 2, dropout=0.5, num_dropout_samples=0)


def test_scores_are_float32_under_autocast():
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert LabelScorer(2, 2)(torch.randn(1, 2)).dtype == torch.float32


def test_sizes_that_do_not_match_are_an_error():
    with pytest.raises(ConfigurationError, match="input of feedforward"):
        LabelScorer(3, 2, FeedForward(2, 1, 1, torch.nn.ReLU()))
