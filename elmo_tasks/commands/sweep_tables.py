"""The best trials of a sweep as a table for the console."""

from typing import Dict, List, Optional

from rich.console import Console
from rich.table import Table

from elmo_tasks.commands.console_tables import print_tables
from elmo_tasks.commands.search_space import Value
from elmo_tasks.commands.sweep_study import Sweep

NUM_SHOWN = 10


def print_trials(sweep: Sweep, console: Optional[Console] = None) -> None:
    """
    Prints the best trials, and how many others there are.

    # Parameters

    sweep : `Sweep`
    console : `rich.console.Console`, optional
    """
    console = console or Console()
    num_finished, num_complete = len(sweep.finished), len(sweep.ranked)
    console.print(f"{sweep.metric}: the best of {_count(num_finished)}", markup=False)
    table = Table()
    table.add_column("trial", justify="right")
    # Short, to leave room for the settings.
    table.add_column(sweep.metric.replace("best_validation_", "", 1), justify="right")
    names = short_names(list(sweep.space.parameters))
    for name in names.values():
        table.add_column(name)
    for trial in sweep.ranked[:NUM_SHOWN]:
        settings = [_text(trial.params[name]) for name in names]
        table.add_row(str(trial.number), f"{trial.values[0]:.4f}", *settings)
    print_tables(table, console=console)
    if num_finished > num_complete:
        console.print(f"{_count(num_finished - num_complete)} failed")
    if len(sweep.taken) > num_finished:
        console.print(f"{_count(len(sweep.taken) - num_finished)} still under way in other processes")


def _count(num_trials: int) -> str:
    return f"{num_trials} trial{'s' * (num_trials != 1)}"


def short_names(names: List[str]) -> Dict[str, str]:
    """
    # Returns

    `Dict[str, str]`
        For each name the shortest end, of whole parts between dots, that no other name has.
    """
    return {name: next(end for end in _ends(name) if end == name or _is_of_one(end, names)) for name in names}


def _ends(name: str) -> List[str]:
    parts = name.split(".")
    return [".".join(parts[start:]) for start in reversed(range(len(parts)))]


def _is_of_one(end: str, names: List[str]) -> bool:
    return sum(f".{name}".endswith(f".{end}") for name in names) == 1


def _text(value: Value) -> str:
    return format(value, ".4g") if isinstance(value, float) else str(value)
