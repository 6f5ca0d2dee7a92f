"""What a token-dependent mix does with the tokens of some sentences."""

from collections import Counter
from typing import Dict, List, NamedTuple, Tuple

import numpy
import torch

from elmo_tasks.commands.sentence_batches import batches, windows
from elmo_tasks.commands.sentence_file import SentenceFile
from elmo_tasks.modules.elmo_embedder import ElmoEmbedder
from elmo_tasks.modules.layer_mix import TokenDependentLayerMix

_MAX_TOKENS = 4096


class TokenWeights(NamedTuple):
    """
    The weights that a token has.

    # Parameters

    token : `str`
    num_occurrences : `int`
        How often it is in the sentences.
    weights : `List[float]`
        Of each layer, the mean over these places.
    difference : `float`
        From 0 to 1, how much of the weight lies on other layers than with the mean of all tokens.
    """

    token: str
    num_occurrences: int
    weights: List[float]
    difference: float


def weights_of_tokens(
    embedder: ElmoEmbedder, mix: TokenDependentLayerMix, sentences: SentenceFile
) -> Tuple[List[float], List[TokenWeights]]:
    """
    # Parameters

    embedder : `ElmoEmbedder`
    mix : `TokenDependentLayerMix`
        The embedder's, or one of several that it has.
    sentences : `SentenceFile`
        Memory holds the distinct tokens.

    # Returns

    `Tuple[List[float], List[TokenWeights]]`
        The mean weight of each layer over all tokens, zeros where there are none, and each distinct token, the greatest
        difference from the mean first.
    """
    embedder.eval()
    counts: Dict[str, int] = Counter()
    sums: Dict[str, numpy.ndarray] = {}
    for window in windows(sentences, _MAX_TOKENS):
        for positions, character_ids in batches(window, _MAX_TOKENS, torch.device("cpu")):
            tokens = [token for position in positions for token in window[position].tokens]
            for token, weights in zip(tokens, _weights(embedder, mix, character_ids)):
                counts[token] += 1
                sums[token] = sums.get(token, 0.0) + weights
    num_representations = embedder.bilm.options.num_representations
    mean = sum(sums.values(), numpy.zeros(num_representations)) / max(1, sum(counts.values()))
    means = {token: total / counts[token] for token, total in sums.items()}
    differences = {token: float(abs(weights - mean).sum() / 2) for token, weights in means.items()}
    in_order = sorted(means, key=lambda token: (-differences[token], token))
    return mean.tolist(), [
        TokenWeights(token, counts[token], means[token].tolist(), differences[token]) for token in in_order
    ]


def _weights(embedder: ElmoEmbedder, mix: TokenDependentLayerMix, character_ids: torch.Tensor) -> numpy.ndarray:
    """`(num_tokens, num_representations)`, sentence after sentence."""
    # (batch_size, num_tokens)
    mask = (character_ids > 0).any(dim=-1)
    with torch.no_grad():
        layers = [layer[mask] for layer in embedder.layers(character_ids)]
        return mix.weights(layers).double().numpy()
