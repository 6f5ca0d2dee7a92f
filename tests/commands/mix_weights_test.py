import pytest

from elmo_tasks.commands.mix_weights import MixSpread, MixWeights, grouped, spread


def test_mixes_of_the_same_name_and_size_are_compared():
    first, second = (MixWeights(path, "a.scalar_mix", [0.5, 0.5], 1.0) for path in ("one", "two"))
    larger = MixWeights("three", "a.scalar_mix", [0.2, 0.3, 0.5], 1.0)
    other = MixWeights("one", "b.scalar_mix", [0.5, 0.5], 1.0)
    assert grouped([first, other, second, larger]) == [[first, second], [other], [larger]]


def test_spread_is_that_of_a_sample():
    group = [MixWeights("one", "mix", [0.2, 0.8], 1.0), MixWeights("two", "mix", [0.6, 0.4], 3.0)]
    # Two values that differ by d have the deviation d / sqrt(2).
    deviations = pytest.approx([0.4 / 2**0.5, 0.4 / 2**0.5, 2**0.5])
    assert spread(group) == MixSpread("mix", 2, pytest.approx([0.4, 0.6, 2.0]), deviations)
