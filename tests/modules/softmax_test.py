import logging
import math

import numpy as np
import pytest
import torch
from allennlp.common.checks import ConfigurationError
from allennlp.modules.sampled_softmax_loss import SampledSoftmaxLoss, _choice

from elmo_tasks.modules import softmax as softmax_module
from elmo_tasks.modules.softmax import AdaptiveSoftmax, FullSoftmax, SampledSoftmax, draw_log_uniform


@pytest.fixture(autouse=True)
def _seed():
    torch.manual_seed(3)
    np.random.seed(3)


@pytest.fixture
def predictions():
    return torch.randn(40, 8, requires_grad=True), torch.randint(0, 300, (40,))


def with_same_parameters(ours, stock):
    with torch.no_grad():
        ours.bias.normal_()
        stock.softmax_w.copy_(ours.weight)
        stock.softmax_b.copy_(ours.bias)


def test_sampled_loss_and_its_gradient_are_those_of_allennlp(monkeypatch, predictions):
    vectors, targets = predictions
    ours, stock = SampledSoftmax(300, 8, num_samples=50), SampledSoftmaxLoss(300, 8, num_samples=50)
    with_same_parameters(ours, stock)
    draw = draw_log_uniform(300, 50)
    assert set(draw[0].tolist()) & set(targets.tolist())  # some targets are among the samples
    monkeypatch.setattr(softmax_module, "draw_log_uniform", lambda *_: draw)
    stock.choice_func = lambda *_: (draw[0].numpy(), draw[1])

    loss, expected = ours(vectors, targets).sum(), stock(vectors, targets)
    assert loss.item() == pytest.approx(expected.item(), rel=1e-5)
    gradients = torch.autograd.grad(loss, [vectors, ours.weight, ours.bias])
    expected_gradients = torch.autograd.grad(expected, [vectors, stock.softmax_w, stock.softmax_b])
    for gradient, expected_gradient in zip(gradients, expected_gradients):
        torch.testing.assert_close(gradient, expected_gradient, rtol=1e-4, atol=1e-5)


def test_each_prediction_weighs_in_the_gradient_as_asked(predictions):
    """The table of logits is not scaled: the gradients take the weights of predictions in otherwise."""
    vectors, targets = predictions
    softmax = SampledSoftmax(300, 8, num_samples=50)
    weights = torch.rand(40)
    torch.manual_seed(5)
    (gradient,) = torch.autograd.grad((softmax(vectors, targets) * weights).sum(), [softmax.weight])
    parts = []
    for weight, vector, target in zip(weights, vectors, targets):
        torch.manual_seed(5)
        loss = softmax(vector.unsqueeze(0), target.unsqueeze(0)).sum() * weight
        parts.append(torch.autograd.grad(loss, [softmax.weight])[0])
    torch.testing.assert_close(gradient, sum(parts), rtol=1e-4, atol=1e-6)


def test_evaluation_of_the_sampled_softmax_is_exact(predictions):
    vectors, targets = predictions
    sampled, full = SampledSoftmax(300, 8, num_samples=50), FullSoftmax(300, 8)
    full.load_state_dict(sampled.state_dict())
    assert torch.equal(sampled.eval()(vectors, targets), full.eval()(vectors, targets))
    assert not torch.equal(sampled.train()(vectors, targets), full.train()(vectors, targets))


def test_a_vocabulary_of_500_words_is_trained_with_the_full_softmax_and_logged(caplog):
    with caplog.at_level(logging.INFO):
        small = SampledSoftmax(500, 8)
    assert "500 words is small beside 8192 samples: training uses the full softmax" in caplog.text
    full = FullSoftmax(500, 8)
    full.load_state_dict(small.state_dict())
    vectors, targets = torch.randn(5, 8), torch.randint(0, 500, (5,))
    assert torch.equal(small.train()(vectors, targets), full(vectors, targets))


@pytest.mark.parametrize("softmax", [FullSoftmax(300, 8), AdaptiveSoftmax(300, 8), AdaptiveSoftmax(300, 8, [7, 9])])
def test_losses_agree_with_the_probabilities_and_these_sum_to_one(softmax, predictions):
    vectors, targets = predictions
    log_probabilities = softmax.log_probabilities(vectors)
    torch.testing.assert_close(log_probabilities.exp().sum(dim=1), torch.ones(40))
    expected = -log_probabilities[torch.arange(40), targets]
    torch.testing.assert_close(softmax.train()(vectors, targets), expected)
    torch.testing.assert_close(softmax.eval()(vectors, targets), expected)


def test_large_tables_of_logits_are_scored_in_parts(monkeypatch, predictions):
    vectors, targets = predictions
    softmax = FullSoftmax(300, 8).eval()
    whole = softmax(vectors, targets)
    monkeypatch.setattr(softmax_module, "MAX_LOGITS", 300 * 7)
    torch.testing.assert_close(softmax(vectors, targets), whole)


def test_samples_are_drawn_as_allennlp_draws_them():
    draws = [draw_log_uniform(200, 30) for _ in range(2000)]
    stock_draws = [_choice(200, 30) for _ in range(2000)]
    assert all(len(set(ids.tolist())) == 30 and ids.min() >= 0 and ids.max() < 200 for ids, _ in draws)
    share, stock_share = (
        np.bincount(np.concatenate([np.asarray(ids) for ids, _ in some]), minlength=200) / 2000
        for some in (draws, stock_draws)
    )
    # A share has a standard deviation of at most 0.011.
    assert np.abs(share - stock_share).max() < 0.07
    assert np.mean([n for _, n in draws]) == pytest.approx(np.mean([n for _, n in stock_draws]), rel=0.03)


def test_all_words_can_be_drawn():
    ids, num_tries = draw_log_uniform(20, 20)
    assert sorted(ids.tolist()) == list(range(20))
    assert num_tries >= 20


@pytest.mark.parametrize("cutoffs", [[], [0, 5], [5, 5], [9, 5], [300]])
def test_impossible_cutoffs_are_errors(cutoffs):
    with pytest.raises(ConfigurationError, match="`cutoffs` must rise between 0 and the 300 words"):
        AdaptiveSoftmax(300, 8, cutoffs)


def test_sampling_nothing_is_an_error():
    with pytest.raises(ConfigurationError, match="`num_samples` must be at least 1, but is 0"):
        SampledSoftmax(300, 8, num_samples=0)


def test_untrained_loss_is_that_of_chance():
    softmax = FullSoftmax(300, 8)
    torch.nn.init.zeros_(softmax.weight)
    assert softmax(torch.randn(2, 8), torch.tensor([0, 299])).tolist() == pytest.approx([math.log(300)] * 2)
