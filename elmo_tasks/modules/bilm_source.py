"""Where an embedder's biLM comes from: files, a published name, random numbers, or the weights file it was saved in."""

import os
from typing import Any, Dict, NamedTuple, Optional, Tuple, Union, cast

import torch
from allennlp.common.checks import ConfigurationError
from allennlp.common.file_utils import cached_path
from allennlp.models.archival import _WEIGHTS_NAME
from allennlp.models.model import _DEFAULT_WEIGHTS

from elmo_tasks.bilm import BiLm, BiLmOptions, WordOptions, load_weights, resolve
from elmo_tasks.bilm.size import check_size
from elmo_tasks.modules.bilm_record import RecordedBiLm, find_recorded_bilm
from elmo_tasks.modules.language_model_source import bilm_of_language_model, is_language_model

# What AllenNLP's own embedder takes where the config names nothing.
DEFAULT_NAME = "original"

Options = Union[BiLmOptions, WordOptions]
Weights = Union[str, Dict[str, torch.Tensor]]


class BiLmSource(NamedTuple):
    """
    The arguments of an embedder that name its biLM.

    # Parameters

    pretrained : `Optional[str]`, optional (default = `None`)
        A published or bundled name, a folder, or the archive or run of a language model.
    options_file : `Optional[str]`, optional (default = `None`)
    weight_file : `Optional[str]`, optional (default = `None`)
        Paths or URLs, both or none.
    options : `Optional[Dict[str, Any]]`, optional (default = `None`)
        What an options file holds, in the config itself.
    pretrained_file : `Optional[str]`, optional (default = `None`)
        Path or URL of the weights that belong to `options`. AllenNLP drops this key when it loads an archive.
    untrained_seed : `Optional[int]`, optional (default = `None`)
        Of random weights, in place of those that the other arguments name.
    """

    pretrained: Optional[str] = None
    options_file: Optional[str] = None
    weight_file: Optional[str] = None
    options: Optional[Dict[str, Any]] = None
    pretrained_file: Optional[str] = None
    untrained_seed: Optional[int] = None

    def names(self) -> Dict[str, Any]:
        """What identifies the biLM in the config of an archive, too."""
        return {
            name: value for name, value in self._asdict().items() if value is not None and name != "pretrained_file"
        }

    def check(self) -> None:
        """
        # Raises

        ConfigurationError
            Where the arguments name no biLM, or more than one.
        """
        if (self.options_file is None) != (self.weight_file is None):
            raise ConfigurationError(
                "`options_file` and `weight_file` must be given together, but are "
                f"{self.options_file!r} and {self.weight_file!r}"
            )
        if self.pretrained_file is not None and self.options is None:
            raise ConfigurationError(
                "`options` must be given with `pretrained_file`; two files are `options_file` and `weight_file`"
            )
        given = [name for name in ("pretrained", "options_file", "options") if getattr(self, name) is not None]
        if len(given) > 1:
            raise ConfigurationError(f"one of {given} must name the biLM, but all are given")

    def find(self) -> Tuple[Options, Optional[Weights]]:
        """
        # Returns

        `Tuple[Options, Optional[Weights]]`
            The options, and the weights: the local path of a file, those of a language model by their names, or `None`
            where they are random.

        # Raises

        ValueError, OSError
            Where a file is not there or cannot be had.
        """
        if self.pretrained is not None and is_language_model(self.pretrained):
            bilm = bilm_of_language_model(self.pretrained)
            return bilm.options, None if self.untrained_seed is not None else bilm.state_dict()
        weight_file: Optional[str]
        if self.options is not None:
            if self.pretrained_file is None and self.untrained_seed is None:
                raise ValueError("`pretrained_file` must name the weights that belong to `options`")
            options, weight_file = BiLmOptions.from_dict(self.options), self.pretrained_file
        elif self.options_file is not None:
            options, weight_file = BiLmOptions.from_file(str(cached_path(self.options_file))), self.weight_file
        else:
            options_file, weight_file = resolve(self.pretrained or DEFAULT_NAME)
            options = BiLmOptions.from_file(str(cached_path(options_file)))
        return options, None if self.untrained_seed is not None else str(cached_path(cast(str, weight_file)))


def build_bilm(source: BiLmSource, precision: str, serialization_dir: Optional[str]) -> BiLm:
    """
    # Parameters

    source : `BiLmSource`
    precision : `str`
        "float32" or "bfloat16".
    serialization_dir : `Optional[str]`
        Folder that the model is trained in or loaded from. The biLM of an archive is in its weights file, and
        nothing else is looked at; where a run is loaded before it is an archive, its best weights stand in for
        files that are gone.

    # Returns

    `BiLm`
        With its weights: those of the files, of the archive, or random ones.

    # Raises

    ConfigurationError
        Where there is no biLM of that name, or its files do not fit.
    """
    source.check()
    archived = _find(serialization_dir, _WEIGHTS_NAME, source)
    if archived is not None and archived.weights:
        return _bilm_in(archived, precision)
    try:
        options, weights = source.find()
    except (OSError, ValueError) as error:
        best = _find(serialization_dir, _DEFAULT_WEIGHTS, source)
        if best is None or not best.weights:
            raise ConfigurationError(f"the biLM cannot be had: {error}") from error
        return _bilm_in(best, precision)
    if weights is None:
        # Random numbers of their own: the same weights in every run, and so the same entries of a cache.
        with torch.random.fork_rng(devices=[]):
            # Not `torch.manual_seed`, which reaches the generators of GPUs too.
            torch.default_generator.manual_seed(cast(int, source.untrained_seed))
            return BiLm(options, precision)
    try:
        if isinstance(weights, str):
            check_size(options, weights)
            bilm = BiLm(options, precision)
            load_weights(bilm, weights)
        else:
            bilm = BiLm(options, precision)
            bilm.load_state_dict(weights)
    except ValueError as error:
        raise ConfigurationError(str(error)) from error
    return bilm


def _find(serialization_dir: Optional[str], file_name: str, source: BiLmSource) -> Optional[RecordedBiLm]:
    if serialization_dir is None:
        return None
    path = os.path.join(serialization_dir, file_name)
    recorded = find_recorded_bilm(path, source.names())
    if recorded is not None and recorded.weights:
        try:
            check_size(_options_of(recorded), path)
        except ValueError as error:
            raise ConfigurationError(str(error)) from error
    return recorded


def _options_of(recorded: RecordedBiLm) -> Options:
    options = recorded.record.options
    return (WordOptions if "words" in options else BiLmOptions).from_dict(options)


def _bilm_in(recorded: RecordedBiLm, precision: str) -> BiLm:
    bilm = BiLm(_options_of(recorded), precision)
    bilm.load_state_dict(recorded.weights)
    return bilm
