import io
import re

import pytest
from rich.console import Console

from elmo_tasks.commands.study_tables import print_results


@pytest.fixture
def printed():
    def print_to_text(results, width=100):
        output = io.StringIO()
        print_results(results, Console(file=output, width=width))
        # The words of each line, without the lines of the table.
        lines = [re.sub(r"[^\x00-\x7f]", " ", line).split() for line in output.getvalue().splitlines()]
        return [line for line in lines if line]

    return print_to_text


def results_of_folds(**more):
    accuracy = {
        "mean": 0.4,
        "standard_deviation": 0.14142,
        "interval_95": [-0.8706, 1.6706],
        "by_fold": [0.3, 0.5],
        "by_seed": [0.35, 0.45],
        "values": [[0.25, 0.35], [0.45, 0.55]],
    }
    return {
        "num_folds": 2,
        "seeds": [0, 1],
        "main_metric": "test_accuracy",
        "spread_over": "folds",
        "metrics": {"test_accuracy": accuracy},
        **more,
    }


def test_every_run_and_every_mean_is_in_the_table_of_runs(printed):
    lines = printed(results_of_folds())
    assert ["seed", "0", "seed", "1", "mean"] in lines
    assert ["fold", "0", "0.2500", "0.3500", "0.3000"] in lines
    assert ["fold", "1", "0.4500", "0.5500", "0.5000"] in lines
    assert ["mean", "0.3500", "0.4500", "0.4000"] in lines


def test_the_summary_says_over_what_it_is(printed):
    lines = printed(results_of_folds())
    assert ["over", "2", "folds,", "each", "the", "mean", "of", "2", "seeds"] in lines
    assert ["test_accuracy", "0.4000", "0.1414", "-0.8706", "to", "1.6706"] in lines


def test_the_table_has_the_test_figures_and_what_selected_the_epoch(printed):
    accuracy = results_of_folds()["metrics"]["test_accuracy"]
    names = ["test_accuracy", "test_loss", "best_validation_accuracy", "best_validation_loss"]
    lines = printed(results_of_folds(metrics=dict.fromkeys(names, accuracy)))
    shown = {line[0] for line in lines} & set(names)
    assert shown == {"test_accuracy", "test_loss", "best_validation_accuracy"}


def test_one_seed_has_no_spread_and_no_folds(printed):
    accuracy = {
        "mean": 0.4,
        "standard_deviation": None,
        "interval_95": None,
        "by_seed": [0.4],
        "values": [[0.4]],
    }
    results = results_of_folds(num_folds=0, seeds=[0], spread_over="seeds", metrics={"test_accuracy": accuracy})
    lines = printed(results)
    assert ["over", "1", "seed"] in lines
    assert ["test_accuracy", "0.4000"] in lines
    assert not any("fold" in line for line in lines)


def test_a_difference_shows_its_sign(printed):
    difference = {"mean": 0.02, "standard_deviation": 0.01, "interval_95": [-0.0048, 0.0448], "differences": []}
    comparison = {"other": "runs/base", "metrics": {"test_accuracy": difference}}
    lines = printed(results_of_folds(comparison=comparison))
    assert ["difference", "to", "runs/base,", "fold", "by", "fold"] in lines
    assert ["test_accuracy", "+0.0200", "0.0100", "-0.0048", "to", "+0.0448"] in lines


def test_ten_seeds_are_whole_in_eighty_columns(printed):
    values = [0.81 + seed / 1000 for seed in range(10)]
    accuracy = {**results_of_folds()["metrics"]["test_accuracy"], "mean": 0.8145, "by_seed": values, "values": [values]}
    results = results_of_folds(num_folds=0, seeds=list(range(10)), spread_over="seeds")
    lines = printed({**results, "metrics": {"test_accuracy": accuracy}}, width=80)
    assert [f"{value:.4f}" for value in [*values, 0.8145]] in lines
