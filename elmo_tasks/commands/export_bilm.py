"""
The `export-bilm` command writes a pretrained biLM as the two official files:

    allennlp export-bilm runs/pretrain/model.tar.gz my_elmo
"""

import argparse
import os

from allennlp.commands.subcommand import Subcommand
from allennlp.common.checks import ConfigurationError
from allennlp.models.archival import load_archive

from elmo_tasks.bilm.weights import DTYPES
from elmo_tasks.commands.output_paths import check_output_folder
from elmo_tasks.training.bilm_export import export_bilm


@Subcommand.register("export-bilm")
class ExportBiLmCommand(Subcommand):
    """
    Writes `options.json` and `weights.hdf5` out of a language model.

    Registered as a `Subcommand` with name "export-bilm".
    """

    def add_subparser(self, parser: argparse._SubParsersAction) -> argparse.ArgumentParser:
        """See `Subcommand`."""
        description = "Write a pretrained biLM as options.json and weights.hdf5, for any ELMo."
        subparser = parser.add_parser(self.name, description=description, help=description)
        subparser.add_argument("archive", help="the archive of a bilm_language_model, or the folder of its run")
        subparser.add_argument("folder", help="where to write the two files")
        subparser.add_argument("--dtype", choices=DTYPES, default=DTYPES[0], help="float16 halves the file")
        subparser.add_argument(
            "--weights-file",
            help="other weights than the best ones, such as a checkpoint in the folder of a run (model_state_….th)",
        )
        subparser.add_argument("-f", "--force", action="store_true", help="replace files that are there already")
        subparser.set_defaults(func=_export)
        return subparser


def _export(args: argparse.Namespace) -> None:
    check_output_folder(args.folder)
    if os.path.isdir(args.folder) and os.listdir(args.folder) and not args.force:
        raise ConfigurationError(f"the folder {args.folder} must be empty, but is not; choose another or add --force")
    export_bilm(load_archive(args.archive, weights_file=args.weights_file).model, args.folder, args.dtype)
    print(f"options.json and weights.hdf5 ({args.dtype}) are in {args.folder}")
