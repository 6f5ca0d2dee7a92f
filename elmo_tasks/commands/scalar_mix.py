"""
The `scalar-mix` command prints how a trained model weighs the layers of its biLM:

    allennlp scalar-mix runs/mr/model.tar.gz runs/mrpc
"""

import argparse
import json
import os
import re
import shutil
import tarfile
import tempfile
from typing import IO, Any, Dict, Iterator, List, NamedTuple, cast

import torch
from allennlp.commands.subcommand import Subcommand
from allennlp.common import Params
from allennlp.common.checks import ConfigurationError
from allennlp.common.file_utils import cached_path
from allennlp.models.archival import _WEIGHTS_NAME, get_weights_path
from allennlp.modules import TokenEmbedder

from elmo_tasks.modules.bilm_record import load_mapped

# The names of a mix's parameters, of this package and of AllenNLP.
_SCALAR = re.compile(r"(?P<mix>.*)\.(scalar_parameters\.\d+|gamma)")
_FIRST = ".scalar_parameters.0"

_EMBEDDERS = ("elmo", "elmo_token_embedder")


class MixWeights(NamedTuple):
    """
    A mix of a model.

    # Parameters

    path : `str`
        Where the model is.
    mix : `str`
        The mix within the model.
    weights : `List[float]`
        Of each layer, the token vectors first; their sum is 1.
    gamma : `float`
        Their common factor.
    """

    path: str
    mix: str
    weights: List[float]
    gamma: float


@Subcommand.register("scalar-mix")
class ScalarMixCommand(Subcommand):
    """
    Prints the weights of the layers and gamma for every scalar mix of each model, of this package's embedder and of
    AllenNLP's.

    Registered as a `Subcommand` with name "scalar-mix".
    """

    def add_subparser(self, parser: argparse._SubParsersAction) -> argparse.ArgumentParser:
        """See `Subcommand`."""
        subparser = parser.add_parser(
            self.name,
            description="Print how trained models weigh the layers of their biLM.",
            help="Print how trained models weigh the layers of their biLM.",
        )
        subparser.add_argument(
            "paths",
            metavar="PATH",
            nargs="+",
            help="a model archive, the folder of a run, or the config of a model that is not trained yet",
        )
        subparser.add_argument("--json", metavar="FILE", help="write the numbers to a JSON file too")
        subparser.set_defaults(func=_print_mixes)
        return subparser


def read_mixes(path: str) -> List[MixWeights]:
    """
    # Parameters

    path : `str`
        A model archive or its URL, the folder of a run, or a config.

    # Returns

    `List[MixWeights]`

    # Raises

    ConfigurationError
        Where there is no scalar mix.
    """
    mixes = []
    scalars = _read_scalars(path)
    for mix in sorted({name[: -len(_FIRST)] for name in scalars if name.endswith(_FIRST)}):
        num_layers = sum(name.startswith(f"{mix}.scalar_parameters.") for name in scalars)
        before_softmax = torch.cat([scalars[f"{mix}.scalar_parameters.{layer}"] for layer in range(num_layers)])
        weights = before_softmax.float().softmax(dim=0)
        mixes.append(MixWeights(path, mix, weights.tolist(), scalars[f"{mix}.gamma"].item()))
    if not mixes:
        raise ConfigurationError(f"{path} must have an ELMo embedder with a scalar mix, but has none")
    return mixes


def _print_mixes(args: argparse.Namespace) -> None:
    mixes = [mix for path in args.paths for mix in read_mixes(path)]
    num_layers = max(len(mix.weights) for mix in mixes)
    rows = [["model", "mix", *(f"layer {layer}" for layer in range(num_layers)), "gamma"]]
    for mix in mixes:
        weights = [f"{weight:.4f}" for weight in mix.weights] + [""] * (num_layers - len(mix.weights))
        rows.append([mix.path, mix.mix, *weights, f"{mix.gamma:.4f}"])
    widths = [max(map(len, column)) for column in zip(*rows)]
    for row in rows:
        names, numbers = row[:2], row[2:]
        cells = [name.ljust(width) for name, width in zip(names, widths)]
        cells += [number.rjust(width) for number, width in zip(numbers, widths[2:])]
        print("  ".join(cells))
    if args.json:
        with open(args.json, "w", encoding="utf-8") as json_file:
            json.dump([mix._asdict() for mix in mixes], json_file, indent=2)
            json_file.write("\n")


def _read_scalars(path: str) -> Dict[str, torch.Tensor]:
    """The parameters of all mixes of the model at a path; of a config, as they start."""
    local_path = str(cached_path(path))
    if os.path.isdir(local_path):
        weights_path = get_weights_path(local_path)
        if not os.path.exists(weights_path):
            raise ConfigurationError(f"{path} must hold the weights of a model, but holds none; has an epoch ended?")
        return _scalars_in(weights_path)
    if tarfile.is_tarfile(local_path):
        with tempfile.TemporaryDirectory() as folder, tarfile.open(local_path) as archive:
            weights_path = os.path.join(folder, _WEIGHTS_NAME)
            with open(weights_path, "wb") as weights_file:
                shutil.copyfileobj(cast(IO[bytes], archive.extractfile(_WEIGHTS_NAME)), weights_file)
            return _scalars_in(weights_path)
    config = Params.from_file(local_path).as_dict().get("model")
    return {
        f"{name}.{key}": value
        for name, embedder in _find_embedders(config, "model")
        for key, value in TokenEmbedder.from_params(Params(embedder)).state_dict().items()
        if _SCALAR.fullmatch(key)
    }


def _scalars_in(weights_path: str) -> Dict[str, torch.Tensor]:
    # Copies: the rest of the file is not read.
    return {name: value.clone() for name, value in load_mapped(weights_path).items() if _SCALAR.fullmatch(name)}


def _find_embedders(config: Any, name: str) -> Iterator[Any]:
    if isinstance(config, dict):
        if config.get("type") in _EMBEDDERS:
            yield name, config
        else:
            for key, value in config.items():
                yield from _find_embedders(value, f"{name}.{key}")
