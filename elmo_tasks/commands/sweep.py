"""
The `sweep` command looks for the settings of a config that are best on its dev part:

    allennlp sweep training_configs/mr.jsonnet training_configs/sweeps/mr.libsonnet -s runs/mr_sweep --trials 50

The same command in another terminal, or on another machine that has the folder, joins in. It needs Optuna.
"""

import argparse
import importlib.util
import shlex
from pathlib import Path
from typing import Any, Dict, List, Optional

from allennlp.commands.subcommand import Subcommand
from allennlp.common import Params
from allennlp.common.checks import ConfigurationError
from allennlp.common.params import parse_overrides

from elmo_tasks.commands.output_paths import check_output_folder
from elmo_tasks.commands.search_space import SearchSpace
from elmo_tasks.commands.sweep_config import sweep_config
from elmo_tasks.common.user_errors import told_to_go_on

DESCRIPTION = """\
Look for the settings of a config that give the best figure on its dev part: Optuna chooses them from a search space,
and each trial trains with a choice. The test part is left out. The same command, run again or at the same time, here
or on other machines, takes part in the same search, until all together have the number of trials. The best settings
are in best.libsonnet, for `allennlp train -o`.
"""


@Subcommand.register("sweep")
class SweepCommand(Subcommand):
    """
    Searches settings, and writes the best ones as an override file (`sweep`).

    Registered as a `Subcommand` with name "sweep".
    """

    def add_subparser(self, parser: argparse._SubParsersAction) -> argparse.ArgumentParser:
        """See `Subcommand`."""
        subparser = parser.add_parser(
            self.name, description=DESCRIPTION, help="Search for the settings that are best on the dev part."
        )
        subparser.add_argument("config", metavar="CONFIG", help="a config of `allennlp train`")
        subparser.add_argument(
            "space", metavar="SPACE", help="the search space, a file of json(net): see training_configs/sweeps"
        )
        subparser.add_argument(
            "-s",
            "--serialization-dir",
            metavar="DIR",
            required=True,
            help="folder of the sweep: best.libsonnet, and a folder for each trial, trial_0 and so on",
        )
        subparser.add_argument(
            "--trials",
            metavar="N",
            type=int,
            default=50,
            help="how many trials there shall be in all, over all processes; more may be asked for later",
        )
        subparser.add_argument(
            "--storage",
            metavar="PATH_OR_URL",
            help="where Optuna keeps the trials: a path to a journal, which machines may share; or a database, such "
            "as sqlite:///sweeps.db, for one machine, or postgresql://…. By default study.journal in DIR",
        )
        subparser.add_argument(
            "--study-name", metavar="NAME", default="sweep", help="the name of the sweep in the storage"
        )
        subparser.add_argument(
            "-o", "--overrides", default="", help="json(net) of changes to the config, as for `allennlp train`"
        )
        subparser.set_defaults(func=_sweep_from_args)
        return subparser


def sweep(
    config_path: str,
    space_path: str,
    directory: str,
    num_trials: int = 50,
    storage: Optional[str] = None,
    study_name: str = "sweep",
    overrides: str = "",
    include_package: Optional[List[str]] = None,
) -> Dict[str, Any]:
    """
    Trains what is missing of a number of trials, prints the best ones, and writes the settings of the best.

    # Parameters

    config_path : `str`
        A config of `allennlp train`.
    space_path : `str`
        A search space: an object with a `SearchParameter` under each name.
    directory : `str`
        The folder of the sweep. It gets `best.libsonnet`, and for each trial a folder as `allennlp train` leaves it,
        but for the weights. Embedders whose activation cache names no folder share `activations/`, which may be
        deleted when the sweep is finished.
    num_trials : `int`, optional (default = `50`)
        Over all processes that work on the study, now and earlier. One that was killed does not count, one that
        failed does.
    storage : `str`, optional (default = `None`)
        A URL of SQLAlchemy, or a path to a journal of Optuna. `None`: `study.journal` in the folder.
    study_name : `str`, optional (default = `"sweep"`)
        Of the study in the storage.
    overrides : `str`, optional (default = `""`)
        JSON or jsonnet, as for `allennlp train`.
    include_package : `List[str]`, optional (default = `None`)
        Packages that the processes of distributed training import.

    # Returns

    `Dict[str, Any]`
        The best settings, as `-o` takes them; empty, as long as no trial has succeeded.

    # Raises

    `ConfigurationError`
        Before anything is trained: Optuna is missing; or an argument, the config, the search space, or what is in the
        folder or the storage does not serve. Later: trial after trial has failed.
    """
    if importlib.util.find_spec("optuna") is None:
        raise ConfigurationError(
            "`allennlp sweep` must have Optuna, but it is not installed: pip install 'optuna>=4.3'"
        )
    # Only this command needs it, and it is slow to import.
    from elmo_tasks.commands.sweep_runner import SweepRunner
    from elmo_tasks.commands.sweep_study import BEST, Sweep
    from elmo_tasks.commands.sweep_tables import print_trials

    if num_trials < 1:
        raise ConfigurationError(f"`--trials` must be at least 1, but is {num_trials}")
    check_output_folder(directory)
    config = sweep_config(Params.from_file(config_path, overrides).as_dict(quiet=True))
    space = SearchSpace.from_file(space_path)
    space.check_fits(config)
    space.check_leaves_room(parse_overrides(overrides))

    best = Path(directory) / BEST
    command = _training_command(config_path, overrides, best)
    search = Sweep(Path(directory), config, space, num_trials, storage, study_name)
    SweepRunner(search, command, include_package or []).run()
    print_trials(search)
    if not search.ranked:
        return {}
    print(f"the best settings: {best}\nto train with them, and test once:\n  {command}")
    return search.overrides_of(search.ranked[0])


def _training_command(config_path: str, overrides: str, best: Path) -> str:
    """What trains with the best settings, and the overrides of the sweep, if there are any."""
    settings = f'import "{best}"' if '"' in overrides else f"import '{best}'"
    if overrides.strip():
        settings = f"({overrides.strip()}) + {settings}"
    # In double quotes where the shell leaves those as they are: easier to read than what `shlex` makes of single ones.
    quoted = shlex.quote(settings) if set('"$`\\!') & set(settings) else f'"{settings}"'
    return f"allennlp train {shlex.quote(config_path)} -s OUT -o {quoted}"


@told_to_go_on()
def _sweep_from_args(args: argparse.Namespace) -> None:
    sweep(
        args.config,
        args.space,
        args.serialization_dir,
        num_trials=args.trials,
        storage=args.storage,
        study_name=args.study_name,
        overrides=args.overrides,
        include_package=args.include_package,
    )
