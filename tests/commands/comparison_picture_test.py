import pytest

from elmo_tasks.commands.comparison_picture import comparison_figure, draw_comparison


def variant(values, interval=None, num_folds=0):
    metric = {"mean": sum(values) / len(values), "interval_95": interval, "by_seed": values, "by_fold": values[::-1]}
    spread_over = "folds" if num_folds else "seeds"
    main = {"main_metric": "test_accuracy", "metrics": {"test_accuracy": metric}}
    return {"data": "mr/rt_val.txt", "num_folds": num_folds, "spread_over": spread_over, **main}


def lines(figure, marker):
    (axes,) = figure.axes
    return [line for line in axes.lines if line.get_marker() == marker]


def test_each_variant_has_its_mean_interval_and_values_on_a_line_of_its_own():
    variants = {"a": variant([0.5, 0.7], [0.4, 0.8]), "base": variant([0.1, 0.2], [0.0, 0.3])}
    figure = comparison_figure({"baseline": "base", "variants": variants})
    (axes,) = figure.axes
    assert [(list(line.get_xdata()), list(line.get_ydata())) for line in lines(figure, "|")] == [
        ([0.4, 0.8], [0, 0]),
        ([0.0, 0.3], [1, 1]),
    ]
    assert [line.get_xdata()[0] for line in lines(figure, "D")] == pytest.approx([0.6, 0.15])
    assert [list(line.get_xdata()) for line in lines(figure, "o")] == [[0.5, 0.7], [0.1, 0.2]]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["a", "base"]
    top, bottom = axes.get_ylim()[::-1]
    assert top < 0 < 1 < bottom
    (dotted,) = [line for line in axes.lines if line.get_linestyle() == ":"]
    assert list(dotted.get_xdata()) == pytest.approx([0.15, 0.15])
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == ["mean, 95 % interval", "each seed", "mean of base"]


def test_with_folds_the_values_are_theirs_and_one_value_has_no_interval():
    figure = comparison_figure({"baseline": "a", "variants": {"a": variant([0.5, 0.7], num_folds=2)}})
    assert [list(line.get_xdata()) for line in lines(figure, "o")] == [[0.7, 0.5]]
    assert lines(figure, "|") == []
    assert figure.legends[0].get_texts()[1].get_text() == "each fold"


def test_the_picture_is_written_whole(tmp_path):
    draw_comparison({"baseline": "a", "variants": {"a": variant([0.5, 0.7])}}, tmp_path / "comparison.png")
    assert [path.name for path in tmp_path.iterdir()] == ["comparison.png"]
    assert (tmp_path / "comparison.png").read_bytes().startswith(b"\x89PNG")
