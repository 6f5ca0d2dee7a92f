"""The weights of layer mixes as a picture, to be told apart without colours too."""

import os
from typing import Any, Dict, List

from allennlp.common.checks import ConfigurationError
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from elmo_tasks.commands.mix_weights import MixWeights, grouped, spread

SUFFIXES = (".png", ".svg", ".pdf")

# The colours of Okabe and Ito, which differ for the colour-blind, and patterns, which differ in print.
_STYLES: List[Dict[str, Any]] = [
    {"color": "#0072B2", "hatch": ""},
    {"color": "#E69F00", "hatch": "//"},
    {"color": "#009E73", "hatch": ".."},
    {"color": "#CC79A7", "hatch": "xx"},
    {"color": "#56B4E9", "hatch": "\\\\"},
    {"color": "#D55E00", "hatch": "--"},
    {"color": "#F0E442", "hatch": "++"},
    {"color": "#999999", "hatch": "oo"},
]
_MAX_LABELLED = 3


def check_picture(path: str) -> None:
    """
    # Raises

    ConfigurationError
        Where pictures are not written in such files.
    """
    if not path.lower().endswith(SUFFIXES):
        suffix = os.path.splitext(path)[1]
        raise ConfigurationError(f"{path} must end in one of {', '.join(SUFFIXES)}, but ends in {suffix!r}")


def draw_mixes(mixes: List[MixWeights], path: str) -> None:
    """
    # Parameters

    mixes : `List[MixWeights]`
    path : `str`
        Ends in `.png`, `.svg` or `.pdf`.
    """
    mixes_figure(mixes).savefig(path, dpi=200)


def mixes_figure(mixes: List[MixWeights]) -> Figure:
    """
    # Parameters

    mixes : `List[MixWeights]`

    # Returns

    `matplotlib.figure.Figure`
        A row for each mix: the weight of each layer, and gamma. Up to eight models stand side by side; of more, their
        mean, standard deviation and each value.
    """
    groups = grouped(mixes)
    models = list(dict.fromkeys(mix.path for mix in mixes))
    num_layers = max(len(mix.weights) for mix in mixes)
    figure = Figure(figsize=(7.0, 3.0 * len(groups) + 0.2 * min(len(models), len(_STYLES))), layout="constrained")
    all_axes = figure.subplots(len(groups), 2, squeeze=False, gridspec_kw={"width_ratios": [num_layers, 1]})
    handles: Dict[str, Any] = {}
    for group, (weights_axes, gamma_axes) in zip(groups, all_axes):
        values = [[*mix.weights, mix.gamma] for mix in group]
        draw = _draw_each if len(group) <= len(_STYLES) else _draw_spread
        for axes, columns in ((weights_axes, slice(0, -1)), (gamma_axes, slice(-1, None))):
            handles.update(draw(axes, group, models, columns, [row[columns] for row in values]))
            axes.spines[["top", "right"]].set_visible(False)
            axes.margins(y=0.1)
        num_layers = len(group[0].weights)
        equal = weights_axes.axhline(1 / num_layers, color="black", linestyle=":", linewidth=1, zorder=0)
        names = ["layer 0\n(token vectors)", *(f"layer {layer}" for layer in range(1, num_layers))]
        weights_axes.set_xticks(range(num_layers), names)
        weights_axes.set_ylabel("weight")
        weights_axes.set_title(group[0].mix, fontsize=9, loc="left")
        gamma_axes.set_xticks([0], ["gamma"])
        gamma_axes.set_xlim(-0.5, 0.5)
    handles["equal weights"] = equal
    figure.legend(list(handles.values()), list(handles), loc="outside lower center", fontsize=8, frameon=False)
    return figure


def _draw_each(
    axes: Axes, group: List[MixWeights], models: List[str], columns: slice, values: List[List[float]]
) -> Dict[str, Any]:
    """Bars of all models side by side; gives what the legend shows for each."""
    width = 0.8 / len(group)
    handles: Dict[str, Any] = {}
    for number, (mix, heights) in enumerate(zip(group, values)):
        left = -0.4 + number * width
        places = [column + left for column in range(len(heights))]
        style = _STYLES[models.index(mix.path) % len(_STYLES)]
        bars = axes.bar(places, heights, width, align="edge", edgecolor="black", linewidth=0.6, **style)
        if len(group) <= _MAX_LABELLED:
            axes.bar_label(
                bars, fmt="%.3f", fontsize=7, padding=2, bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.5}
            )
        handles[mix.path] = bars
    return handles


def _draw_spread(
    axes: Axes, group: List[MixWeights], models: List[str], columns: slice, values: List[List[float]]
) -> Dict[str, Any]:
    """Bars of means, with deviations and all values; gives what the legend shows."""
    _, num_models, mean, standard_deviation = spread(group)
    places = range(len(values[0]))
    bars = axes.bar(places, mean[columns], 0.7, color="#BBDDF2", edgecolor="black", linewidth=0.6)
    errors = axes.errorbar(
        places, mean[columns], standard_deviation[columns], fmt="none", ecolor="black", elinewidth=1.2, capsize=5
    )
    for place in places:
        column = [row[place] for row in values]
        # Beside one another, so that equal values can be seen.
        across = [place - 0.25 + 0.5 * number / (len(column) - 1) for number in range(len(column))]
        (dots,) = axes.plot(across, column, "o", markersize=3, color="#D55E00", markeredgewidth=0)
    return {
        f"mean of {num_models} models": bars,
        "standard deviation": errors,
        "each model": dots,
    }
