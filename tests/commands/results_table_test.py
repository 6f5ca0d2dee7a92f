import io
import json

import pytest
from allennlp.common.checks import ConfigurationError
from rich.console import Console

from elmo_tasks.commands.results_table import Row, read_rows, results_table

ACCURACY = {"mean": 0.7631, "standard_deviation": 0.0021, "interval_95": [0.7605, 0.7657]}
DIFFERENCE = {"mean": 0.0123, "interval_95": [-0.001, 0.0256]}


def row(name, differences, data="mr/rt_val.txt", num_seeds=5, num_folds=0, seconds=69.4, **metrics):
    summary = {
        "data": data,
        "seeds": list(range(num_seeds)),
        "num_folds": num_folds,
        "main_metric": "test_accuracy",
        "metrics": {"test_accuracy": ACCURACY, **metrics},
        "training_seconds": seconds,
    }
    return Row(name, summary, differences)


def test_what_all_rows_share_is_in_the_title():
    table = results_table([row("average", None), row("learned", {"test_accuracy": DIFFERENCE})])
    assert table.title == "mr/rt_val.txt, 5 seeds"
    assert table.header == ["name", "test_accuracy", "95 % interval", "difference", "training"]
    assert table.body == [
        ["average", "0.7631 ± 0.0021", "0.7605 to 0.7657", "baseline", "1 min 9 s"],
        ["learned", "0.7631 ± 0.0021", "0.7605 to 0.7657", "+0.0123 (-0.0010 to +0.0256)", "1 min 9 s"],
    ]
    assert "differences to the baseline are paired" in table.notes


def test_data_and_runs_that_differ_have_columns_and_studies_no_difference():
    table = results_table([row("a", {}), row("b", {}, data="mr#test", num_folds=10, num_seeds=1)])
    assert table.title == ""
    assert table.header == ["name", "data", "runs", "test_accuracy", "95 % interval", "training"]
    assert [cells[1:3] for cells in table.body] == [["mr/rt_val.txt", "5 seeds"], ["mr#test", "10 folds, 1 seed"]]
    assert "baseline" not in table.notes


def test_a_study_beside_a_comparison_has_no_difference():
    table = results_table([row("base", None), row("alone", {})])
    assert [cells[3] for cells in table.body] == ["baseline", ""]


def test_metrics_are_chosen_by_name_and_blank_where_a_study_has_none():
    f1 = {"mean": 0.5, "standard_deviation": None, "interval_95": None}
    table = results_table([row("a", {}, test_f1=f1), row("b", {})], ["test_f1", "test_accuracy"])
    assert table.header == ["name", "test_f1", "95 % interval", "test_accuracy", "95 % interval", "training"]
    assert [cells[1:3] for cells in table.body] == [["0.5000", ""], ["", ""]]
    with pytest.raises(ConfigurationError, match="must be among test_accuracy, test_f1, but has 'f1'"):
        results_table([row("a", {}, test_f1=f1), row("b", {})], ["f1"])


@pytest.mark.parametrize(
    ("seconds", "text"), [(None, ""), (4.4, "4 s"), (59.6, "1 min 0 s"), (3599.7, "1 h 0 min"), (7384, "2 h 3 min")]
)
def test_times_are_written_in_words(seconds, text):
    assert results_table([row("a", {}, seconds=seconds)]).body[0][-1] == text


def test_markdown_is_a_table_between_two_lines():
    lines = results_table([row("a|b", {})]).for_markdown().splitlines()
    assert lines[:5] == [
        "mr/rt_val.txt, 5 seeds",
        "",
        "| name | test_accuracy | 95 % interval | training |",
        "| --- | ---: | ---: | ---: |",
        "| a\\|b | 0.7631 ± 0.0021 | 0.7605 to 0.7657 | 1 min 9 s |",
    ]
    assert lines[6].startswith("mean ± standard deviation over the seeds")


def test_the_console_gets_the_same_cells():
    table = results_table([row("average", None), row("learned", {"test_accuracy": DIFFERENCE})])
    output = io.StringIO()
    Console(file=output, width=140).print(table.for_console())
    for text in (table.title, *table.header, *table.body[0], *table.body[1]):
        assert text in output.getvalue()


def test_rows_come_from_studies_and_from_comparisons(tmp_path):
    results = {
        "num_folds": 0,
        "seeds": [0],
        "main_metric": "test_accuracy",
        "spread_over": "seeds",
        "metrics": {"test_accuracy": ACCURACY},
        "runs": [{"metrics": {"training_duration": "0:00:07"}}],
        "config": {"test_data_path": "mr/rt_val.txt"},
    }
    for name in ("study", "comparison"):
        (tmp_path / name).mkdir()
    (tmp_path / "study/cross_validation.json").write_text(json.dumps(results))
    variants = {"a": row("a", None).summary, "b": row("b", {}).summary}
    variants["a"]["differences"], variants["b"]["differences"] = None, {"test_accuracy": DIFFERENCE}
    (tmp_path / "comparison/comparison.json").write_text(json.dumps({"baseline": "a", "variants": variants}))

    (study,) = read_rows(tmp_path / "study")
    assert (study.name, study.differences, study.summary["training_seconds"]) == ("study", {}, 7)
    rows = read_rows(tmp_path / "comparison")
    assert [(row.name, row.differences) for row in rows] == [("a", None), ("b", {"test_accuracy": DIFFERENCE})]


def test_a_folder_without_results_is_refused(tmp_path):
    with pytest.raises(
        ConfigurationError, match=r"has neither config\.json, cross_validation\.json nor comparison\.json"
    ):
        read_rows(tmp_path)
