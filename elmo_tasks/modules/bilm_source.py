"""Where an embedder's biLM comes from: files, a published name, or the weights file it was saved in."""

import os
from typing import Any, Dict, NamedTuple, Optional, Tuple

from allennlp.common.checks import ConfigurationError
from allennlp.common.file_utils import cached_path
from allennlp.models.archival import _WEIGHTS_NAME
from allennlp.models.model import _DEFAULT_WEIGHTS

from elmo_tasks.bilm import BiLm, BiLmOptions, load_weights, resolve
from elmo_tasks.modules.bilm_record import RecordedBiLm, find_recorded_bilm

# What AllenNLP's own embedder takes where the config names nothing.
DEFAULT_NAME = "original"


class BiLmSource(NamedTuple):
    """
    The arguments of an embedder that name its biLM.

    # Parameters

    pretrained : `Optional[str]`, optional (default = `None`)
        A published or bundled name, or a folder.
    options_file : `Optional[str]`, optional (default = `None`)
    weight_file : `Optional[str]`, optional (default = `None`)
        Paths or URLs, both or none.
    options : `Optional[Dict[str, Any]]`, optional (default = `None`)
        What an options file holds, in the config itself.
    pretrained_file : `Optional[str]`, optional (default = `None`)
        Path or URL of the weights that belong to `options`. AllenNLP drops this key when it loads an archive.
    """

    pretrained: Optional[str] = None
    options_file: Optional[str] = None
    weight_file: Optional[str] = None
    options: Optional[Dict[str, Any]] = None
    pretrained_file: Optional[str] = None

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

    def find(self) -> Tuple[BiLmOptions, str]:
        """
        # Returns

        `Tuple[BiLmOptions, str]`
            The options, and the local path of the weights.

        # Raises

        ValueError, OSError
            Where a file is not there or cannot be had.
        """
        if self.options is not None:
            if self.pretrained_file is None:
                raise ValueError("`pretrained_file` must name the weights that belong to `options`")
            return BiLmOptions.from_dict(self.options), str(cached_path(self.pretrained_file))
        if self.options_file is not None and self.weight_file is not None:
            options_file, weight_file = self.options_file, self.weight_file
        else:
            options_file, weight_file = resolve(self.pretrained or DEFAULT_NAME)
        return BiLmOptions.from_file(str(cached_path(options_file))), str(cached_path(weight_file))


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
        With its weights.

    # Raises

    ConfigurationError
        Where there is no biLM of that name, or its files do not fit.
    """
    source.check()
    archived = _find(serialization_dir, _WEIGHTS_NAME, source)
    if archived is not None and archived.weights:
        return _bilm_in(archived, precision)
    try:
        options, weights_path = source.find()
    except (OSError, ValueError) as error:
        best = _find(serialization_dir, _DEFAULT_WEIGHTS, source)
        if best is None or not best.weights:
            raise ConfigurationError(f"the biLM cannot be had: {error}") from error
        return _bilm_in(best, precision)
    bilm = BiLm(options, precision)
    try:
        load_weights(bilm, weights_path)
    except ValueError as error:
        raise ConfigurationError(str(error)) from error
    return bilm


def _find(serialization_dir: Optional[str], file_name: str, source: BiLmSource) -> Optional[RecordedBiLm]:
    if serialization_dir is None:
        return None
    return find_recorded_bilm(os.path.join(serialization_dir, file_name), source.names())


def _bilm_in(recorded: RecordedBiLm, precision: str) -> BiLm:
    bilm = BiLm(BiLmOptions.from_dict(recorded.record.options), precision)
    bilm.load_state_dict(recorded.weights)
    return bilm
