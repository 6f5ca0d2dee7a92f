import pytest
from allennlp.common.checks import ConfigurationError

from elmo_tasks.commands.mix_picture import check_picture, draw_mixes, mixes_figure
from elmo_tasks.commands.mix_weights import MixWeights


def models(count, mix="elmo.scalar_mix"):
    """Weights that move from the lowest layer to the others."""
    shares = [number / (2 * count) for number in range(count)]
    return [MixWeights(f"run{share:.2f}", mix, [1 - share, share / 4, share * 3 / 4], 1 + share) for share in shares]


def heights(axes):
    """Of the bars of a panel, model after model."""
    return [[bar.get_height() for bar in bars] for bars in axes.containers if hasattr(bars[0], "get_height")]


def legend(figure):
    (legend,) = figure.legends
    return [text.get_text() for text in legend.get_texts()]


@pytest.mark.parametrize("count", [1, 3, 8])
def test_up_to_eight_models_stand_side_by_side(count):
    mixes = models(count)
    figure = mixes_figure(mixes)
    weights, gamma = figure.axes
    assert heights(weights) == [mix.weights for mix in mixes]
    assert heights(gamma) == [[mix.gamma] for mix in mixes]
    assert legend(figure) == [*(mix.path for mix in mixes), "equal weights"]
    styles = {(bars[0].get_facecolor(), bars[0].get_hatch()) for bars in weights.containers}
    assert len({colour for colour, _ in styles}) == len({hatch for _, hatch in styles}) == count
    # They touch, and do not overlap.
    left = [bars[0].get_x() for bars in weights.containers]
    assert left == pytest.approx([-0.4 + 0.8 / count * number for number in range(count)])


def test_more_models_are_shown_by_mean_deviation_and_each_value():
    mixes = models(9)
    figure = mixes_figure(mixes)
    weights, _ = figure.axes
    # The shares are 0 to 8 eighteenths, their mean 4 eighteenths.
    (bars,) = heights(weights)
    assert bars == pytest.approx([14 / 18, 1 / 18, 3 / 18])
    dots = [line.get_ydata() for line in weights.lines if line.get_marker() == "o"]
    assert [list(column) for column in dots] == [[mix.weights[layer] for mix in mixes] for layer in range(3)]
    assert legend(figure) == ["mean of 9 models", "standard deviation", "each model", "equal weights"]


def test_every_mix_has_a_row_and_a_model_the_same_colour_in_each():
    first, second = models(2), models(2, mix="other.scalar_mix")
    figure = mixes_figure([*first, second[1]])
    weights, _, other_weights, _ = figure.axes
    assert [axes.get_title(loc="left") for axes in (weights, other_weights)] == ["elmo.scalar_mix", "other.scalar_mix"]
    assert weights.containers[1][0].get_facecolor() == other_weights.containers[0][0].get_facecolor()
    assert legend(figure) == ["run0.00", "run0.25", "equal weights"]


@pytest.mark.parametrize(("suffix", "start"), [(".png", b"\x89PNG"), (".svg", b"<?xml"), (".pdf", b"%PDF")])
def test_the_suffix_says_what_is_written(tmp_path, suffix, start):
    check_picture(f"mix{suffix}")
    draw_mixes(models(2), str(tmp_path / f"mix{suffix}"))
    assert (tmp_path / f"mix{suffix}").read_bytes().startswith(start)


def test_other_suffixes_are_refused():
    with pytest.raises(ConfigurationError, match=r"mix\.jpeg must end in one of \.png, \.svg, \.pdf"):
        check_picture("mix.jpeg")
