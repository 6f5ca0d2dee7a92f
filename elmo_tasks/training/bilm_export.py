"""A pretrained biLM as the two official files."""

import logging
import os
from typing import Any, Dict, Optional, Union, cast

from allennlp.common.checks import ConfigurationError
from allennlp.models import Model
from allennlp.training.callbacks import TrainerCallback
from allennlp.training.gradient_descent_trainer import GradientDescentTrainer

from elmo_tasks.bilm import BiLmOptions, save_weights
from elmo_tasks.bilm.pretrained import OPTIONS_FILE_NAME, WEIGHT_FILE_NAME
from elmo_tasks.models.bilm_language_model import BiLmLanguageModel
from elmo_tasks.modules.bilm_network import CharacterNetwork

logger = logging.getLogger(__name__)


def export_bilm(model: Model, folder: Union[str, os.PathLike], dtype: str = "float32") -> None:
    """
    Writes `options.json` and `weights.hdf5`, as AllenNLP's own `Elmo` and bilm-tf read them.

    # Parameters

    model : `Model`
        A `BiLmLanguageModel` over characters.
    folder : `Union[str, os.PathLike]`
        Made if it is not there; such files in it are replaced.
    dtype : `str`, optional (default = `"float32"`)
        "float16" halves the file.

    # Raises

    ConfigurationError
        Where the model is of another kind, or a weight does not fit into `dtype`.
    """
    if not isinstance(model, BiLmLanguageModel):
        raise ConfigurationError(f"only a bilm_language_model can be exported, but this is a {type(model).__name__}")
    if not isinstance(model.network, CharacterNetwork):
        raise ConfigurationError(
            "only a network of the type `characters` can be exported, since ELMo is over characters, but this is a "
            f"{type(model.network).__name__}"
        )
    os.makedirs(folder, exist_ok=True)
    bilm = model.network.bilm
    try:
        save_weights(bilm, os.path.join(folder, WEIGHT_FILE_NAME), dtype)
    except ValueError as error:
        raise ConfigurationError(f"the biLM cannot be exported: {error}") from error
    cast(BiLmOptions, bilm.options).to_file(os.path.join(folder, OPTIONS_FILE_NAME))
    logger.info("Exported the biLM to %s; a config uses it by this path as `pretrained`", os.fspath(folder))


@TrainerCallback.register("export_bilm")
class ExportBiLmCallback(TrainerCallback):
    """
    Exports the biLM with the best weights when training has ended, not where it was broken off.

    Registered as a `TrainerCallback` with name "export_bilm".

    # Parameters

    serialization_dir : `str`
        Given by the trainer.
    folder : `Optional[str]`, optional (default = `"bilm"` in the folder of the run)
        Where to.
    dtype : `str`, optional (default = `"float32"`)
        "float16" halves the file.
    """

    def __init__(self, serialization_dir: str, folder: Optional[str] = None, dtype: str = "float32") -> None:
        super().__init__(serialization_dir)
        self._folder = folder
        self._dtype = dtype

    def on_end(
        self,
        trainer: GradientDescentTrainer,
        metrics: Optional[Dict[str, Any]] = None,
        epoch: Optional[int] = None,
        is_primary: bool = True,
        **kwargs: Any,
    ) -> None:
        # Without metrics, an error ended it.
        if is_primary and metrics is not None:
            export_bilm(trainer.model, self._folder or os.path.join(self.serialization_dir, "bilm"), self._dtype)
