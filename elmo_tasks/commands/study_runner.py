"""Trains the runs of a study, here or in worker processes, and keeps the console for one progress bar."""

import contextlib
import gc
import itertools
import logging
import multiprocessing
import os
import sys
import threading
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from pathlib import Path
from typing import Dict, Iterable, Iterator, List

import torch
from allennlp.commands.train import train_model
from allennlp.common import Params
from allennlp.common.plugins import import_plugins
from allennlp.common.tqdm import Tqdm
from allennlp.common.tqdm import logger as tqdm_logger
from allennlp.common.util import import_module_and_submodules, push_python_path
from allennlp.models.archival import archive_model

from elmo_tasks.commands.study import Run, Study
from elmo_tasks.commands.study_config import Config, activation_caches
from elmo_tasks.common.config_checks import check_config

logger = logging.getLogger(__name__)

# Whose warnings reach the console: "py.warnings" are those of Python's own module.
HEARD_LOGGERS = ("allennlp", "elmo_tasks", "py.warnings")


def train_runs(study: Study, num_workers: int, include_package: List[str]) -> None:
    """
    Trains all runs of a study that are not finished.

    # Parameters

    study : `Study`
    num_workers : `int`
        1: the runs follow one another in this process, which pays for the imports once. More: so many worker
        processes, between which the threads of torch are divided.
    include_package : `List[str]`
        Packages that workers import, as the option of `allennlp` says.

    # Raises

    `Exception`
        What went wrong in a run. It ends the study, after the other runs that are under way; a line names the run.
        All finished runs stay.
    """
    unfinished = [run for run in study.runs if not run.is_finished]
    progress = Tqdm.tqdm(total=len(study.runs), initial=len(study.runs) - len(unfinished), desc="runs", unit="run")
    said = set()
    with progress, imports_out_of_garbage():
        if num_workers == 1:
            results = _train_here(study, unfinished, include_package)
        else:
            results = _train_in_workers(study, unfinished, num_workers, include_package)
        for warnings in results:
            for warning in warnings:
                if warning not in said:
                    said.add(warning)
                    progress.write(warning, file=progress.fp)
            progress.update()


def check_can_train(study: Study) -> None:
    """
    # Raises

    `ConfigurationError`
        A run is left to train, and `check_config` refuses its config. A finished study may have been trained where
        there was another device.
    """
    if not all(run.is_finished for run in study.runs):
        check_config(study.config)


def train_run(run: Run, config: Config, include_package: List[str]) -> List[str]:
    """
    Trains one run, or what is left of it. Its log is `out.log` in its folder; the console stays silent.

    With checkpoints it goes on from them, as `allennlp train --recover` does; without, it begins anew, whatever is in
    its folder. Where only the archive may be missing, that is made. At the end the checkpoints are removed.

    # Parameters

    run : `Run`
    config : `Dict[str, Any]`
        Of the run.
    include_package : `List[str]`
        For the processes of distributed training.

    # Returns

    `List[str]`
        The warnings that it gave.
    """
    with _silent_console() as warnings:
        if run.metrics():
            archive_model(run.directory, include_in_archive=config.get("include_in_archive"))
        else:
            recover = bool(run.checkpoints)
            train_model(
                Params(config),
                str(run.directory),
                recover=recover,
                force=not recover,
                include_package=include_package,
                return_model=False,
            )
    gc.collect()  # trainers are in reference cycles, and hold models and activations
    for checkpoint in run.checkpoints:
        checkpoint.unlink()
    return warnings


def named_log(directory: Path) -> str:
    """For the line that tells of a failure: where the log of a run is, if it came so far as to begin one."""
    log = directory / "out.log"
    return f"; its log is {log}" if log.exists() else ""


@contextlib.contextmanager
def imports_out_of_garbage() -> Iterator[None]:
    """For `with`: a search for garbage looks at what came after the imports, in milliseconds, not in half a second."""
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


def _train_here(study: Study, runs: List[Run], include_package: List[str]) -> Iterator[List[str]]:
    for run in runs:
        with _named_in_errors(run):
            warnings = train_run(run, study.config_of(run), include_package)
        yield warnings


def _train_in_workers(
    study: Study, runs: List[Run], num_workers: int, include_package: List[str]
) -> Iterator[List[str]]:
    # Forking a process that has run torch may hang.
    context = multiprocessing.get_context("spawn")
    num_threads = max(1, torch.get_num_threads() // num_workers)
    executor = ProcessPoolExecutor(num_workers, context, _prepare_worker, (include_package, num_threads))
    waiting = iter(runs)
    running: Dict[Future, Run] = {}

    def start(count: int) -> None:
        # No more than the workers can take, so that after an interruption nothing else begins.
        for run in itertools.islice(waiting, count):
            running[executor.submit(train_run, run, study.config_of(run), include_package)] = run

    # Workers find this package as this process did, be it installed or found by AllenNLP in the working directory.
    with push_python_path(Path(__file__).parents[2]), executor:
        # The first run fills the activation cache, alone; together they would compute the same sentences.
        fills_cache = len(runs) == len(study.runs) and any(activation_caches(study.config))
        start(1 if fills_cache else num_workers)
        while running:
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                with _named_in_errors(running.pop(future)):
                    warnings = future.result()
                yield warnings
            start(num_workers - len(running))


def _prepare_worker(include_package: Iterable[str], num_threads: int) -> None:
    torch.set_num_threads(num_threads)
    with _silent_console():
        import_plugins()
        for package in include_package:
            import_module_and_submodules(package)
    gc.freeze()  # see `imports_out_of_garbage`
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    """Else a worker of a killed study would go on, beside those of the command that continues it."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)


@contextlib.contextmanager
def _named_in_errors(run: Run) -> Iterator[None]:
    try:
        yield
    except Exception:
        logger.error(
            "%s has failed%s. What is finished stays: the same command goes on from here.",
            run.name.capitalize(),
            named_log(run.directory),
        )
        raise


@contextlib.contextmanager
def _silent_console() -> Iterator[List[str]]:
    """
    Keeps the logs and progress bars of training off the console, and gives the list of its warnings.

    AllenNLP directs the root logger of the process to the folder of a run and to the console of that moment, for
    good; afterwards everything is as it was.
    """
    warnings: List[str] = []
    collector = _Collector(warnings)
    root = logging.getLogger()
    before = root.level, root.handlers, tqdm_logger.handlers, sys.excepthook
    root.handlers, tqdm_logger.handlers = [], []
    with contextlib.ExitStack() as stack:
        nowhere = stack.enter_context(open(os.devnull, "w"))
        stack.enter_context(contextlib.redirect_stdout(nowhere))
        stack.enter_context(contextlib.redirect_stderr(nowhere))
        for name in HEARD_LOGGERS:
            logging.getLogger(name).addHandler(collector)
        logging.captureWarnings(True)
        try:
            yield warnings
        except Exception:
            root.critical("The run has failed.", exc_info=True)  # in its log
            # They may say why. The console is back when the stack unwinds.
            stack.callback(_warn_of, warnings)
            raise
        finally:
            logging.captureWarnings(False)
            for name in HEARD_LOGGERS:
                logging.getLogger(name).removeHandler(collector)
            for handler in root.handlers:
                with contextlib.suppress(OSError):  # a full disk takes no more lines; what it means is said elsewhere
                    handler.close()
            level, root.handlers, tqdm_logger.handlers, sys.excepthook = before
            root.setLevel(level)


def _warn_of(warnings: List[str]) -> None:
    for warning in warnings:
        logger.warning("%s", warning)


class _Collector(logging.Handler):
    def __init__(self, messages: List[str]) -> None:
        super().__init__(logging.WARNING)
        self._messages = messages

    def emit(self, record: logging.LogRecord) -> None:
        # Python's own warnings bring a line of source code along.
        first_line = record.getMessage().strip().partition("\n")[0]
        self._messages.append(f"{record.levelname}: {first_line}")
