"""Predicts the parts of a bulk prediction in workers of Dask. The only module that needs Dask."""

import asyncio
import contextlib
import functools
import gc
import itertools
import logging
import pickle
import signal
import threading
import warnings
from multiprocessing import resource_tracker
from pathlib import Path
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple

import dask
from allennlp.common.checks import ConfigurationError
from allennlp.common.plugins import import_plugins
from allennlp.common.util import import_module_and_submodules, lazy_groups_of, push_python_path
from allennlp.data import Instance
from allennlp.models.archival import load_archive
from allennlp.predictors import Predictor
from distributed import Client, Future, KilledWorker, LocalCluster, wait

from elmo_tasks.commands.bulk_input import Part

# Seconds to wait for a scheduler, and for its first worker.
PATIENCE = 60
# So that each worker finds its next part when it has finished one.
_PARTS_PER_WORKER = 2

_DASK_SETTINGS = {
    # Dask would advise not to send much; but rows have to be sent.
    "distributed.admin.large-graph-warning-threshold": "1GB",
    # Workers on this machine would log that they lose a scheduler that was interrupted.
    "distributed.nanny.pre-spawn-environ.DASK_DISTRIBUTED__LOGGING__DISTRIBUTED": "critical",
}

dask_logger = logging.getLogger("distributed")

# A model serves one part at a time, however many threads its worker has.
_MODEL_LOCK = threading.Lock()


class PredictorSettings(NamedTuple):
    """
    What workers make the predictor of; the archive is a path that all of them know, or a URL. Its digest tells workers
    that outlive a command when another one lies there.
    """

    archive: str
    digest: str
    predictor: Optional[str] = None
    overrides: str = ""
    cuda_device: int = -1
    include_package: Tuple[str, ...] = ()


class Outcome(NamedTuple):
    """Of a part: its outputs, a line each; or else what went wrong, with the place of the row."""

    outputs: str = ""
    error: str = ""


def load_predictor(settings: PredictorSettings) -> Predictor:
    """
    # Parameters

    settings : `PredictorSettings`

    # Returns

    `Predictor`
        With a model of its own.
    """
    archive = load_archive(settings.archive, cuda_device=settings.cuda_device, overrides=settings.overrides)
    return Predictor.from_archive(archive, settings.predictor)  # type: ignore[arg-type]


def predict_parts(
    parts: Iterator[Part],
    settings: PredictorSettings,
    batch_size: int,
    num_workers: Optional[int] = None,
    scheduler: Optional[str] = None,
) -> Iterator[Tuple[Part, Outcome]]:
    """
    # Parameters

    parts : `Iterator[Part]`
        Few of them are asked for before they are needed.
    settings : `PredictorSettings`
    batch_size : `int`
    num_workers : `int`, optional (default = `None`)
        Processes on this machine, with one thread each; `None`: one for each core.
    scheduler : `str`, optional (default = `None`)
        The address of a scheduler of Dask, whose workers are used instead.

    # Returns

    `Iterator[Tuple[Part, Outcome]]`
        Each part once, as they are finished. A worker that dies is replaced, and its parts go to others.

    # Raises

    ConfigurationError
        Where there is no scheduler, or it has no workers.
    """
    first = next(parts, None)
    if first is None:
        return  # no worker need start
    parts = itertools.chain([first], parts)
    running: Dict[Future, Part] = {}
    with _client(num_workers, scheduler) as client:
        while True:
            room = _PARTS_PER_WORKER * max(1, sum(client.nthreads().values())) - len(running)
            for part in itertools.islice(parts, max(0, room)):
                # With `pure` its key would be a hash of the rows.
                future = client.submit(predict_part, settings, batch_size, part.places, part.payload, pure=False)
                running[future] = part
            if not running:
                return
            for future in wait(list(running), return_when="FIRST_COMPLETED").done:
                part = running.pop(future)
                yield part, _outcome(future, part)


def predict_part(settings: PredictorSettings, batch_size: int, places: Sequence[str], payload: bytes) -> Outcome:
    """
    Runs in a worker.

    # Parameters

    settings : `PredictorSettings`
        Of the predictor, which a worker makes once.
    batch_size : `int`
    places : `Sequence[str]`
    payload : `bytes`
        Of a `Part`.

    # Returns

    `Outcome`
    """
    outputs: List[str] = []
    with _MODEL_LOCK:
        predictor = _predictor_of_worker(settings)
        for batch in lazy_groups_of(pickle.loads(payload), batch_size):
            try:
                outputs += _predict(predictor, batch)
            except Exception as error:
                return Outcome(error=_named(error, predictor, batch, places[len(outputs) :]))
    return Outcome(outputs="".join(outputs))


@functools.lru_cache(maxsize=1)
def _predictor_of_worker(settings: PredictorSettings) -> Predictor:
    import_plugins()
    for package in settings.include_package:
        import_module_and_submodules(package)
    predictor = load_predictor(settings)
    gc.freeze()  # a search for garbage need not look at all that was imported
    return predictor


def _predict(predictor: Predictor, rows: List[Any]) -> List[str]:
    """As `allennlp predict` does."""
    if isinstance(rows[0], Instance):
        results = predictor.predict_batch_instance(rows) if len(rows) > 1 else [predictor.predict_instance(rows[0])]
    else:
        results = predictor.predict_batch_json(rows) if len(rows) > 1 else [predictor.predict_json(rows[0])]
    if len(results) != len(rows):
        raise ConfigurationError(
            f"a predictor must give an output for each row, but gives {len(results)} of {len(rows)}"
        )
    return [predictor.dump_line(result) for result in results]


def _named(error: Exception, predictor: Predictor, batch: List[Any], places: Sequence[str]) -> str:
    """An error of a batch with the place of the row that it comes from, or of the first one if no row fails alone."""
    where = places[0] if len(batch) == 1 else f"{places[0]}, and the {len(batch) - 1} rows after it together"
    for row, place in zip(batch, places) if len(batch) > 1 else ():
        try:
            _predict(predictor, [row])
        except Exception as error_of_row:
            where, error = place, error_of_row
            break
    kind = "" if isinstance(error, ConfigurationError) else f"{type(error).__name__}: "
    return f"{where}: {kind}{error}"


def _outcome(future: Future, part: Part) -> Outcome:
    try:
        return future.result()
    except KilledWorker:
        num_deaths = dask.config.get("distributed.scheduler.allowed-failures") + 1
        return Outcome(
            error=f"{part.places[0]}, or one of the {len(part.places)} rows from there: {num_deaths} workers died of "
            "them one after another; had they memory enough?"
        )


@contextlib.contextmanager
def _client(num_workers: Optional[int], scheduler: Optional[str]) -> Iterator[Client]:
    with contextlib.ExitStack() as stack:
        # Dask logs what it does, and what it mends by itself, such as the death of a worker, as an error.
        stack.callback(dask_logger.setLevel, dask_logger.level)
        dask_logger.setLevel(logging.CRITICAL)
        stack.enter_context(dask.config.set(_DASK_SETTINGS))
        if scheduler is None:
            # Workers find this package as this process did, be it installed or found in the working directory.
            stack.enter_context(push_python_path(Path(__file__).parents[2]))
            with _without_interruptions():
                cluster = stack.enter_context(_local_cluster(num_workers))
            address = cluster.scheduler_address
        else:
            address = scheduler
        try:
            client = stack.enter_context(Client(address, timeout=PATIENCE, set_as_default=False))
            client.wait_for_workers(1, timeout=PATIENCE)
        except (OSError, asyncio.TimeoutError, ValueError) as error:
            raise ConfigurationError(
                f"`--scheduler` must be the address of a scheduler of Dask that has workers, but at {address} there is "
                f"none: {error}"
            ) from error
        stack.enter_context(client.as_current())
        yield client


@contextlib.contextmanager
def _without_interruptions() -> Iterator[None]:
    """
    For `with`: threads and processes that are started, and those that they start, do not hear of Ctrl-C, which a
    console sends to all. Each worker would show a traceback; the main thread ends them.
    """
    if not hasattr(signal, "pthread_sigmask"):  # on Windows
        yield
        return
    resource_tracker.ensure_running()  # else the first process starts it, and hears again
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _local_cluster(num_workers: Optional[int]) -> LocalCluster:
    with warnings.catch_warnings():
        # Without its dashboard, nobody looks there.
        warnings.filterwarnings("ignore", "Port 8787 is already in use")
        return LocalCluster(
            n_workers=num_workers,
            threads_per_worker=1,
            memory_limit=0,
            dashboard_address=None,
            silence_logs=logging.CRITICAL,
        )
