"""Parts of models: the ELMo embedder, layer mixes, the activation cache."""

from elmo_tasks.modules.activation_cache import ActivationCache
from elmo_tasks.modules.bilm_network import BiLmNetwork, CharacterNetwork, WordNetwork
from elmo_tasks.modules.elmo_embedder import ElmoEmbedder
from elmo_tasks.modules.layer_mix import (
    LayerMix,
    ScalarLayerMix,
    SideBySideLayerMix,
    SingleLayerMix,
    TokenDependentLayerMix,
)
from elmo_tasks.modules.softmax import AdaptiveSoftmax, FullSoftmax, SampledSoftmax, Softmax

__all__ = [
    "ActivationCache",
    "AdaptiveSoftmax",
    "BiLmNetwork",
    "CharacterNetwork",
    "ElmoEmbedder",
    "FullSoftmax",
    "LayerMix",
    "SampledSoftmax",
    "ScalarLayerMix",
    "SideBySideLayerMix",
    "SingleLayerMix",
    "Softmax",
    "TokenDependentLayerMix",
    "WordNetwork",
]
