"""The variants of a comparison: named overrides of one config."""

import os
import re
from pathlib import Path
from typing import Any, Dict, Iterable, List, Union

from allennlp.common import Params
from allennlp.common.checks import ConfigurationError
from allennlp.common.params import with_overrides

from elmo_tasks.commands.study import ACTIVATIONS, DESCRIPTION, has_learnt
from elmo_tasks.commands.study_config import Config


def read_variants(path: str) -> Dict[str, Dict[str, Any]]:
    """
    # Parameters

    path : `str`
        A file of json(net): an object with the overrides of each variant, as `-o` takes them, under its name.

    # Returns

    `Dict[str, Dict[str, Any]]`
        By name, numbers in names by their size: jsonnet keeps no order.

    # Raises

    `ConfigurationError`
        There is no variant, or a name is not the name of a folder, or overrides are not an object.
    """
    variants = Params.from_file(path).as_dict(quiet=True)
    if not isinstance(variants, dict) or not variants:
        raise ConfigurationError(f"{path} must be an object with one variant or more, but is {variants!r}")
    for name, overrides in variants.items():
        if not name or name.startswith(".") or set(name) & {"/", os.sep} or name == ACTIVATIONS:
            raise ConfigurationError(
                f"the variants in {path} must have names for folders beside {ACTIVATIONS!r}, but one is {name!r}"
            )
        if not isinstance(overrides, dict):
            raise ConfigurationError(
                f"the variant {name!r} in {path} must be an object of overrides, but is {overrides!r}"
            )
    return {name: variants[name] for name in sorted(variants, key=_parts)}


def variant_config(config: Config, name: str, overrides: Dict[str, Any]) -> Config:
    """
    # Returns

    `Dict[str, Any]`
        The config of a variant.

    # Raises

    `ConfigurationError`
        The overrides have no place in the config.
    """
    try:
        return with_overrides(config, overrides)
    except ValueError as error:
        raise ConfigurationError(
            f"the variant {name!r} must change places of the config that are there, up to their last parts: {error}"
        ) from error


def check_has_only(directory: Path, names: Iterable[str]) -> None:
    """
    # Raises

    `ConfigurationError`
        There is something else in the folder, which need not exist, than a variant that has learnt nothing: one whose
        name had to be mended.
    """
    others = sorted(set(os.listdir(directory)) - set(names)) if directory.is_dir() else []
    others = [name for name in others if not (directory / name / DESCRIPTION).is_file() or has_learnt(directory / name)]
    if others:
        raise ConfigurationError(
            f"{directory} must be new, empty or the folder of a comparison of these variants, but has "
            f"{', '.join(others[:5])}"
        )


def _parts(name: str) -> List[Union[str, int]]:
    # Text and numbers in turn, beginning with text, so that like is compared with like.
    return [int(part) if number % 2 else part for number, part in enumerate(re.split("([0-9]+)", name))]
