"""The figures of a comparison: each variant's, and the difference of each to the baseline."""

import json
import re
import statistics
from pathlib import Path
from typing import Any, Dict, List, Optional

from elmo_tasks.commands.study_config import Config
from elmo_tasks.commands.study_results import Results, compare
from elmo_tasks.common.files import written_whole

FILE_NAME = "comparison.json"

Comparison = Dict[str, Any]

# As `str(timedelta)` writes it.
_DURATION = re.compile(r"(?:(\d+) days?, )?(\d+):(\d+):(\d+(?:\.\d+)?)")


def summary(results: Results) -> Dict[str, Any]:
    """
    # Parameters

    results : `Dict[str, Any]`
        Of a study (`study_results`).

    # Returns

    `Dict[str, Any]`
        - `data`: the end of the path that is tested;
        - `training_seconds`: the median over the runs of the time of their epochs, with the dev part and without the
          test; `None` where no run tells. What the biLM does once for all runs is not in it;
        - `num_folds`, `seeds`, `main_metric`, `spread_over` and `metrics` as they are in the results.
    """
    seconds = [_seconds(run["metrics"].get("training_duration")) for run in results["runs"]]
    known = [value for value in seconds if value is not None]
    return {
        "data": _data_name(results["config"]),
        "training_seconds": statistics.median(known) if known else None,
        **{key: results[key] for key in ("num_folds", "seeds", "main_metric", "spread_over", "metrics")},
    }


def comparison_of(results: Dict[str, Results], names: List[str], baseline: str) -> Comparison:
    """
    # Parameters

    results : `Dict[str, Results]`
        Of the variants that are finished, the baseline among them.
    names : `List[str]`
        Of all variants, in their order.
    baseline : `str`
        To which the others are compared.

    # Returns

    `Dict[str, Any]`
        - `baseline`, and `unfinished`, a list of names;
        - `variants`: for each finished one its `summary`, and under `differences` how it differs from the baseline in
          each metric (`compare`); `None` for the baseline.
    """
    return {
        "baseline": baseline,
        "unfinished": [name for name in names if name not in results],
        "variants": {
            name: {
                **summary(results[name]),
                "differences": None if name == baseline else compare(results[name], results[baseline]),
            }
            for name in names
            if name in results
        },
    }


def write_comparison(comparison: Comparison, directory: Path) -> None:
    """Writes `comparison.json`."""
    with written_whole(directory / FILE_NAME) as partial, open(partial, "w", encoding="utf-8") as comparison_file:
        json.dump(comparison, comparison_file, indent=2)
        comparison_file.write("\n")


def _seconds(duration: Optional[str]) -> Optional[float]:
    match = _DURATION.fullmatch(duration or "")
    if match is None:
        return None
    days, hours, minutes, seconds = (float(part or 0) for part in match.groups())
    return ((days * 24 + hours) * 60 + minutes) * 60 + seconds


def _data_name(config: Config) -> str:
    path = config["test_data_path"]
    paths = path if isinstance(path, list) else [path]
    return ", ".join("/".join(str(path).split("/")[-2:]) for path in paths)
