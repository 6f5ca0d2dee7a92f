"""
Products of many inputs with one weight, the weight brought once into the layout and precision that multiply fastest.

An LSTM multiplies the same weight at every step with only as many rows as the batch has sentences. An ordinary matrix
product then spends up to half its time arranging the weight, each time anew. oneDNN, which torch is built with,
arranges it once: on a processor with AVX-512, 32 to 128 rows multiply 1.5 to 1.8 times as fast.
"""

from typing import Any, Callable, ContextManager, Generic, List, Optional, Sequence, Tuple, TypeVar, cast

import torch

# oneDNN's packed products became complete with torch 2.1; before, and for other types and devices, torch's own serve.
_TORCH_CAN_PACK = tuple(int(part) for part in torch.__version__.split(".")[:2]) >= (2, 1)


class Product:
    """
    A function of inputs: `inputs @ weight.T`.

    It does not see later changes of the weight, and no gradient flows through it.

    # Parameters

    weight : `torch.Tensor`
        `(output_dim, input_dim)`, or with leading dimensions, for a batch of products.
    bias : `Optional[torch.Tensor]`, optional (default = `None`)
        `(output_dim,)`, with the same leading dimensions.
    dtype : `Optional[torch.dtype]`, optional (default = the weight's)
        Inputs and weight are rounded to it, and so is the result. Sums are kept in float32 (on a GPU unless torch's
        `allow_bf16_reduced_precision_reduction` lets it round partial sums, as it does by default).
    """

    def __init__(
        self, weight: torch.Tensor, bias: Optional[torch.Tensor] = None, dtype: Optional[torch.dtype] = None
    ) -> None:
        self.dtype = weight.dtype if dtype is None else dtype
        self.output_dim = weight.size(-2)
        weight = weight.detach().to(self.dtype)
        self._bias = None if bias is None else bias.detach().to(self.dtype)
        self._is_packed = _can_pack(weight)
        if self._is_packed:
            self._weight = torch.ops.mkldnn._reorder_linear_weight(weight)
        else:
            # (input_dim, output_dim)
            self._weight = weight.transpose(-1, -2)
            if self._bias is not None:
                # (1, output_dim)
                self._bias = self._bias.unsqueeze(-2)

    def __call__(self, inputs: torch.Tensor, addend: Optional[torch.Tensor] = None) -> torch.Tensor:
        """
        # Parameters

        inputs : `torch.Tensor`
            `(num_rows, input_dim)`, with the weight's leading dimensions.
        addend : `Optional[torch.Tensor]`, optional (default = `None`)
            `(num_rows, output_dim)` of `dtype`, added to the product. A product with a bias takes none.

        # Returns

        `torch.Tensor`
            `(num_rows, output_dim)` of `dtype`, fresh memory.
        """
        inputs = inputs.to(self.dtype)
        if self._is_packed:
            multiply = torch.ops.mkldnn._linear_pointwise
            result: torch.Tensor = (
                multiply(_with_common_rows(inputs), self._weight, self._bias, "none", [], "")[: len(inputs)]
                if addend is None
                else multiply(inputs, addend, self._weight, self._bias, "add")
            )
            return result
        addend = self._bias if addend is None else addend
        if addend is None:
            return torch.matmul(inputs, self._weight)
        add_product = torch.addmm if inputs.dim() == 2 else torch.baddbmm
        return add_product(addend, inputs, self._weight)


def _with_common_rows(inputs: torch.Tensor) -> torch.Tensor:
    """
    Adds rows, up to an eighth, so that only eight numbers of rows occur between a number and its double.

    oneDNN keeps code for each shape that it has seen, a fifth of a megabyte for each of the last 1,024: words and
    tokens come in ever new numbers, and memory would grow with the number of batches.
    """
    num_rows = len(inputs)
    step = 1 << max(0, num_rows.bit_length() - 4)
    missing = -num_rows % step
    return inputs if missing == 0 else torch.cat([inputs, inputs.new_zeros(missing, inputs.size(1))])


Made = TypeVar("Made")


class FrozenCache(Generic[Made]):
    """
    Keeps what a module has made out of its frozen weights, at the price of memory.

    What comes of weights that may be trained is made anew each time: they can change without a trace (a moving
    average's write to `.data`). Copies and pickles of the cache are empty.
    """

    def __init__(self) -> None:
        self._made: Optional[Made] = None
        self._dtype: Optional[torch.dtype] = None
        # The same memory as the weights: while it is held here, no other tensor can come to lie at its address.
        self._weights: List[torch.Tensor] = []
        self._versions: List[int] = []

    def get(self, weights: Sequence[torch.Tensor], dtype: torch.dtype, make: Callable[[], Made]) -> Made:
        """
        # Parameters

        weights : `Sequence[torch.Tensor]`
            All that `make` reads.
        dtype : `torch.dtype`
            Of what is made.
        make : `Callable[[], Made]`
            Called where nothing is kept, or it was made of other weights or in another type.
        """
        if any(weight.requires_grad for weight in weights):
            self._made, self._weights = None, []
            return make()
        versions = [num_changes(weight) for weight in weights]
        is_kept = self._made is not None and self._dtype == dtype and self._versions == versions
        if not is_kept or not all(map(_is_same_memory, self._weights, weights)):
            self._made, self._dtype = make(), dtype
            self._weights, self._versions = [weight.detach() for weight in weights], versions
        return cast(Made, self._made)

    def __reduce__(self) -> Tuple[Any, ...]:
        return FrozenCache, ()


def num_changes(tensor: torch.Tensor) -> int:
    """How often torch has seen the tensor change: not what is written to its `.data`, and no inference tensors."""
    return 0 if tensor.is_inference() else tensor._version


def _is_same_memory(one: torch.Tensor, other: torch.Tensor) -> bool:
    return one.data_ptr() == other.data_ptr() and one.dtype == other.dtype and one.device == other.device


class Linear(torch.nn.Linear):
    """
    torch's linear layer, which multiplies through a `Product` where no gradient is wanted.

    # Parameters

    input_dim, output_dim : `int`
    """

    def __init__(self, input_dim: int, output_dim: int) -> None:
        super().__init__(input_dim, output_dim)
        self._product: FrozenCache[Product] = FrozenCache()

    def forward(self, inputs: torch.Tensor, dtype: Optional[torch.dtype] = None) -> torch.Tensor:
        """
        # Parameters

        inputs : `torch.Tensor`
            `(num_rows, input_dim)`
        dtype : `Optional[torch.dtype]`, optional (default = the weight's)
            Of the product, where no gradient is wanted.

        # Returns

        `torch.Tensor`
            `(num_rows, output_dim)`, of the inputs' type.
        """
        if wants_gradient(inputs, self.weight, self.bias):
            return super().forward(inputs)
        dtype = self.weight.dtype if dtype is None else dtype
        product = self._product.get((self.weight, self.bias), dtype, lambda: Product(self.weight, self.bias, dtype))
        return product(inputs).to(inputs.dtype)


def wants_gradient(*tensors: torch.Tensor) -> bool:
    """Whether autograd would record an operation on these."""
    return torch.is_grad_enabled() and any(tensor.requires_grad for tensor in tensors)


def without_autocast(device: torch.device) -> ContextManager[None]:
    """A context in which autocast, if it is on, does not touch the products."""
    return torch.autocast(device.type, enabled=False)


def _can_pack(weight: torch.Tensor) -> bool:
    if not (_TORCH_CAN_PACK and torch.backends.mkldnn.is_available() and torch.backends.mkldnn.enabled):
        return False
    if weight.device.type != "cpu" or weight.dim() != 2 or 0 in weight.shape:
        return False
    if weight.dtype == torch.bfloat16:
        return bool(torch.ops.mkldnn._is_mkldnn_bf16_supported())
    return weight.dtype == torch.float32
