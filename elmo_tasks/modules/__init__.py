"""Parts of models: the ELMo embedder, layer mixes, the activation cache."""

from elmo_tasks.modules.activation_cache import ActivationCache
from elmo_tasks.modules.elmo_embedder import ElmoEmbedder
from elmo_tasks.modules.layer_mix import LayerMix, ScalarLayerMix, SingleLayerMix, TokenDependentLayerMix

__all__ = [
    "ActivationCache",
    "ElmoEmbedder",
    "LayerMix",
    "ScalarLayerMix",
    "SingleLayerMix",
    "TokenDependentLayerMix",
]
