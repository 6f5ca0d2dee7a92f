"""How the layers of a biLM become one vector per token."""

import math
from abc import ABC, abstractmethod
from typing import Any, Dict, List, Optional, Tuple, cast

import torch
from allennlp.common import Lazy, Registrable
from allennlp.common.checks import ConfigurationError
from torch.autograd.function import once_differentiable
from torch.nn import Linear, ModuleList, Parameter, ParameterList
from torch.nn.functional import layer_norm

from elmo_tasks.bilm.products import without_autocast

# Stands in for a weight of zero, whose logarithm is not finite: far below what float32 resolves beside 1.
_SMALLEST_WEIGHT = 1e-12


class LayerMix(torch.nn.Module, Registrable, ABC):
    """
    Mixes the layers of a biLM: `gamma * sum_j s_j h_j`, equation 1 of the ELMo paper.

    A mix works on single tokens: what it gives for one never depends on the tokens around it. It sees no
    padding, and so needs no mask.

    # Parameters

    num_representations : `int`
        Layers to mix: the token vectors and each LSTM layer. The embedder supplies it.
    bilm_dim : `int`
        Size of a layer. The embedder supplies it.
    layer_norm : `bool`, optional (default = `False`)
        Bring each layer to mean 0 and variance 1 over the features of each token before mixing. AllenNLP's own mix
        takes mean and variance over the whole batch, so that a sentence's vectors depend on its neighbours; this one
        does not.
    sum_directions : `bool`, optional (default = `False`)
        Add both directions of each layer, in place of having them side by side: vectors of half the size. Comes before
        `layer_norm`. The token vectors, which are the same for both, are doubled.

    # Source

    <https://arxiv.org/abs/1802.05365>
    """

    default_implementation = "scalar"

    def __init__(
        self, num_representations: int, bilm_dim: int, layer_norm: bool = False, sum_directions: bool = False
    ) -> None:
        super().__init__()
        self.num_representations = num_representations
        self.layer_dim = bilm_dim // 2 if sum_directions else bilm_dim
        """Size of a layer as it is mixed."""
        self._layer_norm = layer_norm
        self._sum_directions = sum_directions

    def get_output_dim(self) -> int:
        """The size of a mixed vector."""
        return self.layer_dim

    @abstractmethod
    def forward(self, layers: List[torch.Tensor]) -> torch.Tensor:
        """
        # Parameters

        layers : `List[torch.Tensor]`
            `num_representations` tensors `(num_tokens, bilm_dim)`, the tokens of all sentences one after
            another.

        # Returns

        `torch.Tensor`
            float32 `(num_tokens, output_dim)`, also under autocast: a mix is too cheap to lose digits in it.

        # Raises

        ConfigurationError
            Where the number of layers is another.
        """

    @abstractmethod
    def get_metrics(self, reset: bool = False) -> Dict[str, float]:
        """
        # Returns

        `Dict[str, float]`
            The weight of each layer as `scalar_mix_layer_0_weight` and so on, and `scalar_mix_gamma` where
            there is one.
        """

    def _prepare(self, layers: List[torch.Tensor]) -> List[torch.Tensor]:
        """The layers as they are mixed, float32 `(num_tokens, layer_dim)`."""
        layers = [layer.float() for layer in layers]
        if self._sum_directions:
            layers = [torch.add(*layer.chunk(2, dim=-1)) for layer in layers]
        if self._layer_norm:
            layers = [layer_norm(layer, layer.shape[-1:], eps=1e-12) for layer in layers]
        return layers


@LayerMix.register("scalar")
class ScalarLayerMix(LayerMix):
    """
    One weight per layer for all tokens, a softmax over trained scalars, and a trained scale `gamma`.

    Registered as a `LayerMix` with name "scalar", which is also the default.

    # Parameters

    num_representations : `int`
        Supplied by the embedder.
    bilm_dim : `int`
        Supplied by the embedder.
    initial : `Optional[List[float]]`, optional (default = `None`)
        Where the weights start, one number per layer; `None`: all equal. Numbers before the softmax, or the
        weights themselves where `normalized` is set.
    normalized : `bool`, optional (default = `False`)
        `initial` holds the weights themselves: none below 0, their sum 1.
    trainable : `bool`, optional (default = `True`)
        Train the weights and `gamma`, wherever they started.
    layer_norm, sum_directions : `bool`, optional (default = `False`)
        See `LayerMix`.

    # Raises

    ConfigurationError
        Where `initial` has the wrong length, or is not what `normalized` says.
    """

    def __init__(
        self,
        num_representations: int,
        bilm_dim: int,
        initial: Optional[List[float]] = None,
        normalized: bool = False,
        trainable: bool = True,
        layer_norm: bool = False,
        sum_directions: bool = False,
    ) -> None:
        super().__init__(num_representations, bilm_dim, layer_norm, sum_directions)
        if initial is None:
            initial = [0.0] * num_representations
        elif len(initial) != num_representations:
            raise ConfigurationError(
                f"`initial` must have length {num_representations}, a number for each layer of the biLM, "
                f"but has length {len(initial)}: {initial}"
            )
        elif normalized:
            initial = _before_softmax(initial)
        # One parameter per layer, as in AllenNLP's mix: names and shapes in a weights file stay the same.
        self.scalar_parameters = ParameterList(
            [Parameter(torch.tensor([float(number)]), requires_grad=trainable) for number in initial]
        )
        self.gamma = Parameter(torch.tensor([1.0]), requires_grad=trainable)

    def weights(self) -> torch.Tensor:
        """
        # Returns

        `torch.Tensor`
            float32 `(num_representations,)`, their sum 1.
        """
        # In float32: half precision would turn a parameter such as -9e10 into minus infinity.
        return torch.cat([parameter.float() for parameter in self.scalar_parameters]).softmax(dim=0)

    def forward(self, layers: List[torch.Tensor]) -> torch.Tensor:
        """See `LayerMix`."""
        _check_number(layers, self.num_representations)
        mixed: torch.Tensor = _ScalarMixture.apply(self.gamma.float(), self.weights(), *self._prepare(layers))
        return mixed

    def get_metrics(self, reset: bool = False) -> Dict[str, float]:
        """See `LayerMix`."""
        metrics = _weight_metrics(self.weights().tolist())
        metrics["scalar_mix_gamma"] = self.gamma.item()
        return metrics


@LayerMix.register("single_layer")
class SingleLayerMix(LayerMix):
    """
    One layer alone, as it is. There is nothing to train.

    Registered as a `LayerMix` with name "single_layer".

    # Parameters

    num_representations : `int`
        Supplied by the embedder.
    bilm_dim : `int`
        Supplied by the embedder.
    layer : `int`, optional (default = `-1`)
        0: the token vectors, 1: the first LSTM layer, and so on; negative numbers count from the top.
    layer_norm, sum_directions : `bool`, optional (default = `False`)
        See `LayerMix`.

    # Raises

    ConfigurationError
        Where the biLM has no such layer.
    """

    def __init__(
        self,
        num_representations: int,
        bilm_dim: int,
        layer: int = -1,
        layer_norm: bool = False,
        sum_directions: bool = False,
    ) -> None:
        super().__init__(num_representations, bilm_dim, layer_norm, sum_directions)
        if not -num_representations <= layer < num_representations:
            raise ConfigurationError(
                f"`layer` must be from {-num_representations} to {num_representations - 1}, but is {layer}"
            )
        self._layer = layer % num_representations

    def forward(self, layers: List[torch.Tensor]) -> torch.Tensor:
        """See `LayerMix`."""
        _check_number(layers, self.num_representations)
        return self._prepare([layers[self._layer]])[0]

    def get_metrics(self, reset: bool = False) -> Dict[str, float]:
        """See `LayerMix`: 1 for the chosen layer, 0 for the others."""
        return _weight_metrics([float(layer == self._layer) for layer in range(self.num_representations)])


@LayerMix.register("token_dependent")
class TokenDependentLayerMix(LayerMix):
    """
    Each token has weights of its own: a softmax over one score per layer, a linear function of that layer's
    vector.

    At the start all scores are zero, so that it begins as the equal mix.

    Registered as a `LayerMix` with name "token_dependent".

    # Parameters

    num_representations : `int`
        Supplied by the embedder.
    bilm_dim : `int`
        Supplied by the embedder.
    layer_norm, sum_directions : `bool`, optional (default = `False`)
        See `LayerMix`.
    """

    def __init__(
        self, num_representations: int, bilm_dim: int, layer_norm: bool = False, sum_directions: bool = False
    ) -> None:
        super().__init__(num_representations, bilm_dim, layer_norm, sum_directions)
        self.scorers = ModuleList([_zero_scorer(self.layer_dim) for _ in range(num_representations)])
        self.gamma = Parameter(torch.tensor([1.0]))
        # No buffer: with several processes, torch would overwrite the sums of all with those of the first.
        self._sum_of_weights: Optional[torch.Tensor] = None
        self._num_tokens = 0

    def weights(self, layers: List[torch.Tensor]) -> torch.Tensor:
        """
        # Parameters

        layers : `List[torch.Tensor]`
            As for `forward`.

        # Returns

        `torch.Tensor`
            float32 `(num_tokens, num_representations)`, the sum of a token 1.
        """
        return self._weights(self._prepare(layers))

    def _weights(self, layers: List[torch.Tensor]) -> torch.Tensor:
        with without_autocast(self.gamma.device):
            scores = [scorer(layer.to(self.gamma.dtype)) for scorer, layer in zip(self.scorers, layers)]
        # (num_tokens, num_representations)
        return torch.cat(scores, dim=-1).softmax(dim=-1)

    def forward(self, layers: List[torch.Tensor]) -> torch.Tensor:
        """See `LayerMix`."""
        _check_number(layers, self.num_representations)
        layers = self._prepare(layers)
        weights = self._weights(layers)
        # The sums stay on the device: reading a number here would make a GPU wait in every batch.
        sum_of_weights = weights.detach().sum(dim=0)
        if self._sum_of_weights is not None:
            sum_of_weights = sum_of_weights + self._sum_of_weights.to(sum_of_weights.device)
        self._sum_of_weights = sum_of_weights
        self._num_tokens += weights.size(0)
        return self.gamma * sum(weight * layer for weight, layer in zip(weights.split(1, dim=-1), layers))

    def get_metrics(self, reset: bool = False) -> Dict[str, float]:
        """See `LayerMix`: the mean of each weight over all tokens since the last reset."""
        metrics = {"scalar_mix_gamma": self.gamma.item()}
        if self._sum_of_weights is not None and self._num_tokens > 0:
            metrics.update(_weight_metrics((self._sum_of_weights / self._num_tokens).tolist()))
        if reset:
            self._sum_of_weights = None
            self._num_tokens = 0
        return metrics


@LayerMix.register("side_by_side")
class SideBySideLayerMix(LayerMix):
    """
    Several mixes of the same layers, one behind the other in a vector, so that parts of a model can have a mix each
    over one biLM. The encoder `bypass` reads the first one and leaves the second at its output.

    Registered as a `LayerMix` with name "side_by_side".

    # Parameters

    num_representations : `int`
        Supplied by the embedder.
    bilm_dim : `int`
        Supplied by the embedder.
    mixes : `List[Lazy[LayerMix]]`
        At least one.

    # Raises

    ConfigurationError
        Where there is none.

    # Source

    Section 3.3 of the ELMo paper.
    """

    def __init__(self, num_representations: int, bilm_dim: int, mixes: List[Lazy[LayerMix]]) -> None:
        super().__init__(num_representations, bilm_dim)
        if not mixes:
            raise ConfigurationError("`mixes` must hold at least one mix, but is empty")
        self.mixes = ModuleList(
            [mix.construct(num_representations=num_representations, bilm_dim=bilm_dim) for mix in mixes]
        )

    def get_output_dim(self) -> int:
        """The size of all mixed vectors together."""
        return sum(cast(LayerMix, mix).get_output_dim() for mix in self.mixes)

    def forward(self, layers: List[torch.Tensor]) -> torch.Tensor:
        """See `LayerMix`."""
        return torch.cat([mix(layers) for mix in self.mixes], dim=-1)

    def get_metrics(self, reset: bool = False) -> Dict[str, float]:
        """See `LayerMix`: those of the second mix, say, as `scalar_mix_1_layer_0_weight` and so on."""
        return {
            name.replace("scalar_mix", f"scalar_mix_{number}", 1): value
            for number, mix in enumerate(self.mixes)
            for name, value in cast(LayerMix, mix).get_metrics(reset).items()
        }


def _zero_scorer(layer_dim: int) -> Linear:
    scorer = Linear(layer_dim, 1)
    torch.nn.init.zeros_(scorer.weight)
    torch.nn.init.zeros_(scorer.bias)
    return scorer


def _before_softmax(weights: List[float]) -> List[float]:
    if min(weights) < 0 or abs(sum(weights) - 1) > 1e-3:
        raise ConfigurationError(
            "`initial` must hold weights of at least 0 that sum to 1, since `normalized` is set, but is "
            f"{weights} with sum {sum(weights):g}"
        )
    return [math.log(max(weight, _SMALLEST_WEIGHT)) for weight in weights]


def _check_number(layers: List[torch.Tensor], num_representations: int) -> None:
    if len(layers) != num_representations:
        raise ConfigurationError(f"the mix was built for {num_representations} layers, but is given {len(layers)}")


class _ScalarMixture(torch.autograd.Function):
    """
    `gamma * sum_j weights_j layers_j`, in the order of AllenNLP's mix, whose results are to be met bit for bit.

    With a cached biLM this is most of what is left of an epoch: the gradient of the weights takes one look at each
    layer here, and several with a temporary copy each where torch derives it.
    """

    @staticmethod
    def forward(ctx: Any, gamma: torch.Tensor, weights: torch.Tensor, *layers: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(gamma, weights, *layers)
        mixed = weights[0] * layers[0]
        for weight, layer in zip(weights[1:], layers[1:]):
            mixed += weight * layer
        return mixed.mul_(gamma)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_mixed: torch.Tensor) -> Tuple[Optional[torch.Tensor], ...]:
        gamma, weights, *layers = ctx.saved_tensors
        # (num_representations,)
        products = torch.stack([torch.dot(d_mixed.flatten(), layer.flatten()) for layer in layers])
        d_layers = [
            gamma * weight * d_mixed if is_needed else None
            for weight, is_needed in zip(weights, ctx.needs_input_grad[2:])
        ]
        return ((weights * products).sum().view(1), gamma * products, *d_layers)


def _weight_metrics(weights: List[float]) -> Dict[str, float]:
    return {f"scalar_mix_layer_{layer}_weight": weight for layer, weight in enumerate(weights)}
