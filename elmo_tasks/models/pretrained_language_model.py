"""Going on with a language model, or with a biLM alone, on other text."""

import logging
from typing import Any, Dict

from allennlp.common.checks import ConfigurationError
from allennlp.common.file_utils import cached_path
from allennlp.models import Model
from allennlp.models.archival import load_archive

from elmo_tasks.bilm import BiLmOptions, load_weights, resolve
from elmo_tasks.dataset_readers.vocabulary import NAMESPACE
from elmo_tasks.modules.bilm_network import CharacterNetwork
from elmo_tasks.modules.language_model_source import is_language_model

logger = logging.getLogger(__name__)


def start_from(model: Model, pretrained_file: str) -> None:
    """
    Gives a language model the parameters of an earlier one.

    # Parameters

    model : `BiLmLanguageModel`
    pretrained_file : `str`
        An archive or run of a `BiLmLanguageModel`: its network, and where both have the same words, its softmax. Or the
        name or folder of a biLM: its network.

    # Raises

    ConfigurationError
        Where the sizes differ, or there is no such model.
    """
    if is_language_model(pretrained_file):
        earlier = load_archive(pretrained_file).model
        _load(model.network, earlier.network, pretrained_file)
        num_words, num_earlier_words = len(_words(model)), len(_words(earlier))
        if _words(model) == _words(earlier):
            _load(model.softmaxes, earlier.softmaxes, pretrained_file)
            logger.info("Network and softmax go on from %s", pretrained_file)
        else:
            logger.warning(
                "The network goes on from %s; the softmax starts anew, since the words differ (%d here, %d there)",
                pretrained_file,
                num_words,
                num_earlier_words,
            )
        return
    if not isinstance(model.network, CharacterNetwork):
        raise ConfigurationError(
            f"to go on from the biLM {pretrained_file}, the network must be `characters`, but is "
            f"{type(model.network).__name__}"
        )
    try:
        files = resolve(pretrained_file)
        options = BiLmOptions.from_file(cached_path(files.options_file))
        if options != model.network.bilm.options:
            raise ValueError(f"the options must be those of the file, {options.to_dict()}")
        load_weights(model.network.bilm, cached_path(files.weight_file))
    except ValueError as error:
        raise ConfigurationError(f"a language model cannot go on from {pretrained_file}: {error}") from error
    logger.warning("The network goes on from %s; the softmax starts anew, since a biLM has none", pretrained_file)


def _words(model: Model) -> Dict[str, int]:
    return model.vocab.get_token_to_index_vocabulary(NAMESPACE)


def _load(module: Any, earlier: Any, pretrained_file: str) -> None:
    try:
        module.load_state_dict(earlier.state_dict())
    except RuntimeError as error:
        raise ConfigurationError(
            f"a language model must have the sizes of {pretrained_file} to go on from it: {error}"
        ) from error
