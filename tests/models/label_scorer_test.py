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


def test_scores_are_float32_under_autocast():
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert LabelScorer(2, 2)(torch.randn(1, 2)).dtype == torch.float32


def test_sizes_that_do_not_match_are_an_error():
    with pytest.raises(ConfigurationError, match="input of feedforward"):
        LabelScorer(3, 2, FeedForward(2, 1, 1, torch.nn.ReLU()))
