"""Lays out what is known about runs as one HTML page that needs nothing else."""

import base64
import hashlib
from pathlib import Path
from typing import Any, Dict, List, NamedTuple, Optional, Union

import jinja2
from markupsafe import Markup

from elmo_tasks.commands.report_charts import Line, line_chart, reliability_diagram
from elmo_tasks.commands.report_config import Setting
from elmo_tasks.commands.report_predictions import Prediction, Predictions
from elmo_tasks.commands.report_runs import TrainedRun
from elmo_tasks.commands.report_statistics import calibration, confusion_matrix

_HERE = Path(__file__).parent
# The style sheet has so many colours.
_NUM_COLOURS = 7
_MIX_WEIGHT = "scalar_mix_layer_{}_weight"
_GAMMA = "scalar_mix_gamma"


class RunReport(NamedTuple):
    """
    # Parameters

    run : `TrainedRun`
    predictions : `Union[Predictions, str]`
        Or the sentence that says why there are none.
    """

    run: TrainedRun
    predictions: Union[Predictions, str]


class ConfigTable(NamedTuple):
    """
    # Parameters

    base : `Optional[str]`
        What the configs are compared with, for the page; `None`: nothing, they are shown whole.
    names : `List[str]`
        Of the configs that are compared.
    settings : `List[Setting]`
    """

    base: Optional[str]
    names: List[str]
    settings: List[Setting]


class _Legend(NamedTuple):
    style: str
    name: str


class _Figure(NamedTuple):
    title: str
    picture: Markup
    legend: List[_Legend]


def render(reports: List[RunReport], config: ConfigTable, made: str) -> str:
    """
    # Parameters

    reports : `List[RunReport]`
        At least one.
    config : `ConfigTable`
    made : `str`
        When and with what the page was made, for its foot.

    # Returns

    `str`
        HTML.
    """
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_HERE),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(figure=_figure, percent=_percent)
    script = (_HERE / "report.js").read_text(encoding="utf-8")
    runs = [report.run for report in reports]
    return environment.get_template("report.html.j2").render(
        script=Markup(script),
        # The browser runs this script and no other, whatever a text may smuggle in.
        script_hash=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
        style=Markup((_HERE / "report.css").read_text(encoding="utf-8")),
        overview=_overview(runs),
        config=config,
        curves=_curves(runs),
        mixes=_mixes(runs),
        reports=[{"run": report.run, "facts": report.run.facts(), **_judged(report.predictions)} for report in reports],
        made=made,
    )


def _overview(runs: List[TrainedRun]) -> Dict[str, Any]:
    """A column for each figure that any of the runs has, in the order of the first that has it."""
    columns: Dict[str, None] = {}
    rows = []
    for run in runs:
        metric = run.selecting_metric
        latest = run.metrics or (list(run.epochs.values())[-1] if run.epochs else {})
        figures: Dict[str, Any] = {"epochs": len(run.epochs) or None, "best epoch": run.best_epoch}
        figures[f"best validation {metric}"] = latest.get(f"best_validation_{metric}")
        for name in dict.fromkeys([metric, "accuracy", "f1", "perplexity", "loss"]):
            if f"test_{name}" in latest:
                figures[f"test {name}"] = latest[f"test_{name}"]
        figures["training time"] = run.facts().get("training time")
        columns.update(dict.fromkeys(figures))
        rows.append((run.name, figures))
    return {"columns": list(columns), "rows": rows}


def _curves(runs: List[TrainedRun]) -> List[_Figure]:
    """Training and validation, for the loss, the accuracy and what selects the epoch."""
    metrics = dict.fromkeys(["loss", "accuracy", *(run.selecting_metric for run in runs)])
    return [
        figure
        for metric in metrics
        for figure in _metric_figure(
            runs,
            metric.replace("_", " "),
            [("training", f"training_{metric}", "faint"), ("validation", f"validation_{metric}", "")],
        )
    ]


def _mixes(runs: List[TrainedRun]) -> List[_Figure]:
    """The weights of each run, and gamma of all of them."""
    figures = []
    for run in runs:
        lines: List[Line] = []
        while _has_values(weights := run.values(f"training_{_MIX_WEIGHT.format(len(lines))}")):
            lines.append(Line(f"layer {len(lines)}", weights, _colour(len(lines))))
        if lines:
            title = "layer weights" + (f", {run.name}" if len(runs) > 1 else "")
            picture = line_chart(lines, list(run.epochs), title, "weight", run.best_epoch, y_range=(0, 1))
            figures.append(_Figure(title, picture, [_Legend(line.style, line.name) for line in lines]))
    return [*figures, *_metric_figure(runs, "gamma", [("", f"training_{_GAMMA}", "")])]


def _metric_figure(runs: List[TrainedRun], title: str, parts: Any) -> List[_Figure]:
    """One figure with lines for all runs, or none where no run has the metric."""
    lines = []
    for number, run in enumerate(runs):
        for part, metric, style in parts:
            values = run.values(metric)
            if _has_values(values):
                words = [run.name] * (len(runs) > 1) + [part] * bool(part)
                lines.append(Line(", ".join(words) or title, values, f"{_colour(number)} {style}".strip()))
    if not lines:
        return []
    epochs = max((list(run.epochs) for run in runs), key=len)
    best = runs[0].best_epoch if len(runs) == 1 else None
    picture = line_chart(lines, epochs, f"{title} over the epochs", title, best)
    legend = [_Legend(line.style, line.name) for line in lines] if len(lines) > 1 else []
    return [_Figure(title, picture, legend)]


def _has_values(values: List[Optional[float]]) -> bool:
    return any(value is not None for value in values)


def _colour(number: int) -> str:
    return f"series-{number % _NUM_COLOURS}" + (" dashed" if number // _NUM_COLOURS % 2 else "")


def _judged(predictions: Union[Predictions, str]) -> Dict[str, Any]:
    if isinstance(predictions, str):
        return {"left_out": predictions}
    rows, labels = predictions.rows, predictions.labels
    are_right = [row.true == row.predicted for row in rows]
    calibrated = calibration([row.confidence for row in rows], are_right)
    matrix = confusion_matrix([(row.true, row.predicted) for row in rows], labels)
    return {
        "left_out": "",
        "data": predictions.data,
        "labels": labels,
        "num_rows": len(rows),
        "num_wrong": are_right.count(False),
        "accuracy": sum(are_right) / len(rows),
        "mean_confidence": sum(row.confidence for row in rows) / len(rows),
        "expected_error": calibrated.expected_error,
        "matrix": [[_cell(count, sum(row)) for count in row] for row in matrix],
        "reliability": reliability_diagram(calibrated, len(labels), "accuracy in each bin of confidence"),
        "errors": [_explained(error) for error in predictions.errors],
    }


def _cell(count: int, total: int) -> Dict[str, Any]:
    return {"count": count, "share": count / total if total else 0.0}


def _explained(error: Prediction) -> Dict[str, Any]:
    """The words of the largest saliency have full colour, in either direction."""
    largest = max((abs(number) for text in error.saliency for number in text), default=0.0) or 1.0
    return {
        "prediction": error,
        "texts": [
            [(word, number / largest) for word, number in zip(words, numbers)]
            for words, numbers in zip(error.texts, error.saliency)
        ],
    }


def _figure(value: Any) -> str:
    if value is None:
        return "\u2013"
    return f"{value:.4f}" if isinstance(value, float) else str(value)


def _percent(value: float, digits: int = 1) -> str:
    return f"{100 * value:.{digits}f} %"
