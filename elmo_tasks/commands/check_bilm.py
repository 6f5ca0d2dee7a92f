"""
The `check-bilm` command tells whether a pair of files is a biLM that ELMo can use, and else all that is wrong:

    allennlp check-bilm my_elmo
"""

import argparse
import json
import os
import sys
from typing import List

import torch
from allennlp.commands.subcommand import Subcommand

from elmo_tasks.bilm import BiLm, BiLmOptions, encode_sentences, load_weights
from elmo_tasks.bilm.options import NUM_CHARACTERS
from elmo_tasks.bilm.pretrained import OPTIONS_FILE_NAME, WEIGHT_FILE_NAME
from elmo_tasks.bilm.size import check_size
from elmo_tasks.bilm.weights import weights_by_key


@Subcommand.register("check-bilm")
class CheckBiLmCommand(Subcommand):
    """
    Prints "ok", or a line for each thing that is wrong with a biLM's files, and then ends with exit status 1.

    Registered as a `Subcommand` with name "check-bilm".
    """

    def add_subparser(self, parser: argparse._SubParsersAction) -> argparse.ArgumentParser:
        """See `Subcommand`."""
        description = "Check the options.json and weights.hdf5 of a biLM."
        subparser = parser.add_parser(self.name, description=description, help=description)
        subparser.add_argument("folder", help="holds options.json and weights.hdf5")
        subparser.set_defaults(func=_check)
        return subparser


def find_problems(folder: str) -> List[str]:
    """
    # Parameters

    folder : `str`
        Holds `options.json` and `weights.hdf5`.

    # Returns

    `List[str]`
        A sentence for each thing that keeps the files from being used; empty where all is well.
    """
    options_file, weight_file = (os.path.join(folder, name) for name in (OPTIONS_FILE_NAME, WEIGHT_FILE_NAME))
    problems = [f"{path} is missing" for path in (options_file, weight_file) if not os.path.isfile(path)]
    if problems:
        return problems
    try:
        options = BiLmOptions.from_file(options_file)
    except ValueError as error:
        return [str(error)]
    problems = _problems_of_use(options_file)
    try:
        check_size(options, weight_file)
        bilm = BiLm(options).requires_grad_(False)
        load_weights(bilm, weight_file)
    except ValueError as error:
        return problems + str(error).splitlines()
    for key, views in weights_by_key(bilm).items():
        if not all(bool(torch.isfinite(view).all()) for view in views):
            problems.append(f"`{key}` must hold finite numbers, but has others, in {weight_file}")
    return problems or _problems_of_output(bilm)


def _problems_of_use(options_file: str) -> List[str]:
    with open(options_file, encoding="utf-8") as file:
        num_characters = json.load(file)["char_cnn"]["n_characters"]
    if num_characters == NUM_CHARACTERS:
        return []
    return [
        f"`char_cnn.n_characters` must be {NUM_CHARACTERS} where a biLM is used, but is {num_characters}, as in "
        f"bilm-tf's training, in {options_file}; AllenNLP's own Elmo refuses that"
    ]


def _problems_of_output(bilm: BiLm) -> List[str]:
    layers = bilm(encode_sentences([["One", "sentence", "."]])).activations
    return [
        f"layer {number} must give finite numbers, but does not: the weights are too large"
        for number, layer in enumerate(layers)
        if not bool(torch.isfinite(layer).all())
    ]


def _check(args: argparse.Namespace) -> None:
    problems = find_problems(args.folder)
    print("\n".join(problems) if problems else "ok")
    if problems:
        sys.exit(1)
