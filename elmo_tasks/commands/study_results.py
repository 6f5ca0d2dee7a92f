"""Figures of a study: what all its runs gave, means, spread, intervals, and the difference to another study."""

import json
import logging
import math
import statistics
from pathlib import Path
from typing import Any, Dict, List, Sequence

from allennlp.common.checks import ConfigurationError
from allennlp.models.archival import CONFIG_NAME
from scipy.stats import t as student_t

from elmo_tasks.commands.study import Run, Study
from elmo_tasks.commands.study_config import main_metric
from elmo_tasks.common.files import written_whole

logger = logging.getLogger(__name__)

Results = Dict[str, Any]

FILE_NAME = "cross_validation.json"
CONFIDENCE = 0.95
SUMMARIZED = ("test_", "best_validation_")
# What `allennlp train` takes where the config sets no `random_seed` (`allennlp.common.util.prepare_environment`).
ALLENNLP_SEED = 13370


def spread(values: Sequence[float]) -> Dict[str, Any]:
    """
    # Parameters

    values : `Sequence[float]`
        One for each fold, or for each seed.

    # Returns

    `Dict[str, Any]`
        `mean`; `standard_deviation`, of the sample (divided by n - 1); and `interval_95`, the mean plus and minus
        `t * standard_deviation / sqrt(n)` with the 97.5 % quantile of Student's t for n - 1 degrees of freedom. The
        latter two are `None` for one value.

        Values of folds are not independent, since their training parts overlap: the interval is a little too
        narrow, and no unbiased one exists.

    # Source

    Bengio and Grandvalet 2004, "No unbiased estimator of the variance of k-fold cross-validation".
    """
    mean = statistics.fmean(values)
    if len(values) < 2:
        return {"mean": mean, "standard_deviation": None, "interval_95": None}
    deviation = statistics.stdev(values)
    quantile = float(student_t.ppf((1 + CONFIDENCE) / 2, len(values) - 1))
    half_width = quantile * deviation / math.sqrt(len(values))
    return {"mean": mean, "standard_deviation": deviation, "interval_95": [mean - half_width, mean + half_width]}


def study_results(study: Study) -> Results:
    """
    # Parameters

    study : `Study`
        All runs are finished.

    # Returns

    `Dict[str, Any]`
        - `num_folds`, `seeds`, and the `config` that all runs share;
        - `main_metric`: the test figure of the metric that selects the epoch;
        - `spread_over`: `"folds"`, or `"seeds"` if there are no folds;
        - `metrics`: for the test figures and the validation figures of the selected epoch that all runs have, the
          `spread` over the folds' means (or the seeds), `by_fold` (means over the seeds, if there are folds), `by_seed`
          (means over the folds), and `values`, a list for each fold with a value for each seed;
        - `runs`: `fold`, `seed`, `directory` and all `metrics` of each run.
    """
    metrics_of = {(run.fold, run.seed): run.metrics() for run in study.runs}
    return {
        "num_folds": study.num_folds,
        "seeds": study.seeds,
        "main_metric": main_metric(study.config),
        "spread_over": "folds" if study.num_folds else "seeds",
        "metrics": {
            name: _summary(
                [[metrics_of[fold, seed][name] for seed in study.seeds] for fold in study.folds], study.num_folds > 0
            )
            for name in _summarized(list(metrics_of.values()))
        },
        "runs": [
            {
                "fold": run.fold,
                "seed": run.seed,
                "directory": run.directory.relative_to(study.directory).as_posix(),
                "metrics": metrics_of[run.fold, run.seed],
            }
            for run in study.runs
        ],
        "config": study.config,
    }


def run_results(directory: Path) -> Results:
    """
    # Parameters

    directory : `Path`
        Of a finished run of `allennlp train`.

    # Returns

    `Dict[str, Any]`
        As `study_results`, of this run alone.

    # Raises

    `ConfigurationError`
        The run is not finished, or has no test figures.
    """
    config = json.loads((directory / CONFIG_NAME).read_text(encoding="utf-8"))
    run = Run(None, config.get("random_seed", ALLENNLP_SEED), directory)
    metrics = run.metrics()
    if not metrics:
        raise ConfigurationError(
            f"{directory} must be the folder of a finished run with test figures, but has none; "
            "wait for its end, or train with `evaluate_on_test`"
        )
    return {
        "num_folds": 0,
        "seeds": [run.seed],
        "main_metric": main_metric(config),
        "spread_over": "seeds",
        "metrics": {name: _summary([[metrics[name]]], has_folds=False) for name in _summarized([metrics])},
        "runs": [{"fold": None, "seed": run.seed, "directory": ".", "metrics": metrics}],
        "config": config,
    }


def check_comparable(study: Study, other: Results) -> None:
    """
    # Parameters

    study : `Study`
        It need not be finished.
    other : `Dict[str, Any]`
        The results of another study.

    # Raises

    `ConfigurationError`
        The two have other folds, or, without folds, other seeds.
    """
    split_seeds = [config["dataset_reader"].get("split_seed", 0) for config in (study.config, other["config"])]
    for what, mine, others in (
        ("number of folds (0: none)", study.num_folds, other["num_folds"]),
        *([("`split_seed`", *split_seeds)] if study.num_folds else [("seeds", study.seeds, other["seeds"])]),
    ):
        if mine != others:
            raise ConfigurationError(f"compared studies must have the same {what}, but have {mine} and {others}")
    paths = [config["test_data_path"] for config in (study.config, other["config"])]
    if paths[0] != paths[1]:
        logger.warning("The compared studies test on %s and %s: do both hold the same rows?", *paths)


def compare(results: Results, other: Results) -> Dict[str, Any]:
    """
    # Parameters

    results, other : `Dict[str, Any]`
        Two studies on the same folds, or, without folds, with the same seeds (`check_comparable`).

    # Returns

    `Dict[str, Any]`
        For each metric of both, the `spread` of the differences, `results` minus `other`, fold by fold (or seed by
        seed), and the `differences` themselves.
    """
    unit = "by_fold" if results["num_folds"] else "by_seed"
    comparison = {}
    for name, metric in results["metrics"].items():
        if name in other["metrics"]:
            pairs = zip(metric[unit], other["metrics"][name][unit])
            differences = [mine - others for mine, others in pairs]
            comparison[name] = {**spread(differences), "differences": differences}
    return comparison


def read_results(directory: Path) -> Results:
    """
    # Raises

    `ConfigurationError`
        There is no finished study in the folder.
    """
    path = directory / FILE_NAME
    if not path.is_file():
        raise ConfigurationError(f"{directory} must be the folder of a finished study, but has no {FILE_NAME}")
    return json.loads(path.read_text(encoding="utf-8"))


def write_results(results: Results, directory: Path) -> Path:
    """
    # Returns

    `Path`
        The file.
    """
    path = directory / FILE_NAME
    with written_whole(path) as partial, open(partial, "w", encoding="utf-8") as results_file:
        json.dump(results, results_file, indent=2)
        results_file.write("\n")
    return path


def _summarized(metrics_of_runs: List[Dict[str, Any]]) -> List[str]:
    shared = set.intersection(*({name for name, value in m.items() if _is_figure(value)} for m in metrics_of_runs))
    return [name for name in metrics_of_runs[0] if name in shared and name.startswith(SUMMARIZED)]


def _summary(values: List[List[float]], has_folds: bool) -> Dict[str, Any]:
    by_fold = [statistics.fmean(of_fold) for of_fold in values]
    by_seed = [statistics.fmean(of_seed) for of_seed in zip(*values)]
    if not has_folds:
        return {**spread(by_seed), "by_seed": by_seed, "values": values}
    return {**spread(by_fold), "by_fold": by_fold, "by_seed": by_seed, "values": values}


def _is_figure(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)
