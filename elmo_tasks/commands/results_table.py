"""Finished runs, studies and comparisons as one table, for the console and for a page of Markdown."""

import json
from pathlib import Path
from typing import Any, Dict, List, NamedTuple, Optional, Sequence

from allennlp.common.checks import ConfigurationError
from allennlp.models.archival import CONFIG_NAME
from rich.table import Table

from elmo_tasks.commands.comparison import FILE_NAME as COMPARISON
from elmo_tasks.commands.comparison import Comparison, summary
from elmo_tasks.commands.study_results import FILE_NAME as STUDY
from elmo_tasks.commands.study_results import read_results, run_results
from elmo_tasks.commands.study_tables import INTERVAL, figure, interval_text

BASELINE = "baseline"


class Row(NamedTuple):
    """
    A study.

    # Parameters

    name : `str`
    summary : `Dict[str, Any]`
        See `summary`.
    differences : `Optional[Dict[str, Any]]`
        To a baseline, for each metric; empty where there is none, `None` for the baseline itself.
    """

    name: str
    summary: Dict[str, Any]
    differences: Optional[Dict[str, Any]]


class ResultsTable(NamedTuple):
    """
    # Parameters

    title : `str`
        What all rows have in common.
    header : `List[str]`
        The first column is text, the others are figures.
    body : `List[List[str]]`
    notes : `str`
        What the figures are.
    """

    title: str
    header: List[str]
    body: List[List[str]]
    notes: str

    def for_console(self) -> Table:
        """
        # Returns

        `rich.table.Table`
        """
        table = Table(title=self.title, title_justify="left", caption=self.notes, caption_justify="left")
        table.add_column(self.header[0])
        for column in self.header[1:]:
            table.add_column(column, justify="right")
        for cells in self.body:
            table.add_row(*cells)
        return table

    def for_markdown(self) -> str:
        """
        # Returns

        `str`
            With a line before the table and one after it.
        """
        rows = [self.header, ["---"] + ["---:"] * (len(self.header) - 1), *self.body]
        lines = ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows]
        return "\n".join([self.title, "", *lines, "", self.notes, ""])


def read_rows(directory: Path) -> List[Row]:
    """
    # Parameters

    directory : `Path`
        Of a finished study of `allennlp cross-validate`, of `allennlp compare`, or of a run of `allennlp train`.

    # Returns

    `List[Row]`
        One for the study or the run, or one for each variant that is finished.

    # Raises

    `ConfigurationError`
        There is none of them, or the run is not finished.
    """
    if (directory / COMPARISON).is_file():
        return comparison_rows(json.loads((directory / COMPARISON).read_text(encoding="utf-8")))
    name = directory.resolve().name
    if (directory / STUDY).is_file():
        return [Row(name, summary(read_results(directory)), {})]
    if (directory / CONFIG_NAME).is_file():
        return [Row(name, summary(run_results(directory)), {})]
    raise ConfigurationError(
        f"{directory} must be a folder of `allennlp train`, `allennlp cross-validate` or `allennlp compare` with "
        f"something finished in it, but has neither {CONFIG_NAME}, {STUDY} nor {COMPARISON}"
    )


def comparison_rows(comparison: Comparison) -> List[Row]:
    """
    # Returns

    `List[Row]`
        One for each variant that is finished.
    """
    return [Row(name, variant, variant["differences"]) for name, variant in comparison["variants"].items()]


def results_table(rows: List[Row], metrics: Sequence[str] = ()) -> ResultsTable:
    """
    # Parameters

    rows : `List[Row]`
    metrics : `Sequence[str]`, optional (default = `()`)
        Their names, as in `metrics.json`; none: the main metric of each study.

    # Returns

    `ResultsTable`
        The data and the number of runs are in the title where they are the same for all rows, else in columns.

    # Raises

    `ConfigurationError`
        No study has a metric of this name.
    """
    metrics = list(dict.fromkeys(metrics or [row.summary["main_metric"] for row in rows]))
    known = sorted({name for row in rows for name in row.summary["metrics"]})
    for name in metrics:
        if name not in known:
            raise ConfigurationError(f"`--metrics` must be among {', '.join(known)}, but has {name!r}")
    columns = {"name": [row.name for row in rows]}
    common = []
    for heading, texts in (("data", [row.summary["data"] for row in rows]), ("runs", [_runs(row) for row in rows])):
        if len(set(texts)) == 1:
            common.append(texts[0])
        else:
            columns[heading] = texts
    header, body = list(columns), [list(cells) for cells in zip(*columns.values())]
    is_compared = any(row.differences != {} for row in rows)
    for name in metrics:
        header += [name, INTERVAL, *(["difference"] if is_compared else [])]
        for row, cells in zip(rows, body):
            cells += _metric_cells(row, name) + ([_difference(row, name)] if is_compared else [])
    header.append("training")
    for row, cells in zip(rows, body):
        cells.append(_time(row.summary["training_seconds"]))
    return ResultsTable(", ".join(common), header, body, _notes(is_compared))


def _runs(row: Row) -> str:
    num_seeds, num_folds = len(row.summary["seeds"]), row.summary["num_folds"]
    seeds = f"{num_seeds} seed{'s' * (num_seeds > 1)}"
    return f"{num_folds} folds, {seeds}" if num_folds else seeds


def _metric_cells(row: Row, name: str) -> List[str]:
    metric = row.summary["metrics"].get(name)
    if metric is None:
        return ["", ""]
    if metric["interval_95"] is None:
        return [figure(metric["mean"]), ""]
    return [
        f"{figure(metric['mean'])} ± {figure(metric['standard_deviation'])}",
        interval_text(metric["interval_95"]),
    ]


def _difference(row: Row, name: str) -> str:
    if row.differences is None:
        return BASELINE
    difference = row.differences.get(name)
    if difference is None:
        return ""
    mean = figure(difference["mean"], "+")
    interval = difference["interval_95"]
    return mean if interval is None else f"{mean} ({interval_text(interval, '+')})"


def _time(seconds: Optional[float]) -> str:
    if seconds is None:
        return ""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"


def _notes(is_compared: bool) -> str:
    notes = "mean ± standard deviation over the seeds, or over the folds, each the mean of its seeds"
    if is_compared:
        notes += f"; differences to the {BASELINE} are paired, in brackets their {INTERVAL}"
    return f"{notes}; training: the epochs of a run, the median"
