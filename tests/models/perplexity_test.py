import math

import pytest

from elmo_tasks.models import perplexity
from elmo_tasks.models.perplexity import Perplexity


def test_perplexity_is_the_exponential_of_the_mean_per_prediction_and_their_mean():
    metric = Perplexity()
    # Two predictions with probability 1/4 each, and 1/10 each; then one with 1/4 and 1/10.
    metric.add(2 * math.log(4), 2 * math.log(10), num_predictions=2)
    metric.add(math.log(4), math.log(10), num_predictions=1)
    assert metric.get() == pytest.approx({"forward_perplexity": 4, "backward_perplexity": 10, "perplexity": 7})


def test_reset_starts_anew():
    metric = Perplexity()
    metric.add(math.log(4), math.log(4), num_predictions=1)
    metric.get(reset=True)
    metric.add(math.log(2), math.log(2), num_predictions=1)
    assert metric.get()["perplexity"] == pytest.approx(2)


def test_a_hopeless_model_has_a_finite_perplexity():
    metric = Perplexity()
    metric.add(1e9, 1e9, num_predictions=1)
    assert math.isfinite(metric.get()["perplexity"])


def test_speed_counts_from_the_first_batch_to_the_question(monkeypatch):
    now = [100.0]
    monkeypatch.setattr(perplexity.time, "perf_counter", lambda: now[0])
    metric = Perplexity()
    metric.start_clock()
    now[0] = 101.0
    metric.start_clock()
    metric.add(1.0, 1.0, num_predictions=500)
    now[0] = 102.0
    metric.add(1.0, 1.0, num_predictions=500)
    assert metric.get()["tokens_per_second"] == 500


def test_without_a_clock_there_is_no_speed():
    metric = Perplexity()
    metric.add(1.0, 1.0, num_predictions=500)
    assert "tokens_per_second" not in metric.get()
