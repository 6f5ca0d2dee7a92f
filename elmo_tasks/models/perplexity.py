"""How well a language model predicts, and how fast it learns."""

import math
import time
from typing import Dict, Optional

import torch
from allennlp.common.util import is_distributed
from allennlp.nn.util import dist_reduce_sum

# exp of more than this is no float.
MAX_LOG = 700.0


class Perplexity:
    """
    Counts the negative log likelihoods of both directions.

    The perplexity of a direction is the exponential of its mean negative log likelihood per prediction. A
    sentence of n words gives n + 1 predictions: forward its words and "</S>", backward its words and "<S>";
    padding gives none, and a word outside the vocabulary is predicted as "<UNK>". `perplexity` is the mean of
    both, which is how bilm-tf's authors report it. While training with a sampled softmax, the figures are
    those of the sampled loss, which are lower.

    `tokens_per_second` counts predictions of one direction, over all processes, and is there after training
    only.
    """

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Forgets everything, the start of the clock too."""
        self._losses = {"forward": 0.0, "backward": 0.0}
        self._num_predictions = 0
        self._started: Optional[float] = None

    def start_clock(self) -> None:
        """The time of training counts from the first call."""
        if self._started is None:
            self._started = time.perf_counter()

    def add(self, forward_loss: float, backward_loss: float, num_predictions: int) -> None:
        """
        # Parameters

        forward_loss, backward_loss : `float`
            Sums of negative log likelihoods, in nats.
        num_predictions : `int`
            How many each of them sums.
        """
        self._losses["forward"] += forward_loss
        self._losses["backward"] += backward_loss
        self._num_predictions += num_predictions

    def get(self, reset: bool = False) -> Dict[str, float]:
        """
        # Parameters

        reset : `bool`, optional (default = `False`)
            Sums over all processes, which must all ask then, and starts anew.

        # Returns

        `Dict[str, float]`
            `forward_perplexity`, `backward_perplexity`, `perplexity` and, after training,
            `tokens_per_second`.
        """
        losses, num_predictions = self._losses, float(self._num_predictions)
        elapsed = None if self._started is None else time.perf_counter() - self._started
        tokens = num_predictions * (_num_processes() if not reset else 1)
        if reset:
            losses = {direction: dist_reduce_sum(loss) for direction, loss in losses.items()}
            tokens = num_predictions = dist_reduce_sum(num_predictions)
            self.reset()
        metrics = {
            f"{direction}_perplexity": math.exp(min(loss / max(num_predictions, 1.0), MAX_LOG))
            for direction, loss in losses.items()
        }
        metrics["perplexity"] = sum(metrics.values()) / len(metrics)
        if elapsed:
            metrics["tokens_per_second"] = tokens / elapsed
        return metrics


def _num_processes() -> int:
    return torch.distributed.get_world_size() if is_distributed() else 1
