import pytest
import torch
from allennlp.common import Lazy, Params
from allennlp.common.checks import ConfigurationError
from allennlp.modules.scalar_mix import ScalarMix

from elmo_tasks.modules.layer_mix import (
    LayerMix,
    ScalarLayerMix,
    SideBySideLayerMix,
    SingleLayerMix,
    TokenDependentLayerMix,
)

NUM_LAYERS = 3
DIM = 8


def random_layers(num_tokens: int = 5, seed: int = 0):
    generator = torch.Generator().manual_seed(seed)
    return [torch.randn(num_tokens, DIM, generator=generator) for _ in range(NUM_LAYERS)]


def mix_of(config):
    return LayerMix.from_params(Params(config), num_representations=NUM_LAYERS, bilm_dim=DIM)


def trained_a_step(mix, output_dim=DIM):
    optimizer = torch.optim.SGD(mix.parameters(), lr=0.1)
    target = torch.randn(5, output_dim, generator=torch.Generator().manual_seed(1))
    ((mix(random_layers()) - target) ** 2).sum().backward()
    optimizer.step()
    return mix


def test_scalar_mix_equals_allennlps_in_output_and_gradients():
    initial = [0.3, -1.2, 0.7]
    ours = ScalarLayerMix(NUM_LAYERS, DIM, initial=initial)
    stock = ScalarMix(NUM_LAYERS, initial_scalar_parameters=initial)
    assert [name for name, _ in ours.named_parameters()] == [name for name, _ in stock.named_parameters()]
    stock.load_state_dict(ours.state_dict())
    gradients = []
    for mix in (ours, stock):
        layers = [layer.requires_grad_() for layer in random_layers()]
        mix(layers).square().sum().backward()
        gradients.append([*(parameter.grad for parameter in mix.parameters()), *(layer.grad for layer in layers)])
    assert torch.equal(ours(layers), stock(layers))
    assert len(gradients[0]) == 7
    for mine, theirs in zip(*gradients):
        torch.testing.assert_close(mine, theirs, rtol=1e-5, atol=1e-5)


def test_normalized_weights_are_the_softmax_and_still_train():
    mix = mix_of({"type": "scalar", "initial": [0.2, 0.3, 0.5], "normalized": True, "trainable": True})
    torch.testing.assert_close(mix.weights(), torch.tensor([0.2, 0.3, 0.5]), rtol=0, atol=1e-6)
    before = [parameter.clone() for parameter in mix.parameters()]
    trained_a_step(mix)
    assert len(before) == 4
    for old, new in zip(before, mix.parameters()):
        assert not torch.equal(old, new)


def test_normalized_zeros_give_finite_parameters():
    mix = ScalarLayerMix(NUM_LAYERS, DIM, initial=[0.0, 1.0, 0.0], normalized=True)
    assert all(torch.isfinite(parameter).all() for parameter in mix.parameters())
    torch.testing.assert_close(mix.weights(), torch.tensor([0.0, 1.0, 0.0]), rtol=0, atol=1e-6)


@pytest.mark.parametrize("weights", [[0.2, 0.3, 0.6], [-0.1, 0.6, 0.5], [2.0, 3.0, 5.0]])
def test_normalized_weights_that_are_no_distribution_are_refused(weights):
    with pytest.raises(ConfigurationError, match="sum to 1"):
        ScalarLayerMix(NUM_LAYERS, DIM, initial=weights, normalized=True)


@pytest.mark.parametrize("normalized", [True, False])
def test_wrong_length_names_the_expected_one(normalized):
    with pytest.raises(ConfigurationError, match=r"length 3.*length 2"):
        ScalarLayerMix(NUM_LAYERS, DIM, initial=[0.5, 0.5], normalized=normalized)


def test_fixed_mix_has_nothing_to_train():
    mix = mix_of({"type": "scalar", "initial": [1.0, 2.0, 3.0], "trainable": False})
    assert not any(parameter.requires_grad for parameter in mix.parameters())


def test_fresh_mix_weighs_all_layers_alike():
    assert ScalarLayerMix(NUM_LAYERS, DIM).get_metrics() == pytest.approx(
        {
            "scalar_mix_layer_0_weight": 1 / 3,
            "scalar_mix_layer_1_weight": 1 / 3,
            "scalar_mix_layer_2_weight": 1 / 3,
            "scalar_mix_gamma": 1.0,
        }
    )


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("layer_norm", [True, False])
def test_extreme_parameters_under_autocast_stay_close_to_float32(dtype, layer_norm):
    mix = ScalarLayerMix(NUM_LAYERS, DIM, initial=[-9e10, 1, -9e10], layer_norm=layer_norm)
    layers = random_layers()
    expected = mix(layers)
    with torch.autocast("cpu", dtype=dtype):
        mixed = mix([layer.to(dtype) for layer in layers])
    assert mixed.dtype == torch.float32
    assert torch.isfinite(mixed).all()
    torch.testing.assert_close(mixed, expected, rtol=2e-2, atol=2e-2)
    if not layer_norm:
        torch.testing.assert_close(expected, layers[1])


@pytest.mark.parametrize("config", [{"type": "scalar"}, {"type": "token_dependent"}, {"type": "single_layer"}])
def test_layer_norm_of_a_token_ignores_the_other_tokens(config):
    mix = mix_of({**config, "layer_norm": True})
    layers = random_layers()
    alone = mix([layer[:1] for layer in layers])
    torch.testing.assert_close(mix(layers)[:1], alone)
    others = [torch.cat([layer[:1], 100 * layer[1:]]) for layer in layers]
    torch.testing.assert_close(mix(others)[:1], alone)


def test_layer_norm_brings_each_token_to_mean_zero_and_variance_one():
    mixed = SingleLayerMix(NUM_LAYERS, DIM, layer_norm=True)(random_layers())
    torch.testing.assert_close(mixed.mean(dim=-1), torch.zeros(5), rtol=0, atol=1e-5)
    torch.testing.assert_close(mixed.var(dim=-1, unbiased=False), torch.ones(5), rtol=0, atol=1e-5)


@pytest.mark.parametrize(("layer", "index"), [(0, 0), (1, 1), (2, 2), (-1, 2), (-3, 0)])
def test_single_layer_is_that_layer_and_has_no_parameters(layer, index):
    mix = mix_of({"type": "single_layer", "layer": layer})
    layers = random_layers()
    assert torch.equal(mix(layers), layers[index])
    assert list(mix.parameters()) == []
    assert list(mix.get_metrics().values()) == [float(i == index) for i in range(NUM_LAYERS)]


@pytest.mark.parametrize("layer", [3, -4])
def test_layer_that_is_not_there_is_refused(layer):
    with pytest.raises(ConfigurationError, match=f"from -3 to 2, but is {layer}"):
        SingleLayerMix(NUM_LAYERS, DIM, layer=layer)


def test_token_dependent_mix_starts_as_the_equal_mix():
    layers = random_layers()
    torch.testing.assert_close(TokenDependentLayerMix(NUM_LAYERS, DIM)(layers), sum(layers) / NUM_LAYERS)


def test_token_dependent_mix_is_a_softmax_over_the_scores_of_a_tokens_layers():
    mix = TokenDependentLayerMix(NUM_LAYERS, DIM)
    with torch.no_grad():
        for number, scorer in enumerate(mix.scorers):
            scorer.weight[0, number] = 1.0
            scorer.bias[0] = 0.5 * number
        mix.gamma[0] = 2.0
    layers = random_layers()
    mixed = mix(layers)
    for token in range(5):
        scores = torch.stack([layers[number][token, number] + 0.5 * number for number in range(NUM_LAYERS)])
        weights = scores.exp() / scores.exp().sum()
        expected = 2.0 * sum(weights[number] * layers[number][token] for number in range(NUM_LAYERS))
        torch.testing.assert_close(mixed[token], expected)


def test_token_dependent_mix_trains_every_parameter():
    mix = TokenDependentLayerMix(NUM_LAYERS, DIM)
    before = [parameter.clone() for parameter in mix.parameters()]
    trained_a_step(mix)
    for old, new in zip(before, mix.parameters()):
        assert not torch.equal(old, new)


def test_token_dependent_mix_reports_the_mean_weights_since_the_last_reset():
    mix = trained_a_step(TokenDependentLayerMix(NUM_LAYERS, DIM))
    mix.get_metrics(reset=True)
    assert set(mix.get_metrics()) == {"scalar_mix_gamma"}
    first, second = random_layers(2, seed=2), random_layers(6, seed=3)
    mix(first)
    mix(second)
    metrics = mix.get_metrics(reset=True)
    layers = [torch.cat(pair) for pair in zip(first, second)]
    scores = torch.cat([scorer(layer) for scorer, layer in zip(mix.scorers, layers)], dim=-1)
    expected = scores.softmax(dim=-1).mean(dim=0)
    for number in range(NUM_LAYERS):
        assert metrics[f"scalar_mix_layer_{number}_weight"] == pytest.approx(expected[number].item(), abs=1e-6)
    assert set(mix.get_metrics()) == {"scalar_mix_gamma"}


def test_sums_of_weights_are_no_buffer_that_another_process_would_overwrite():
    mix = TokenDependentLayerMix(NUM_LAYERS, DIM)
    mix(random_layers(2, seed=2))
    assert mix.get_metrics()["scalar_mix_layer_0_weight"] == pytest.approx(1 / NUM_LAYERS)
    assert list(mix.buffers()) == []


@pytest.mark.parametrize("dtype", [torch.float16, torch.float64])
def test_token_dependent_mix_works_in_other_types(dtype):
    layers = random_layers(2, seed=2)
    mix = trained_a_step(TokenDependentLayerMix(NUM_LAYERS, DIM))
    expected = mix.weights(layers)
    torch.testing.assert_close(mix.to(dtype).weights(layers).float(), expected, rtol=0, atol=1e-3)


def test_summed_directions_are_the_sum_of_both_halves():
    layers = [torch.tensor([[1.0, 2.0, 3.0, 4.0, 50.0, 60.0, 70.0, 80.0], [0.5] * 8]) for _ in range(NUM_LAYERS)]
    mix = mix_of({"type": "single_layer", "layer": 1, "sum_directions": True})
    assert mix(layers).tolist() == [[51.0, 62.0, 73.0, 84.0], [1.0] * 4]
    assert mix.get_output_dim() == DIM // 2


@pytest.mark.parametrize("layer_norm", [False, True])
@pytest.mark.parametrize("config", [{"type": "scalar", "initial": [0.5, -1.0, 2.0]}, {"type": "token_dependent"}])
def test_summed_directions_are_mixed_as_layers_of_half_the_size(config, layer_norm):
    config = {**config, "layer_norm": layer_norm}
    mix = trained_a_step(mix_of({**config, "sum_directions": True}), DIM // 2)
    half = LayerMix.from_params(Params(config), num_representations=NUM_LAYERS, bilm_dim=DIM // 2)
    half.load_state_dict(mix.state_dict())
    layers = random_layers(seed=2)
    assert torch.equal(mix(layers), half([layer[:, : DIM // 2] + layer[:, DIM // 2 :] for layer in layers]))
    assert not torch.allclose(mix(layers), half([layer[:, : DIM // 2] for layer in layers]))


def test_weights_of_tokens_are_asked_for_with_whole_layers_though_directions_are_summed():
    layers = random_layers()
    mix = trained_a_step(mix_of({"type": "token_dependent", "sum_directions": True}), DIM // 2)
    summed = [layer[:, : DIM // 2] + layer[:, DIM // 2 :] for layer in layers]
    expected = torch.cat([scorer(layer) for scorer, layer in zip(mix.scorers, summed)], dim=1).softmax(dim=1)
    torch.testing.assert_close(mix.weights(layers), expected)
    assert expected.std(dim=0).min() > 1e-3


def test_mixes_side_by_side_are_each_as_alone():
    configs = [{"type": "single_layer", "layer": 0}, {"type": "scalar", "initial": [0.5, -1.0, 2.0]}]
    mix = mix_of({"type": "side_by_side", "mixes": configs})
    layers = random_layers()
    assert torch.equal(mix(layers), torch.cat([mix_of(config)(layers) for config in configs], dim=-1))
    assert mix.get_output_dim() == 2 * DIM
    assert mix_of(configs[0]).get_output_dim() == DIM


def test_mixes_side_by_side_report_their_weights_apart():
    metrics = SideBySideLayerMix(
        NUM_LAYERS, DIM, [Lazy(SingleLayerMix, constructor_extras={"layer": 1}), Lazy(ScalarLayerMix)]
    ).get_metrics()
    assert [metrics[f"scalar_mix_0_layer_{layer}_weight"] for layer in range(NUM_LAYERS)] == [0.0, 1.0, 0.0]
    assert metrics["scalar_mix_1_layer_1_weight"] == pytest.approx(1 / 3)
    assert metrics["scalar_mix_1_gamma"] == 1.0


def test_no_mixes_side_by_side_are_refused():
    with pytest.raises(ConfigurationError, match="`mixes` must hold at least one mix"):
        mix_of({"type": "side_by_side", "mixes": []})


@pytest.mark.parametrize("config", [{"type": "scalar"}, {"type": "token_dependent"}, {"type": "single_layer"}])
def test_no_tokens_give_no_vectors(config):
    assert mix_of(config)(random_layers(0)).shape == (0, DIM)


def test_wrong_number_of_layers_is_refused():
    with pytest.raises(ConfigurationError, match="3 layers, but is given 2"):
        ScalarLayerMix(NUM_LAYERS, DIM)(random_layers()[:2])
