import json

import pytest

from elmo_tasks.commands.comparison import comparison_of, summary, write_comparison


def results(values, durations=(), test_path="data/mr/rt_val.txt", **metrics):
    """Of a study without folds, whose seeds have these test accuracies; other metrics likewise."""
    metrics = {"test_accuracy": values, **metrics}
    return {
        "num_folds": 0,
        "seeds": list(range(len(values))),
        "main_metric": "test_accuracy",
        "spread_over": "seeds",
        "metrics": {name: {"mean": sum(of) / len(of), "by_seed": of} for name, of in metrics.items()},
        "runs": [{"metrics": {"training_duration": duration}} for duration in durations] or [{"metrics": {}}],
        "config": {"test_data_path": test_path},
    }


@pytest.mark.parametrize(
    ("durations", "seconds"),
    [
        (["0:01:09.500000"], 69.5),
        (["0:00:10", "0:00:50", "0:00:11"], 11),
        (["1 day, 2:03:04", "0:00:02"], (26 * 3600 + 3 * 60 + 4 + 2) / 2),
        (["-1 day, 0:00:01"], None),
        ([], None),
    ],
)
def test_the_time_of_a_run_is_the_median_over_all(durations, seconds):
    assert summary(results([0.5], durations))["training_seconds"] == seconds


@pytest.mark.parametrize(
    ("path", "name"),
    [("/home/me/data/mr/rt_val.txt", "mr/rt_val.txt"), ("mr#test", "mr#test"), (["a/b/c", "d/e/f"], "b/c, e/f")],
)
def test_data_is_named_by_the_end_of_its_path(path, name):
    assert summary(results([0.5], test_path=path))["data"] == name


def test_each_variant_is_compared_to_the_baseline_seed_by_seed():
    of = {"base": results([0.5, 0.6], test_f1=[0.1, 0.2]), "a": results([0.53, 0.61], test_f1=[0.1, 0.3])}
    comparison = comparison_of(of, ["a", "b", "base"], "base")
    assert (comparison["baseline"], comparison["unfinished"]) == ("base", ["b"])
    assert list(comparison["variants"]) == ["a", "base"]
    assert comparison["variants"]["base"]["differences"] is None
    differences = comparison["variants"]["a"]["differences"]
    assert differences["test_accuracy"]["differences"] == pytest.approx([0.03, 0.01])
    assert differences["test_accuracy"]["mean"] == pytest.approx(0.02)
    assert differences["test_f1"]["mean"] == pytest.approx(0.05)


def test_what_is_written_can_be_read(tmp_path):
    comparison = comparison_of({"base": results([0.5])}, ["base"], "base")
    write_comparison(comparison, tmp_path)
    assert json.loads((tmp_path / "comparison.json").read_text()) == comparison
