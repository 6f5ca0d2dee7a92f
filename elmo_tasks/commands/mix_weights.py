"""The weights of layer mixes, read from where a model is: archive, run or config."""

import os
import re
import statistics
import tarfile
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Tuple, cast

import torch
from allennlp.common import Params
from allennlp.common.checks import ConfigurationError
from allennlp.common.file_utils import cached_path
from allennlp.models.archival import extracted_archive, get_weights_path, load_archive
from allennlp.modules import TokenEmbedder

from elmo_tasks.commands.mix_tokens import TokenWeights, weights_of_tokens
from elmo_tasks.commands.sentence_file import SentenceFile
from elmo_tasks.modules.bilm_record import load_mapped
from elmo_tasks.modules.elmo_embedder import ElmoEmbedder
from elmo_tasks.modules.layer_mix import TokenDependentLayerMix

# The names of a mix's parameters, of this package and of AllenNLP.
_PARAMETER = re.compile(r".*\.(scalar_parameters\.\d+|scorers\.\d+\.(weight|bias)|gamma)")
_FIRST_SCALAR = ".scalar_parameters.0"
_FIRST_SCORER = ".scorers.0.weight"

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
        Of each layer, the token vectors first; their sum is 1. Of a token-dependent mix, the mean over all tokens of
        the sentences.
    gamma : `float`
        Their common factor.
    tokens : `Optional[List[TokenWeights]]`, optional (default = `None`)
        Of a token-dependent mix, what differs most from the mean first.
    """

    path: str
    mix: str
    weights: List[float]
    gamma: float
    tokens: Optional[List[TokenWeights]] = None


class MixSpread(NamedTuple):
    """
    What several models have learned for the same mix.

    # Parameters

    mix : `str`
    num_models : `int`
    mean, standard_deviation : `List[float]`
        Of each weight, then of gamma. The deviation is that of a sample, with `num_models - 1`.
    """

    mix: str
    num_models: int
    mean: List[float]
    standard_deviation: List[float]


def read_mixes(path: str, sentences: Optional[SentenceFile] = None) -> List[MixWeights]:
    """
    # Parameters

    path : `str`
        A model archive or its URL, the folder of a run, or a config.
    sentences : `Optional[SentenceFile]`, optional (default = `None`)
        What token-dependent mixes are looked at with.

    # Returns

    `List[MixWeights]`

    # Raises

    ConfigurationError
        Where there is no mix that is trained, or a token-dependent one and no sentences.
    """
    mixes = []
    parameters = _read_parameters(path)
    for mix in _mixes_with(parameters, _FIRST_SCALAR):
        num_layers = sum(name.startswith(f"{mix}.scalar_parameters.") for name in parameters)
        before_softmax = torch.cat([parameters[f"{mix}.scalar_parameters.{layer}"] for layer in range(num_layers)])
        weights = before_softmax.float().softmax(dim=0)
        mixes.append(MixWeights(path, mix, weights.tolist(), parameters[f"{mix}.gamma"].item()))
    for mix in _mixes_with(parameters, _FIRST_SCORER):
        if sentences is None:
            raise ConfigurationError(
                f"{path} has a token-dependent mix, `{mix}`, whose weights differ from token to token; "
                "`--sentences FILE` must say for which"
            )
        # An embedder may have several mixes, one below the other in its names.
        name, _, within = mix.partition(".scalar_mix")
        embedder = _load_embedder(path, name)
        module = cast(TokenDependentLayerMix, embedder.get_submodule(f"scalar_mix{within}"))
        mean, tokens = weights_of_tokens(embedder, module, sentences)
        mixes.append(MixWeights(path, mix, mean, parameters[f"{mix}.gamma"].item(), tokens))
    if not mixes:
        raise ConfigurationError(
            f"{path} must have an ELMo embedder with a mix that is trained, scalar or token-dependent, but has none"
        )
    return mixes


def grouped(mixes: List[MixWeights]) -> List[List[MixWeights]]:
    """
    # Returns

    `List[List[MixWeights]]`
        Together what can be compared: the mixes of the same name, and with as many layers.
    """
    groups: Dict[Tuple[str, int], List[MixWeights]] = {}
    for mix in mixes:
        groups.setdefault((mix.mix, len(mix.weights)), []).append(mix)
    return list(groups.values())


def spread(group: List[MixWeights]) -> MixSpread:
    """
    # Parameters

    group : `List[MixWeights]`
        At least two, of the same name, and with as many layers.
    """
    columns = list(zip(*([*mix.weights, mix.gamma] for mix in group)))
    return MixSpread(
        group[0].mix,
        len(group),
        [statistics.mean(column) for column in columns],
        [statistics.stdev(column) for column in columns],
    )


def _mixes_with(parameters: Dict[str, torch.Tensor], first: str) -> List[str]:
    return sorted(name[: -len(first)] for name in parameters if name.endswith(first))


def _read_parameters(path: str) -> Dict[str, torch.Tensor]:
    """Those of all mixes of the model at a path; of a config, as they start."""
    local_path = str(cached_path(path))
    if os.path.isdir(local_path):
        weights_path = get_weights_path(local_path)
        if not os.path.exists(weights_path):
            raise ConfigurationError(f"{path} must hold the weights of a model, but holds none; has an epoch ended?")
        return _parameters_in(weights_path)
    if tarfile.is_tarfile(local_path):
        with extracted_archive(local_path) as folder:
            return _parameters_in(get_weights_path(folder))
    return {
        f"{name}.{key}": value
        for name, embedder in _embedders_of_config(local_path)
        for key, value in embedder.state_dict().items()
        if _PARAMETER.fullmatch(f"{name}.{key}")
    }


def _parameters_in(weights_path: str) -> Dict[str, torch.Tensor]:
    # Copies: the rest of the file is not read.
    return {name: value.clone() for name, value in load_mapped(weights_path).items() if _PARAMETER.fullmatch(name)}


def _load_embedder(path: str, name: str) -> ElmoEmbedder:
    local_path = str(cached_path(path))
    if os.path.isdir(local_path) or tarfile.is_tarfile(local_path):
        return cast(ElmoEmbedder, load_archive(path).model.get_submodule(name))
    return cast(ElmoEmbedder, dict(_embedders_of_config(local_path))[name])


def _embedders_of_config(local_path: str) -> Iterator[Tuple[str, TokenEmbedder]]:
    try:
        config = Params.from_file(local_path).as_dict(quiet=True)
    except ConfigurationError as error:  # of jsonnet
        raise ConfigurationError(
            f"{local_path} must be an archive, the folder of a run or a config, but cannot be read as one: {error}"
        ) from error
    for name, embedder in _find_embedders(config.get("model"), "model"):
        yield name, TokenEmbedder.from_params(Params(embedder))


def _find_embedders(config: Any, name: str) -> Iterator[Tuple[str, Dict[str, Any]]]:
    if isinstance(config, dict):
        if config.get("type") in _EMBEDDERS:
            yield name, config
        else:
            for key, value in config.items():
                yield from _find_embedders(value, f"{name}.{key}")
