"""
The `compare` command trains variants of a config with several seeds, and says how they differ:

    allennlp compare training_configs/mr.jsonnet training_configs/comparisons/layers.libsonnet -s runs/mr_layers
"""

import argparse
import contextlib
from pathlib import Path
from typing import Dict, List, Optional

from allennlp.commands.subcommand import Subcommand
from allennlp.common import Params
from allennlp.common.checks import ConfigurationError

from elmo_tasks.commands.comparison import FILE_NAME, Comparison, comparison_of, write_comparison
from elmo_tasks.commands.console_tables import print_tables
from elmo_tasks.commands.cross_validate import add_study_options, check_counts
from elmo_tasks.commands.output_paths import check_output_folder
from elmo_tasks.commands.results_table import comparison_rows, results_table
from elmo_tasks.commands.study import ACTIVATIONS, Study
from elmo_tasks.commands.study_config import study_config
from elmo_tasks.commands.study_results import Results, check_comparable, study_results, write_results
from elmo_tasks.commands.study_runner import check_can_train, train_runs
from elmo_tasks.commands.variants import check_has_only, read_variants, variant_config
from elmo_tasks.common.files import PARTIAL_SUFFIX, written_whole
from elmo_tasks.common.user_errors import told_to_go_on

MARKDOWN = "comparison.md"
PICTURE = "comparison.png"

DESCRIPTION = """\
Train variants of a config as `allennlp cross-validate` trains one, with the same seeds and on the same folds, and give
their test figures side by side, with the paired difference of each to a baseline. Interrupted, the same command goes
on; what is finished is in comparison.json, comparison.md and comparison.png all the time. More --seeds, and more
variants, may be asked for later.
"""


@Subcommand.register("compare")
class CompareCommand(Subcommand):
    """
    Trains variants of a config, and gives their figures side by side (`compare_variants`).

    Registered as a `Subcommand` with name "compare".
    """

    def add_subparser(self, parser: argparse._SubParsersAction) -> argparse.ArgumentParser:
        """See `Subcommand`."""
        subparser = parser.add_parser(
            self.name, description=DESCRIPTION, help="Train variants of a config: their figures and differences."
        )
        subparser.add_argument("config", metavar="CONFIG", help="a config of `allennlp train`")
        subparser.add_argument(
            "variants",
            metavar="VARIANTS",
            help="a file of json(net): an object with changes to the config, as -o takes them, under a name for each "
            "variant; see training_configs/comparisons",
        )
        subparser.add_argument(
            "-s",
            "--serialization-dir",
            metavar="DIR",
            required=True,
            help="folder of the comparison: comparison.json, .md and .png, and a study of `allennlp cross-validate` "
            "for each variant",
        )
        subparser.add_argument(
            "--baseline",
            metavar="NAME",
            help="the variant that the others are compared to; by default the first by name",
        )
        add_study_options(subparser, num_seeds=5)
        subparser.set_defaults(func=_compare_from_args)
        return subparser


def compare_variants(
    config_path: str,
    variants_path: str,
    directory: str,
    num_folds: int = 0,
    num_seeds: int = 5,
    data: Optional[str] = None,
    overrides: str = "",
    num_workers: int = 1,
    baseline: Optional[str] = None,
    include_package: Optional[List[str]] = None,
) -> Comparison:
    """
    Trains what is not finished yet of a comparison, the baseline first, and writes and prints its results.

    # Parameters

    config_path : `str`
        A config of `allennlp train`.
    variants_path : `str`
        A file of json(net). See `read_variants`.
    directory : `str`
        The folder of the comparison. It gets `comparison.json` (see `comparison_of`), the table as `comparison.md`, a
        picture, and a study for each variant, as `cross_validate` makes it. Embedders whose activation cache names no
        folder share `activations/`, which may be deleted when the comparison is finished.
    num_folds, num_seeds, data, overrides, num_workers, include_package
        See `cross_validate`. `overrides` are those of all variants, which come after them.
    baseline : `str`, optional (default = `None`)
        `None`: the first variant by name.

    # Returns

    `Dict[str, Any]`
        What is in `comparison.json`.

    # Raises

    `ConfigurationError`
        Before anything is trained: an argument, a variant, or what is in the folder does not serve.
    """
    check_counts(num_seeds, num_workers)
    check_output_folder(directory)
    variants = read_variants(variants_path)
    names = list(variants)
    baseline = names[0] if baseline is None else baseline
    if baseline not in names:
        raise ConfigurationError(f"`--baseline` must be one of {', '.join(names)}, but is {baseline!r}")
    folder = Path(directory)
    config = Params.from_file(config_path, overrides).as_dict(quiet=True)
    studies = {
        name: Study(
            folder / name,
            study_config(variant_config(config, name, variants[name]), num_folds, data),
            num_folds,
            num_seeds,
            folder / ACTIVATIONS,
        )
        for name in sorted(names, key=lambda name: name != baseline)
    }
    for study in studies.values():
        base = studies[baseline]
        check_comparable(study, {"num_folds": base.num_folds, "seeds": base.seeds, "config": base.config})
        check_can_train(study)
    files = (FILE_NAME, MARKDOWN, PICTURE)
    check_has_only(folder, [*names, ACTIVATIONS, *files, *(file + PARTIAL_SUFFIX for file in files)])

    results: Dict[str, Results] = {}
    with contextlib.ExitStack() as stack:
        # All are looked at before the first is trained.
        for study in studies.values():
            stack.enter_context(study.opened())
        for number, (name, study) in enumerate(studies.items(), start=1):
            print(f"{name} ({number} of {len(studies)})", flush=True)
            train_runs(study, num_workers, include_package or [])
            results[name] = study_results(study)
            write_results(results[name], study.directory)
            comparison = comparison_of(results, names, baseline)
            _write(comparison, folder)
    print_tables(results_table(comparison_rows(comparison)).for_console())
    print(f"all figures: {folder / FILE_NAME}, {MARKDOWN}, {PICTURE}")
    return comparison


def _write(comparison: Comparison, folder: Path) -> None:
    write_comparison(comparison, folder)
    # Matplotlib takes a second to import, which `allennlp train` need not wait for.
    from elmo_tasks.commands.comparison_picture import draw_comparison

    draw_comparison(comparison, folder / PICTURE)
    with written_whole(folder / MARKDOWN) as partial, open(partial, "w", encoding="utf-8") as markdown_file:
        markdown_file.write(results_table(comparison_rows(comparison)).for_markdown())


@told_to_go_on()
def _compare_from_args(args: argparse.Namespace) -> None:
    compare_variants(
        args.config,
        args.variants,
        args.serialization_dir,
        num_folds=args.folds,
        num_seeds=args.seeds,
        data=args.data,
        overrides=args.overrides,
        num_workers=args.workers,
        baseline=args.baseline,
        include_package=args.include_package,
    )
