"""A comparison as a picture, to be read in print and without colours too."""

from pathlib import Path

from matplotlib.figure import Figure

from elmo_tasks.commands.comparison import Comparison
from elmo_tasks.common.files import written_whole

# Two of the colours of Okabe and Ito, which differ for the colour-blind; the markers differ in print.
_BLUE, _VERMILION = "#0072B2", "#D55E00"


def draw_comparison(comparison: Comparison, path: Path) -> None:
    """Writes a PNG file."""
    with written_whole(path) as partial:
        comparison_figure(comparison).savefig(partial, dpi=200, format="png")


def comparison_figure(comparison: Comparison) -> Figure:
    """
    # Parameters

    comparison : `Dict[str, Any]`
        See `comparison_of`; the baseline is finished.

    # Returns

    `matplotlib.figure.Figure`
        The main metric of the baseline, a line for each variant: the mean, its 95 % interval, and the value of each
        fold, or of each seed where there are no folds.
    """
    variants = comparison["variants"]
    baseline = variants[comparison["baseline"]]
    name = baseline["main_metric"]
    figure = Figure(figsize=(7.0, 1.6 + 0.4 * len(variants)), layout="constrained")
    axes = figure.subplots()
    shown = [variant for variant in variants if name in variants[variant]["metrics"]]
    for place, variant in enumerate(shown):
        metric = variants[variant]["metrics"][name]
        values = metric["by_fold" if baseline["num_folds"] else "by_seed"]
        dots = axes.plot(values, [place + 0.2] * len(values), "o", markersize=3.5, color=_VERMILION, mfc="white")
        if metric["interval_95"] is not None:
            axes.plot(metric["interval_95"], [place] * 2, "|-", color=_BLUE, linewidth=1.5, markersize=9)
        means = axes.plot(metric["mean"], place, "D", markersize=5.5, color=_BLUE)
    line = axes.axvline(baseline["metrics"][name]["mean"], color="black", linestyle=":", linewidth=1, zorder=0)
    axes.set_yticks(range(len(shown)), shown)
    axes.set_ylim(len(shown) - 0.4, -0.6)  # the first on top
    axes.spines[["top", "right"]].set_visible(False)
    axes.set_xlabel(name)
    axes.set_title(baseline["data"], fontsize=9, loc="left")
    handles = {
        "mean, 95 % interval": means[0],
        f"each {baseline['spread_over'][:-1]}": dots[0],
        f"mean of {comparison['baseline']}": line,
    }
    figure.legend(list(handles.values()), list(handles), loc="outside lower center", ncols=3, fontsize=8, frameon=False)
    return figure
