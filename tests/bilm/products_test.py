import copy
import pickle

import pytest
import torch

from elmo_tasks.bilm.products import FrozenCache, Linear, Product, _with_common_rows


@pytest.fixture
def generator():
    return torch.Generator().manual_seed(5)


@pytest.mark.parametrize("num_rows", [0, 1, 3, 70, 145])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_product_is_the_matrix_product(generator, num_rows, dtype):
    weight = torch.randn(33, 17, dtype=dtype, generator=generator)
    bias = torch.randn(33, dtype=dtype, generator=generator)
    inputs = torch.randn(num_rows, 17, dtype=dtype, generator=generator)
    addend = torch.randn(num_rows, 33, dtype=dtype, generator=generator)
    expected = (inputs.double() @ weight.double().t()).to(dtype)
    for result, plain in (
        (Product(weight)(inputs), expected),
        (Product(weight, bias)(inputs), expected + bias),
        (Product(weight)(inputs, addend), expected + addend),
    ):
        assert result.dtype == dtype
        torch.testing.assert_close(result, plain, rtol=0, atol=1e-5)


def test_weights_and_inputs_may_be_views(generator):
    weight = torch.randn(17, 66, generator=generator).t()[::2]
    inputs = torch.randn(5, 40, generator=generator)[:, 3:20]
    torch.testing.assert_close(Product(weight)(inputs), inputs @ weight.t(), rtol=0, atol=1e-5)


def test_a_batch_of_products_is_one_product_each(generator):
    weight = torch.randn(2, 33, 17, generator=generator)
    bias = torch.randn(2, 33, generator=generator)
    inputs = torch.randn(2, 5, 17, generator=generator)
    addend = torch.randn(2, 5, 33, generator=generator)
    for batch in (0, 1):
        for whole, single in (
            (Product(weight)(inputs), Product(weight[batch])(inputs[batch])),
            (Product(weight, bias)(inputs), Product(weight[batch], bias[batch])(inputs[batch])),
            (Product(weight)(inputs, addend), Product(weight[batch])(inputs[batch], addend[batch])),
        ):
            torch.testing.assert_close(whole[batch], single, rtol=0, atol=1e-5)


def test_the_result_is_fresh_memory(generator):
    weight, inputs = torch.randn(9, 4, generator=generator), torch.randn(3, 4, generator=generator)
    addend = torch.randn(3, 9, generator=generator)
    before = addend.clone()
    Product(weight)(inputs, addend).zero_()
    assert torch.equal(addend, before)


def test_reduced_precision_rounds_factors_and_result_only(generator):
    weight = torch.randn(33, 300, generator=generator)
    inputs = torch.randn(5, 300, generator=generator)
    result = Product(weight, dtype=torch.bfloat16)(inputs)
    exact_sum = (inputs.bfloat16().double() @ weight.bfloat16().double().t()).float()
    assert result.dtype == torch.bfloat16
    # Half a unit in the last place of a number below 64.
    torch.testing.assert_close(result.float(), exact_sum, rtol=2**-8, atol=1e-3)


def test_a_linear_layer_gives_the_same_with_and_without_gradient(generator):
    linear = Linear(6, 4)
    inputs = torch.randn(5, 6, generator=generator)
    with_gradient = linear(inputs)
    assert with_gradient.requires_grad
    with torch.no_grad():
        torch.testing.assert_close(linear(inputs), with_gradient, rtol=0, atol=1e-6)
    assert linear(inputs, torch.bfloat16).dtype == torch.float32


def test_the_cache_makes_once_for_frozen_weights_and_anew_when_they_change():
    weight = torch.zeros(3)
    made = []
    cache = FrozenCache()

    def get(dtype=torch.float32):
        return cache.get([weight], dtype, lambda: made.append(weight.sum().item()) or len(made))

    assert get() == get() == 1
    weight.add_(1)
    assert get() == get() == 2
    assert get(torch.bfloat16) == 3
    weight.requires_grad_()
    assert get(torch.bfloat16) == 4
    assert get(torch.bfloat16) == 5
    weight.requires_grad_(False)
    assert get(torch.bfloat16) == 6


def test_the_cache_sees_weights_that_were_replaced_through_another_type():
    class Holder(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = torch.nn.Parameter(torch.full((1000,), 1.0 + 2**-20), requires_grad=False)

    holder = Holder()
    cache = FrozenCache()

    def get():
        return cache.get([holder.weight], holder.weight.dtype, lambda: holder.weight[0].item())

    assert get() == 1.0 + 2**-20
    for _ in range(5):
        holder.half().float()
        assert get() == 1.0


def test_the_cache_works_in_inference_mode():
    with torch.inference_mode():
        weight = torch.zeros(3)
        cache = FrozenCache()
        assert cache.get([weight], weight.dtype, lambda: 1) == cache.get([weight], weight.dtype, lambda: 2) == 1


def test_copies_and_pickles_of_the_cache_are_empty():
    weight = torch.zeros(3)
    cache = FrozenCache()
    cache.get([weight], weight.dtype, lambda: "made")
    for twin in (copy.deepcopy(cache), pickle.loads(pickle.dumps(cache))):
        assert twin.get([weight], weight.dtype, lambda: "made again") == "made again"


def test_few_numbers_of_rows_occur_and_rows_are_added_sparingly():
    rounded = [len(_with_common_rows(torch.ones(num_rows, 2))) for num_rows in range(1, 5000)]
    assert len(set(rounded)) < 100
    assert all(num_rows <= found <= 1.125 * num_rows for num_rows, found in enumerate(rounded, start=1))
