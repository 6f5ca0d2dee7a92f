"""The results of a study as tables for the console."""

from typing import Any, Dict, Optional, Sequence

from rich.console import Console
from rich.table import Table

from elmo_tasks.commands.console_tables import print_tables
from elmo_tasks.commands.study_results import Results

INTERVAL = "95 % interval"
# Of a metric. In two lines, to leave room for its name.
SPREAD = ("mean", "standard\ndeviation", INTERVAL)


def print_results(results: Results, console: Optional[Console] = None) -> None:
    """
    # Parameters

    results : `Dict[str, Any]`
        As in `cross_validation.json`.
    console : `rich.console.Console`, optional
    """
    tables = [_runs_table(results), _summary_table(results)]
    if "comparison" in results:
        tables.append(_comparison_table(results))
    print_tables(*tables, console=console)


def _runs_table(results: Results) -> Table:
    """The main metric, a row for each fold and a column for each seed."""
    name = results["main_metric"]
    metric = results["metrics"][name]
    table = _table(f"{name} of each run", "", *(f"seed {seed}" for seed in results["seeds"]), "mean")
    for row, values in enumerate(metric["values"]):
        mean = sum(values) / len(values)
        table.add_row(f"fold {row}" if results["num_folds"] else "", *map(figure, [*values, mean]))
    if results["num_folds"]:
        table.add_section()
        table.add_row("mean", *map(figure, [*metric["by_seed"], metric["mean"]]))
    return table


def _summary_table(results: Results) -> Table:
    num_seeds = len(results["seeds"])
    if results["num_folds"]:
        title = f"over {results['num_folds']} folds, each the mean of {num_seeds} seed{'s' * (num_seeds > 1)}"
    else:
        title = f"over {num_seeds} seed{'s' * (num_seeds > 1)}"
    table = _table(title, "metric", *SPREAD)
    for name, metric in results["metrics"].items():
        if _is_shown(name, results):
            table.add_row(name, *_spread_cells(metric))
    return table


def _comparison_table(results: Results) -> Table:
    comparison = results["comparison"]
    unit = results["spread_over"][:-1]
    table = _table(f"difference to {comparison['other']}, {unit} by {unit}", "metric", *SPREAD)
    for name, metric in comparison["metrics"].items():
        if _is_shown(name, results):
            table.add_row(name, *_spread_cells(metric, sign="+"))
    return table


def _is_shown(name: str, results: Results) -> bool:
    """All test figures, and what selected the epoch, to see how far above the test it is."""
    return name.startswith("test_") or name == results["main_metric"].replace("test_", "best_validation_", 1)


def _table(title: str, first_column: str, *columns: str) -> Table:
    table = Table(title=title, title_justify="left")
    table.add_column(first_column)
    for column in columns:
        table.add_column(column, justify="right")
    return table


def _spread_cells(metric: Dict[str, Any], sign: str = "") -> Any:
    interval = metric["interval_95"]
    return (
        figure(metric["mean"], sign),
        "" if interval is None else figure(metric["standard_deviation"]),
        "" if interval is None else interval_text(interval, sign),
    )


def interval_text(interval: Sequence[float], sign: str = "") -> str:
    """Both ends of an interval, as tables show it."""
    return " to ".join(figure(bound, sign) for bound in interval)


def figure(value: float, sign: str = "") -> str:
    """A figure as tables show it; with the sign "+", also where it is above 0."""
    return format(value, f"{sign}.4f")
