"""
The `report` command makes one HTML page about a run, or about several side by side:

    allennlp report runs/mr
    allennlp report runs/mr runs/mr_fine_tuned -o comparison.html

It opens from disk, without a network.
"""

import argparse
import os
from datetime import datetime
from typing import List, Optional

from allennlp.commands.subcommand import Subcommand
from allennlp.common import Params
from allennlp.common.checks import ConfigurationError, check_for_gpu
from allennlp.models.archival import CONFIG_NAME

from elmo_tasks.commands.output_paths import check_output_file
from elmo_tasks.commands.report_config import differences, shipped_config
from elmo_tasks.commands.report_page import ConfigTable, RunReport, render
from elmo_tasks.commands.report_predictions import NoPredictionsError, predict
from elmo_tasks.commands.report_runs import TrainedRun, read_runs
from elmo_tasks.common.files import written_whole
from elmo_tasks.common.version import VERSION

FILE_NAME = "report.html"
DESCRIPTION = """\
Make one HTML page about one or several runs: differences of the configs, learning curves, layer mix, confusion matrix,
calibration, the errors made with most confidence and the words that made them, time and machine. What a run cannot show
is left out, with the reason.
"""


@Subcommand.register("report")
class ReportCommand(Subcommand):
    """
    Makes a page about runs (`write_report`).

    Registered as a `Subcommand` with name "report".
    """

    def add_subparser(self, parser: argparse._SubParsersAction) -> argparse.ArgumentParser:
        """See `Subcommand`."""
        subparser = parser.add_parser(self.name, description=DESCRIPTION, help="Make an HTML page about trained runs.")
        subparser.add_argument("runs", metavar="RUN", nargs="+", help="the folder of a run of `allennlp train`")
        subparser.add_argument(
            "-o", "--output", metavar="FILE", help=f"default: {FILE_NAME} in the folder of the (first) run"
        )
        subparser.add_argument(
            "--data", metavar="PATH", help="labelled data to predict. By default the test data of each run's config"
        )
        subparser.add_argument(
            "--base",
            metavar="CONFIG",
            help="the config, or the run, that configs are compared with. By default the first of several runs; for "
            "one run, the config that this package ships for its data set",
        )
        subparser.add_argument("--errors", metavar="N", type=int, default=100, help="how many errors to show")
        subparser.add_argument("--cuda-device", type=int, default=-1, help="a GPU, or -1 for the CPU")
        subparser.set_defaults(func=_report_from_args)
        return subparser


def write_report(
    paths: List[str],
    output: Optional[str] = None,
    data: Optional[str] = None,
    base: Optional[str] = None,
    num_errors: int = 100,
    cuda_device: int = -1,
) -> str:
    """
    # Parameters

    paths : `List[str]`
        The folders of runs; they need not be finished.
    output : `Optional[str]`, optional (default = `None`)
        The file to write; `None`: `report.html` in the first folder.
    data : `Optional[str]`, optional (default = `None`)
        A path for the readers of all runs; `None`: the test data that each config names.
    base : `Optional[str]`, optional (default = `None`)
        A config, or the folder of a run. `None`: the first of several runs; for one run, the config that this package
        ships for its data set, if it is at hand; else nothing, and the config is shown whole.
    num_errors : `int`, optional (default = `100`)
        How many errors to show of each run. Their words take ten passes each through the model.
    cuda_device : `int`, optional (default = `-1`)
        A GPU, or -1 for the CPU.

    # Returns

    `str`
        The path of the page.

    # Raises

    `ConfigurationError`
        A path is not that of a run, the page cannot be written, or the data cannot be read.
    """
    if num_errors < 0:
        raise ConfigurationError(f"`--errors` must be at least 0, but is {num_errors}")
    check_for_gpu(cuda_device)
    runs = read_runs(paths)
    output = output or os.path.join(paths[0], FILE_NAME)
    check_output_file(output, "--output")
    config = _config_table(runs, base)
    reports = [_run_report(run, data, num_errors, cuda_device) for run in runs]
    made = f"Made {datetime.now():%Y-%m-%d %H:%M} by elmo_tasks {VERSION}."
    page = render(reports, config, made)
    with written_whole(output) as partial, open(partial, "w", encoding="utf-8") as page_file:
        page_file.write(page)
    return output


def _report_from_args(args: argparse.Namespace) -> None:
    output = write_report(args.runs, args.output, args.data, args.base, args.errors, args.cuda_device)
    print(f"The report is {output}")


def _config_table(runs: List[TrainedRun], base: Optional[str]) -> ConfigTable:
    if base is None and len(runs) > 1:
        first, *others = runs
        settings = differences(first.config, [run.config for run in others])
        return ConfigTable(first.name, [run.name for run in others], settings)
    names, configs = [run.name for run in runs], [run.config for run in runs]
    path = base or shipped_config(runs[0].config)
    if path is None:
        return ConfigTable(None, names, differences({}, configs))
    if os.path.isdir(path):
        path = os.path.join(path, CONFIG_NAME)
    settings = differences(Params.from_file(path).as_dict(quiet=True), configs)
    return ConfigTable(base or f"the shipped {os.path.basename(path)}", names, settings)


def _run_report(run: TrainedRun, data: Optional[str], num_errors: int, cuda_device: int) -> RunReport:
    try:
        return RunReport(run, predict(run, data, num_errors, cuda_device))
    except NoPredictionsError as error:
        return RunReport(run, str(error))
