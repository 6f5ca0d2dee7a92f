"""The output layers of a language model: what predicting words costs, exactly or by sampling."""

import logging
import math
from abc import ABC, abstractmethod
from typing import Any, List, Optional, Tuple

import torch
from allennlp.common import Registrable
from allennlp.common.checks import ConfigurationError
from torch.autograd.function import once_differentiable
from torch.nn.functional import embedding, linear

logger = logging.getLogger(__name__)

# Logits that are held at a time where all words are scored: 64 MB in float32.
MAX_LOGITS = 2**24


class Softmax(Registrable, torch.nn.Module, ABC):
    """
    Gives each word of the vocabulary a probability. While it evaluates, this is always the exact softmax.

    # Parameters

    num_words : `int`
        Size of the vocabulary; the ids of words are falling in frequency.
    input_dim : `int`
        Size of a vector that words are predicted from.
    """

    default_implementation = "sampled"

    def __init__(self, num_words: int, input_dim: int) -> None:
        super().__init__()
        self.num_words = num_words
        self.input_dim = input_dim

    @abstractmethod
    def forward(self, vectors: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        """
        # Parameters

        vectors : `torch.Tensor`
            float `(num_predictions, input_dim)`.
        targets : `torch.Tensor`
            int64 `(num_predictions,)`, the ids of the true words.

        # Returns

        `torch.Tensor`
            float `(num_predictions,)`, the negative log likelihood of each target in nats.
        """

    @abstractmethod
    def log_probabilities(self, vectors: torch.Tensor) -> torch.Tensor:
        """
        # Parameters

        vectors : `torch.Tensor`
            float `(num_predictions, input_dim)`.

        # Returns

        `torch.Tensor`
            float `(num_predictions, num_words)`, log probabilities of all words in nats.
        """


@Softmax.register("full")
class FullSoftmax(Softmax):
    """
    The softmax over all words.

    Registered as a `Softmax` with name "full".

    # Parameters

    num_words : `int`
        Size of the vocabulary.
    input_dim : `int`
        Size of a vector that words are predicted from.
    """

    def __init__(self, num_words: int, input_dim: int) -> None:
        super().__init__(num_words, input_dim)
        # (num_words, input_dim)
        self.weight = torch.nn.Parameter(torch.randn(num_words, input_dim) / math.sqrt(input_dim))
        # (num_words,)
        self.bias = torch.nn.Parameter(torch.zeros(num_words))

    def forward(self, vectors: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        rows = max(MAX_LOGITS // self.num_words, 1)
        losses = [
            torch.nn.functional.cross_entropy(linear(part, self.weight, self.bias), target, reduction="none")
            for part, target in zip(vectors.split(rows), targets.split(rows))
        ]
        # (num_predictions,)
        return torch.cat(losses)

    def log_probabilities(self, vectors: torch.Tensor) -> torch.Tensor:
        return torch.log_softmax(linear(vectors, self.weight, self.bias), dim=-1)


@Softmax.register("sampled")
class SampledSoftmax(FullSoftmax):
    """
    Trains against words drawn from a log-uniform distribution over the ids, without replacement, and corrects the
    logits for how often each word is drawn, as TensorFlow's `sampled_softmax_loss` does. The draw is the same for all
    predictions of a batch. Evaluates with all words. Where the vocabulary is so small that sampling saves nothing, it
    trains with all words too, and logs this.

    Registered as a `Softmax` with name "sampled" (the default).

    # Parameters

    num_words : `int`
        Size of the vocabulary.
    input_dim : `int`
        Size of a vector that words are predicted from.
    num_samples : `int`, optional (default = `8192`)
        Words that are drawn for a batch.

    # Source

    Jean et al. 2015, <https://arxiv.org/abs/1412.2007>; the sampler of bilm-tf.
    """

    def __init__(self, num_words: int, input_dim: int, num_samples: int = 8192) -> None:
        super().__init__(num_words, input_dim)
        if num_samples < 1:
            raise ConfigurationError(f"`num_samples` must be at least 1, but is {num_samples}")
        self.num_samples = num_samples
        self.samples_in_training = 2 * num_samples <= num_words
        if not self.samples_in_training:
            logger.info(
                "The vocabulary of %d words is small beside %d samples: training uses the full softmax",
                num_words,
                num_samples,
            )

    def forward(self, vectors: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        if not (self.training and self.samples_in_training):
            return super().forward(vectors, targets)
        vectors = vectors.to(self.weight.dtype)
        sampled, num_tries = draw_log_uniform(self.num_words, self.num_samples)
        sampled = sampled.to(targets.device)
        # One look-up for both, so that the gradient of the table is built once.
        ids = torch.cat([targets, sampled])
        # (num_predictions, input_dim), (num_samples, input_dim)
        target_weights, sampled_weights = embedding(ids, self.weight).split([len(targets), len(sampled)])
        # Words that are drawn often would be pushed down too often: the logits leave that out.
        biases = embedding(ids, self.bias.unsqueeze(1)).squeeze(1) - self._log_expected_count(ids, num_tries)
        target_biases, sampled_biases = biases.split([len(targets), len(sampled)])
        # (num_predictions,)
        target_logits = (vectors * target_weights).sum(dim=1) + target_biases
        # A target among the samples must not compete with itself.
        place = torch.full((self.num_words,), -1, device=targets.device)
        place[sampled] = torch.arange(len(sampled), device=targets.device)
        places = place[targets]
        (hits,) = (places >= 0).nonzero(as_tuple=True)
        return _SampledLoss.apply(vectors, sampled_weights, sampled_biases, target_logits, hits, places[hits])

    def _log_expected_count(self, ids: torch.Tensor, num_tries: int) -> torch.Tensor:
        """The log of the chance that `num_tries` draws hold the word, for each id."""
        ids = ids.to(self.weight.dtype)
        probability = torch.log1p(1 / (ids + 1)) / math.log(self.num_words + 1)
        return torch.log(-torch.expm1(num_tries * torch.log1p(-probability)))


class _SampledLoss(torch.autograd.Function):
    """
    `log(exp(target_logit) + sum of exp(sampled_logits)) - target_logit` of each prediction, where
    `sampled_logits = vectors @ weights.T + biases`, and minus infinity at `(hit_rows, hit_columns)`.

    The table of logits is by far the largest tensor of a language model's training: this writes it once, in place, and
    reads it only in products, where autograd would keep and pass over several copies.
    """

    @staticmethod
    def forward(  # type: ignore[override]
        ctx: Any,
        vectors: torch.Tensor,
        weights: torch.Tensor,
        biases: torch.Tensor,
        target_logits: torch.Tensor,
        hit_rows: torch.Tensor,
        hit_columns: torch.Tensor,
    ) -> torch.Tensor:
        # (num_predictions, num_samples)
        table = torch.addmm(biases, vectors, weights.t())
        table[hit_rows, hit_columns] = -math.inf
        # (num_predictions,)
        largest = torch.maximum(table.amax(dim=1), target_logits)
        table.sub_(largest.unsqueeze(1)).exp_()
        target = torch.exp(target_logits - largest)
        total = table.sum(dim=1) + target
        ctx.save_for_backward(vectors, weights, table, target, total)
        return total.log() + largest - target_logits

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: torch.Tensor) -> Tuple[Optional[torch.Tensor], ...]:  # type: ignore[override]
        vectors, weights, table, target, total = ctx.saved_tensors
        # (num_predictions, 1)
        scale = (grad / total).unsqueeze(1)
        # The last column is the gradient of the biases: (num_samples, input_dim + 1)
        by_sample = table.t() @ torch.cat([vectors * scale, scale], dim=1)
        grad_vectors = (table @ weights).mul_(scale)
        return grad_vectors, by_sample[:, :-1], by_sample[:, -1], target * scale.squeeze(1) - grad, None, None


@Softmax.register("adaptive")
class AdaptiveSoftmax(Softmax):
    """
    PyTorch's `AdaptiveLogSoftmaxWithLoss`: frequent words in the head, rare ones in tails of smaller vectors. Exact in
    training too.

    Registered as a `Softmax` with name "adaptive".

    # Parameters

    num_words : `int`
        Size of the vocabulary.
    input_dim : `int`
        Size of a vector that words are predicted from.
    cutoffs : `Optional[List[int]]`, optional (default = `None`)
        Ids at which a tail begins, rising. `None`: a tenth and two fifths of the vocabulary.
    div_value : `float`, optional (default = `4.0`)
        Each tail's vectors are this many times smaller than those before.

    # Source

    Grave et al. 2017, <https://arxiv.org/abs/1609.04309>.
    """

    def __init__(
        self, num_words: int, input_dim: int, cutoffs: Optional[List[int]] = None, div_value: float = 4.0
    ) -> None:
        super().__init__(num_words, input_dim)
        if cutoffs is None:
            cutoffs = sorted({max(num_words // 10, 1), max(2 * num_words // 5, 1)})
        if sorted(set(cutoffs)) != cutoffs or not cutoffs or not 0 < cutoffs[0] <= cutoffs[-1] < num_words:
            raise ConfigurationError(
                f"`cutoffs` must rise between 0 and the {num_words} words of the vocabulary, but are {cutoffs}"
            )
        self.adaptive = torch.nn.AdaptiveLogSoftmaxWithLoss(input_dim, num_words, cutoffs, div_value=div_value)

    def forward(self, vectors: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        # (num_predictions,)
        return -self.adaptive(vectors, targets).output

    def log_probabilities(self, vectors: torch.Tensor) -> torch.Tensor:
        return self.adaptive.log_prob(vectors)


def draw_log_uniform(num_words: int, num_samples: int) -> Tuple[torch.Tensor, int]:
    """
    Draws ids until `num_samples` different ones are there: id `k` with probability
    `log((k + 2) / (k + 1)) / log(num_words + 1)`. Uses the global random state of PyTorch on the CPU.

    # Parameters

    num_words : `int`
        Ids are below this.
    num_samples : `int`
        At most `num_words`.

    # Returns

    `Tuple[torch.Tensor, int]`
        int64 `(num_samples,)` different ids, and the number of draws it took.
    """
    drawn = torch.empty(0, dtype=torch.int64)
    while True:
        uniform = torch.rand(4 * num_samples, dtype=torch.float64)
        ids = torch.exp(uniform * math.log(num_words + 1)).to(torch.int64) - 1
        drawn = torch.cat([drawn, ids.clamp_(0, num_words - 1)])
        # (num_distinct,) each id, and (num_draws,) which of them each draw is
        distinct, which = torch.unique(drawn, return_inverse=True)
        if len(distinct) >= num_samples:
            break
    draws = torch.arange(len(drawn))
    first_draw = torch.full((len(distinct),), len(drawn)).scatter_reduce(0, which, draws, reduce="amin")
    # The draw that brings the last missing id ends it.
    order = first_draw.argsort()[:num_samples]
    return distinct[order], int(first_draw[order[-1]]) + 1
