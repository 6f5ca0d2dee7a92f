"""
The `cross-validate` command trains one config on every fold with several seeds, and gives test figures with their
spread:

    allennlp cross-validate training_configs/mr.jsonnet -s runs/mr_folds --folds 10 --seeds 3

Without `--folds` the parts are those of the config, and only the seeds differ:

    allennlp cross-validate training_configs/mrpc.jsonnet -s runs/mrpc_seeds --seeds 5
"""

import argparse
from pathlib import Path
from typing import List, Optional

from allennlp.commands.subcommand import Subcommand
from allennlp.common import Params
from allennlp.common.checks import ConfigurationError

from elmo_tasks.commands.output_paths import check_output_folder
from elmo_tasks.commands.study import Study
from elmo_tasks.commands.study_config import study_config
from elmo_tasks.commands.study_results import (
    Results,
    check_comparable,
    compare,
    read_results,
    study_results,
    write_results,
)
from elmo_tasks.commands.study_runner import check_can_train, train_runs
from elmo_tasks.commands.study_tables import print_results
from elmo_tasks.common.user_errors import told_to_go_on

DESCRIPTION = """\
Train a config on each fold of its data with several seeds, and give test figures with their spread. Each run selects
its epoch on its dev part alone, and is tested once. Interrupted, the same command goes on: finished runs stay, one
that was under way continues from its checkpoint. More --seeds may be asked for later.
"""


@Subcommand.register("cross-validate")
class CrossValidateCommand(Subcommand):
    """
    Trains, tests and summarizes a config over folds and seeds (`cross_validate`).

    Registered as a `Subcommand` with name "cross-validate".
    """

    def add_subparser(self, parser: argparse._SubParsersAction) -> argparse.ArgumentParser:
        """See `Subcommand`."""
        subparser = parser.add_parser(
            self.name, description=DESCRIPTION, help="Train over folds and seeds: test figures with their spread."
        )
        subparser.add_argument("config", metavar="CONFIG", help="a config of `allennlp train`")
        subparser.add_argument(
            "-s",
            "--serialization-dir",
            metavar="DIR",
            required=True,
            help="folder of the study: cross_validation.json, and a folder for each run, fold_0/seed_0 and so on",
        )
        add_study_options(subparser, num_seeds=1)
        subparser.add_argument(
            "--compare", metavar="OTHER_DIR", help="a finished study on the same folds, to give the difference to"
        )
        subparser.set_defaults(func=_cross_validate_from_args)
        return subparser


def add_study_options(subparser: argparse.ArgumentParser, num_seeds: int) -> None:
    """
    # Parameters

    subparser : `argparse.ArgumentParser`
        Gets the options that say how a config is studied.
    num_seeds : `int`
        The default of `--seeds`.
    """
    subparser.add_argument(
        "--folds",
        metavar="K",
        type=int,
        default=0,
        help="the number of folds; the reader must have the options `fold` and `num_folds`. 0: the config's own parts",
    )
    subparser.add_argument("--seeds", metavar="N", type=int, default=num_seeds, help="train with the seeds 0 to N-1")
    subparser.add_argument(
        "--data",
        metavar="PATH",
        help="with --folds: one path to the whole data set, such as the folder of rt-polarity.pos and .neg. By "
        "default the path of the config's data, or the folder of its files",
    )
    subparser.add_argument(
        "-o", "--overrides", default="", help="json(net) of changes to the config, as for `allennlp train`"
    )
    subparser.add_argument(
        "--workers", metavar="N", type=int, default=1, help="train so many runs at once, each in a process"
    )


def cross_validate(
    config_path: str,
    directory: str,
    num_folds: int = 0,
    num_seeds: int = 1,
    data: Optional[str] = None,
    overrides: str = "",
    num_workers: int = 1,
    other_directory: Optional[str] = None,
    include_package: Optional[List[str]] = None,
) -> Results:
    """
    Trains what is not finished yet of a study, and writes and prints its results.

    # Parameters

    config_path : `str`
        A config of `allennlp train`.
    directory : `str`
        The folder of the study. It gets `cross_validation.json` (see `study_results`), `study.json`, which tells
        another config from the one that it was begun with, and `fold_0/seed_0/` and so on, or `seed_0/` without folds,
        each as `allennlp train` leaves it but for the checkpoints. Embedders whose activation cache names no folder
        share `activations/`, which may be deleted when the study is finished.
    num_folds : `int`, optional (default = `0`)
        0: the parts are those of the config, which must name data to validate on and other data to test on.
    num_seeds : `int`, optional (default = `1`)
        Python, numpy and torch all begin with the seed. It does not change the folds.
    data : `str`, optional (default = `None`)
        One path to the whole data set, for folds. See `fold_study_config`.
    overrides : `str`, optional (default = `""`)
        JSON or jsonnet, as for `allennlp train`.
    num_workers : `int`, optional (default = `1`)
        How many runs are trained at once.
    other_directory : `str`, optional (default = `None`)
        The folder of a finished study. The results then hold the `comparison` with it.
    include_package : `List[str]`, optional (default = `None`)
        Packages that workers import.

    # Returns

    `Dict[str, Any]`
        What is in `cross_validation.json`.

    # Raises

    `ConfigurationError`
        Before anything is trained: an argument, the config, or what is in a folder does not serve.
    """
    check_counts(num_seeds, num_workers)
    check_output_folder(directory)
    other = read_results(Path(other_directory)) if other_directory is not None else None
    config = Params.from_file(config_path, overrides).as_dict(quiet=True)
    study = Study(Path(directory), study_config(config, num_folds, data), num_folds, num_seeds)
    if other is not None:
        check_comparable(study, other)
    check_can_train(study)
    with study.opened():
        train_runs(study, num_workers, include_package or [])
        results = study_results(study)
        if other is not None:
            results["comparison"] = {"other": other_directory, "metrics": compare(results, other)}
        path = write_results(results, study.directory)
    print_results(results)
    print(f"all figures: {path}")
    return results


def check_counts(num_seeds: int, num_workers: int) -> None:
    """
    # Raises

    `ConfigurationError`
        There is nothing to train, or nobody to do it.
    """
    for option, value in (("--seeds", num_seeds), ("--workers", num_workers)):
        if value < 1:
            raise ConfigurationError(f"`{option}` must be at least 1, but is {value}")


@told_to_go_on()
def _cross_validate_from_args(args: argparse.Namespace) -> None:
    cross_validate(
        args.config,
        args.serialization_dir,
        num_folds=args.folds,
        num_seeds=args.seeds,
        data=args.data,
        overrides=args.overrides,
        num_workers=args.workers,
        other_directory=args.compare,
        include_package=args.include_package,
    )
