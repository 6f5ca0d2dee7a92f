"""
The `results` command puts finished runs, studies and comparisons into one table:

    allennlp results runs/mr runs/mr_seeds runs/mrpc_seeds --metrics test_accuracy test_f1 --markdown results.md
"""

import argparse
from pathlib import Path
from typing import List, Optional, Sequence

from allennlp.commands.subcommand import Subcommand

from elmo_tasks.commands.console_tables import print_tables
from elmo_tasks.commands.output_paths import check_output_file
from elmo_tasks.commands.results_table import ResultsTable, read_rows, results_table
from elmo_tasks.common.files import written_whole


@Subcommand.register("results")
class ResultsCommand(Subcommand):
    """
    Prints one table of finished runs, studies and comparisons (`tabulate`).

    Registered as a `Subcommand` with name "results".
    """

    def add_subparser(self, parser: argparse._SubParsersAction) -> argparse.ArgumentParser:
        """See `Subcommand`."""
        description = "Put finished folders of `train`, `cross-validate` and `compare` into one table."
        subparser = parser.add_parser(self.name, description=description, help=description)
        subparser.add_argument("studies", metavar="DIR", nargs="+", help="a folder of one of these commands")
        subparser.add_argument(
            "--metrics",
            metavar="NAME",
            nargs="+",
            default=[],
            help="such as test_accuracy test_f1; by default the test figure of what selected the epoch",
        )
        subparser.add_argument("--markdown", metavar="FILE", help="write the table there, too")
        subparser.set_defaults(func=_results_from_args)
        return subparser


def tabulate(directories: List[str], metrics: Sequence[str] = (), markdown: Optional[str] = None) -> ResultsTable:
    """
    # Parameters

    directories : `List[str]`
        Folders of `allennlp train`, `allennlp cross-validate` or `allennlp compare`, with something finished in them.
    metrics : `Sequence[str]`, optional (default = `()`)
        See `results_table`.
    markdown : `str`, optional (default = `None`)
        A file that gets the table as Markdown.

    # Returns

    `ResultsTable`
        A row for each run, study and variant, in the order of the folders. It is printed, too.

    # Raises

    `ConfigurationError`
        A folder has nothing finished, no study has a metric, or the file cannot be written.
    """
    if markdown is not None:
        check_output_file(markdown, "--markdown")
    table = results_table([row for directory in directories for row in read_rows(Path(directory))], metrics)
    if markdown is not None:
        with written_whole(markdown) as partial, open(partial, "w", encoding="utf-8") as markdown_file:
            markdown_file.write(table.for_markdown())
    print_tables(table.for_console())
    return table


def _results_from_args(args: argparse.Namespace) -> None:
    tabulate(args.studies, args.metrics, args.markdown)
