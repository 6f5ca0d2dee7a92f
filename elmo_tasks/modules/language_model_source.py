"""The biLM of a language model that was pretrained here, out of its archive."""

import os
from typing import Any

from allennlp.common.checks import ConfigurationError
from allennlp.models.archival import CONFIG_NAME, load_archive

from elmo_tasks.bilm import BiLm
from elmo_tasks.modules.bilm_network import BiLmNetwork


def is_language_model(path: str) -> bool:
    """Whether it is written as an archive, or is the folder of a run; and so no name or folder of a biLM alone."""
    return path.endswith(".tar.gz") or os.path.isfile(os.path.join(path, CONFIG_NAME))


def bilm_of_language_model(path: str) -> BiLm:
    """
    # Parameters

    path : `str`
        An archive of a model `bilm_language_model`, path or URL, or the folder of its run.

    # Returns

    `BiLm`
        With its weights. Over words, it knows the vocabulary of the language model, and what stood for numbers.

    # Raises

    ConfigurationError
        Where it is another model, or one whose words are characters.
    FileNotFoundError
        Where there is no archive.
    """
    archive = load_archive(path)
    model: Any = archive.model
    network = getattr(model, "network", None)
    if not isinstance(network, BiLmNetwork):
        raise ConfigurationError(
            f"{path} must be an archive of a `bilm_language_model`, but is one of a {type(model).__name__}"
        )
    reader = archive.config["dataset_reader"]
    if reader.get("unit", "words") != "words":
        raise ConfigurationError(f"{path} must be a language model over words, but its `unit` is {reader['unit']!r}")
    return network.to_bilm(model.words, reader.get("number_word"))
