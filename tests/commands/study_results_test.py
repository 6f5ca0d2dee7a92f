import json
import logging
import math

import pytest
from allennlp.common.checks import ConfigurationError

from elmo_tasks.commands.study import Study
from elmo_tasks.commands.study_results import (
    check_comparable,
    compare,
    read_results,
    spread,
    study_results,
    write_results,
)

# Of printed tables of Student's t: 97.5 % quantiles.
T_2, T_9 = 4.303, 2.262


def finished_study(directory, accuracies, num_folds, reader=None, others=None, test_path="rows"):
    """A study whose runs have these test accuracies, a list for each fold (or one list) with one for each seed."""
    config = {
        "dataset_reader": {"type": "mr", **(reader or {})},
        "test_data_path": test_path,
        "trainer": {"validation_metric": "+accuracy"},
    }
    study = Study(directory, config, num_folds, len(accuracies[0]))
    for fold, of_fold in zip(study.folds, accuracies):
        for seed, accuracy in zip(study.seeds, of_fold):
            run = study.run(fold, seed)
            run.directory.mkdir(parents=True)
            metrics = {"best_epoch": 1, "validation_accuracy": 0.1, "best_validation_accuracy": 0.25}
            metrics.update({"test_accuracy": accuracy, "test_device": "cpu", **(others or {}).get((fold, seed), {})})
            (run.directory / "metrics.json").write_text(json.dumps(metrics))
    return study


def test_spread_of_three_numbers_by_hand():
    # Mean 4; squared distances 4, 0, 4; their sum over n - 1 is 4, its root 2; the interval is 4 +- t * 2 / sqrt(3).
    computed = spread([2.0, 4.0, 6.0])
    assert computed["mean"] == pytest.approx(4.0)
    assert computed["standard_deviation"] == pytest.approx(2.0)
    half_width = T_2 * 2 / math.sqrt(3)
    assert computed["interval_95"] == pytest.approx([4 - half_width, 4 + half_width], abs=1e-3)


def test_spread_of_ten_numbers_by_hand():
    # Five times 70 and five times 80: every distance to the mean is 5, the sum of squares 250.
    computed = spread([70.0, 80.0] * 5)
    deviation = math.sqrt(250 / 9)
    assert computed["standard_deviation"] == pytest.approx(deviation)
    half_width = T_9 * deviation / math.sqrt(10)
    assert computed["interval_95"] == pytest.approx([75 - half_width, 75 + half_width], abs=1e-2)


def test_one_number_has_no_spread():
    assert spread([0.8]) == {"mean": 0.8, "standard_deviation": None, "interval_95": None}


def test_the_spread_is_that_of_the_means_of_folds(tmp_path):
    results = study_results(finished_study(tmp_path, [[0.1, 0.3], [0.3, 0.5], [0.6, 0.6]], num_folds=3))
    accuracy = results["metrics"]["test_accuracy"]
    # Means of folds 0.2, 0.4, 0.6.
    assert accuracy["by_fold"] == pytest.approx([0.2, 0.4, 0.6])
    assert accuracy["by_seed"] == pytest.approx([1.0 / 3, 1.4 / 3])
    assert accuracy["values"] == [[0.1, 0.3], [0.3, 0.5], [0.6, 0.6]]
    assert accuracy["mean"] == pytest.approx(0.4)
    assert accuracy["standard_deviation"] == pytest.approx(0.2)
    half_width = T_2 * 0.2 / math.sqrt(3)
    assert accuracy["interval_95"] == pytest.approx([0.4 - half_width, 0.4 + half_width], abs=1e-4)
    assert (results["spread_over"], results["main_metric"]) == ("folds", "test_accuracy")


def test_without_folds_the_spread_is_that_of_seeds(tmp_path):
    results = study_results(finished_study(tmp_path, [[0.2, 0.4, 0.6]], num_folds=0))
    accuracy = results["metrics"]["test_accuracy"]
    assert accuracy["by_seed"] == [0.2, 0.4, 0.6]
    assert accuracy["standard_deviation"] == pytest.approx(0.2)
    assert "by_fold" not in accuracy
    assert (results["num_folds"], results["spread_over"]) == (0, "seeds")


def test_figures_are_those_of_the_test_and_of_the_selected_epoch(tmp_path):
    study = finished_study(tmp_path, [[0.2], [0.4]], num_folds=2, others={(1, 0): {"test_of_this_fold_only": 1.0}})
    results = study_results(study)
    assert list(results["metrics"]) == ["best_validation_accuracy", "test_accuracy"]
    assert results["runs"][1] == {
        "fold": 1,
        "seed": 0,
        "directory": "fold_1/seed_0",
        "metrics": study.run(1, 0).metrics(),
    }
    assert results["runs"][1]["metrics"]["test_of_this_fold_only"] == 1.0


def test_what_is_written_is_what_is_read(tmp_path):
    results = study_results(finished_study(tmp_path, [[0.2], [0.4]], num_folds=2))
    assert write_results(results, tmp_path) == tmp_path / "cross_validation.json"
    assert read_results(tmp_path) == results


def test_results_of_an_unfinished_study_are_missed(tmp_path):
    with pytest.raises(ConfigurationError, match=r"has no cross_validation\.json"):
        read_results(tmp_path)


def test_a_difference_is_paired_over_folds(tmp_path):
    """Both spread widely, but one is better on every fold by nearly the same."""
    results = study_results(finished_study(tmp_path / "a", [[0.53], [0.72], [0.91]], num_folds=3))
    other = study_results(finished_study(tmp_path / "b", [[0.4, 0.6], [0.7, 0.7], [0.9, 0.9]], num_folds=3))
    accuracy = compare(results, other)["test_accuracy"]
    # 0.03, 0.02, 0.01: mean 0.02, deviation 0.01
    assert accuracy["differences"] == pytest.approx([0.03, 0.02, 0.01])
    assert accuracy["mean"] == pytest.approx(0.02)
    assert accuracy["standard_deviation"] == pytest.approx(0.01)
    half_width = T_2 * 0.01 / math.sqrt(3)
    assert accuracy["interval_95"] == pytest.approx([0.02 - half_width, 0.02 + half_width], abs=1e-5)


def test_without_folds_a_difference_is_paired_over_seeds(tmp_path):
    results = study_results(finished_study(tmp_path / "a", [[0.5, 0.7]], num_folds=0))
    other = study_results(finished_study(tmp_path / "b", [[0.4, 0.5]], num_folds=0))
    assert compare(results, other)["test_accuracy"]["differences"] == pytest.approx([0.1, 0.2])


def test_only_metrics_of_both_are_compared(tmp_path):
    f1 = {(fold, 0): {"test_f1": 0.5} for fold in (0, 1)}
    results = study_results(finished_study(tmp_path / "a", [[0.5], [0.7]], num_folds=2, others=f1))
    other = study_results(finished_study(tmp_path / "b", [[0.4], [0.5]], num_folds=2))
    assert set(compare(results, other)) == {"test_accuracy", "best_validation_accuracy"}


@pytest.mark.parametrize(
    ("mine", "message"),
    [
        ({"accuracies": [[0.5]] * 3, "num_folds": 3}, r"number of folds \(0: none\), but have 3 and 2"),
        ({"accuracies": [[0.5]] * 2, "num_folds": 2, "reader": {"split_seed": 1}}, "`split_seed`, but have 1 and 0"),
    ],
)
def test_other_folds_are_not_compared(tmp_path, mine, message):
    other = study_results(finished_study(tmp_path / "b", [[0.4], [0.5]], num_folds=2))
    with pytest.raises(ConfigurationError, match=message):
        check_comparable(finished_study(tmp_path / "a", **mine), other)


def test_seeds_must_be_the_same_where_they_are_paired(tmp_path):
    one, two = [[0.5]], [[0.5, 0.6]]
    other = study_results(finished_study(tmp_path / "b", two, num_folds=0))
    with pytest.raises(ConfigurationError, match=r"same seeds, but have \[0\] and \[0, 1\]"):
        check_comparable(finished_study(tmp_path / "a", one, num_folds=0), other)
    other = study_results(finished_study(tmp_path / "d", two * 2, num_folds=2, reader={"split_seed": 0}))
    check_comparable(finished_study(tmp_path / "c", one * 2, num_folds=2), other)


def test_other_data_is_pointed_out(tmp_path, caplog):
    other = study_results(finished_study(tmp_path / "b", [[0.4], [0.5]], num_folds=2, test_path="old#test"))
    with caplog.at_level(logging.WARNING):
        check_comparable(finished_study(tmp_path / "a", [[0.4], [0.5]], num_folds=2, test_path="new#test"), other)
    assert "test on new#test and old#test: do both hold the same rows?" in caplog.text
