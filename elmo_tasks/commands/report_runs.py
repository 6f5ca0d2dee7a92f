"""A run as `allennlp train` leaves it in its folder: config, figures of each epoch, archive, log."""

import json
import os
import re
from pathlib import Path
from typing import Any, Dict, List, NamedTuple, Optional

from allennlp.common.checks import ConfigurationError
from allennlp.common.meta import META_NAME
from allennlp.models.archival import CONFIG_NAME

from elmo_tasks.commands.study_config import Config, main_metric
from elmo_tasks.training.machine_record import FILE_NAME as MACHINE

METRICS = "metrics.json"
ARCHIVE = "model.tar.gz"
LOG = "out.log"

_EPOCH = re.compile(r"metrics_epoch_(\d+)\.json")
_FIRST_TIME = re.compile(r"(\d{4}-\d\d-\d\d \d\d:\d\d):\d\d")
_TORCH_VERSION = re.compile(r"Pytorch version: (\S+)")
# The log says these within its first lines.
_NUM_BYTES_OF_LOG = 10_000


class TrainedRun(NamedTuple):
    """
    # Parameters

    path : `str`
    name : `str`
        For the page.
    config : `Dict[str, Any]`
    epochs : `Dict[int, Dict[str, Any]]`
        What `metrics_epoch_N.json` holds, for each N in ascending order.
    metrics : `Dict[str, Any]`
        What `metrics.json` holds; empty while the run is not finished.
    archive : `Optional[str]`
        The path of the archive, if it is there already.
    """

    path: str
    name: str
    config: Config
    epochs: Dict[int, Dict[str, Any]]
    metrics: Dict[str, Any]
    archive: Optional[str]

    @property
    def selecting_metric(self) -> str:
        """The metric that selects the epoch, such as "accuracy"."""
        return main_metric(self.config)[len("test_") :]

    @property
    def best_epoch(self) -> Optional[int]:
        """Counted from 0; of a run that goes on, the best so far."""
        latest = self.metrics or (list(self.epochs.values())[-1] if self.epochs else {})
        return latest.get("best_epoch")

    def values(self, metric: str) -> List[Optional[float]]:
        """One value for each epoch, `None` where it is missing."""
        return [epoch.get(metric) for epoch in self.epochs.values()]

    def facts(self) -> Dict[str, str]:
        """What is known about time, memory and programs, in words."""
        log = _beginning(Path(self.path, LOG))
        meta = _read_json(Path(self.path, META_NAME))
        facts = {"started": _first(_FIRST_TIME, log), "training time": self._training_time()}
        for name, value in self.metrics.items():
            if name.startswith("peak_"):
                facts[name.replace("_", " ").replace(" MB", "")] = f"{value:,.0f} MB"
        facts.update(_read_json(Path(self.path, MACHINE)))
        facts.setdefault("torch", _first(_TORCH_VERSION, log))
        facts["AllenNLP"] = meta.get("version", "")
        return {name: value for name, value in facts.items() if value}

    def _training_time(self) -> str:
        """In hours, minutes and seconds; AllenNLP counts from the last start of a run that was continued."""
        latest = self.metrics or (list(self.epochs.values())[-1] if self.epochs else {})
        return str(latest.get("training_duration", "")).partition(".")[0]


def read_runs(paths: List[str]) -> List[TrainedRun]:
    """
    # Parameters

    paths : `List[str]`
        The folders of runs.

    # Returns

    `List[TrainedRun]`
        In this order. They are named by their folders, without what all paths have in common.

    # Raises

    `ConfigurationError`
        A folder is not that of a run, is given twice, or holds no figures and no archive yet.
    """
    absolute = [os.path.abspath(path) for path in paths]
    for position, path in enumerate(absolute):
        if path in absolute[:position]:
            raise ConfigurationError(f"each run must be given once, but {paths[position]} is given again")
    common = os.path.commonpath([os.path.dirname(path) for path in absolute])
    return [_read_run(path, os.path.relpath(whole, common)) for path, whole in zip(paths, absolute)]


def _read_run(path: str, name: str) -> TrainedRun:
    folder = Path(path)
    if not (folder / CONFIG_NAME).is_file():
        raise ConfigurationError(
            f"a run must be a folder that `allennlp train -s` made, with {CONFIG_NAME}, but {path} is not"
            + ("; give the folder that the archive is in" if folder.is_file() else "")
        )
    numbers = sorted(int(match.group(1)) for match in map(_EPOCH.fullmatch, os.listdir(folder)) if match)
    epochs = {number: _read_json(folder / f"metrics_epoch_{number}.json") for number in numbers}
    archive = folder / ARCHIVE
    if not epochs and not archive.is_file():
        raise ConfigurationError(f"{path} must hold figures or an archive, but holds none; has an epoch ended?")
    return TrainedRun(
        path=path,
        name=name,
        config=_read_json(folder / CONFIG_NAME),
        epochs=epochs,
        metrics=_read_json(folder / METRICS),
        archive=str(archive) if archive.is_file() else None,
    )


def _read_json(path: Path) -> Dict[str, Any]:
    """An empty dictionary where there is no such file."""
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}


def _beginning(path: Path) -> str:
    if not path.is_file():
        return ""
    with open(path, encoding="utf-8", errors="replace") as log:
        return log.read(_NUM_BYTES_OF_LOG)


def _first(pattern: "re.Pattern[str]", text: str) -> str:
    match = pattern.search(text)
    return match.group(1) if match else ""
