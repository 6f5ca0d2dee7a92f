"""
The `scalar-mix` command shows how trained models weigh the layers of their biLM:

    allennlp scalar-mix runs/mr/model.tar.gz runs/mrpc --picture mix.png
"""

import argparse
import json
from typing import Any, Dict, List

from allennlp.commands.subcommand import Subcommand
from allennlp.common.checks import ConfigurationError

from elmo_tasks.commands.mix_tables import print_mixes
from elmo_tasks.commands.mix_weights import MixWeights, grouped, read_mixes, spread
from elmo_tasks.commands.output_paths import check_output_file
from elmo_tasks.commands.sentence_file import SentenceFile
from elmo_tasks.common.files import written_whole


@Subcommand.register("scalar-mix")
class ScalarMixCommand(Subcommand):
    """
    Shows the weights of the layers and gamma for every mix of each model, of this package's embedder and of
    AllenNLP's, and over several models their mean and standard deviation.

    Registered as a `Subcommand` with name "scalar-mix".
    """

    def add_subparser(self, parser: argparse._SubParsersAction) -> argparse.ArgumentParser:
        """See `Subcommand`."""
        description = "Show how trained models weigh the layers of their biLM."
        subparser = parser.add_parser(self.name, description=description, help=description)
        subparser.add_argument(
            "paths",
            metavar="PATH",
            nargs="+",
            help="a model archive, the folder of a run, or the config of a model that is not trained yet",
        )
        subparser.add_argument(
            "--sentences",
            metavar="FILE",
            help="for token-dependent mixes: one sentence a line, tokens separated by blanks, or JSON lines as for "
            "`allennlp elmo`",
        )
        subparser.add_argument("--num-tokens", type=int, default=10, help="how many tokens that differ most are shown")
        subparser.add_argument("--json", metavar="FILE", help="write all numbers to a JSON file")
        subparser.add_argument("--picture", metavar="FILE", help="draw them, in a .png, .svg or .pdf file")
        subparser.set_defaults(func=_show_mixes)
        return subparser


def _show_mixes(args: argparse.Namespace) -> None:
    if args.num_tokens < 0:
        raise ConfigurationError(f"`--num-tokens` must be at least 0, but is {args.num_tokens}")
    if args.picture:
        # Matplotlib takes a second to import, which `allennlp train` need not wait for.
        from elmo_tasks.commands.mix_picture import check_picture, draw_mixes

        check_picture(args.picture)
        check_output_file(args.picture, "--picture")
    if args.json:
        check_output_file(args.json, "--json")
    sentences = SentenceFile(args.sentences) if args.sentences else None
    if sentences is not None and not sentences.num_tokens:
        raise ConfigurationError(f"`--sentences` must have a sentence or more, but {args.sentences} has none")
    mixes = [mix for path in args.paths for mix in read_mixes(path, sentences)]
    print_mixes(mixes, args.num_tokens)
    if args.json:
        with written_whole(args.json) as partial, open(partial, "w", encoding="utf-8") as json_file:
            json.dump(_as_json(mixes), json_file, indent=2)
            json_file.write("\n")
    if args.picture:
        draw_mixes(mixes, args.picture)


def _as_json(mixes: List[MixWeights]) -> Dict[str, Any]:
    """Each mix, and what several models have in common."""
    rows = []
    for mix in mixes:
        row = {"path": mix.path, "mix": mix.mix, "weights": mix.weights, "gamma": mix.gamma}
        if mix.tokens is not None:
            row["tokens"] = [token._asdict() for token in mix.tokens]
        rows.append(row)
    spreads = []
    for group in grouped(mixes):
        if len(group) > 1:
            mix_name, num_models, mean, standard_deviation = spread(group)
            statistics = {"mean": mean, "standard_deviation": standard_deviation}
            named = {name: {"weights": row[:-1], "gamma": row[-1]} for name, row in statistics.items()}
            spreads.append({"mix": mix_name, "num_models": num_models, **named})
    return {"mixes": rows, "over_models": spreads}
