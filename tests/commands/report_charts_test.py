import math
import re
from xml.etree import ElementTree

import pytest

from elmo_tasks.commands.report_charts import Line, _ticks, line_chart, reliability_diagram
from elmo_tasks.commands.report_statistics import calibration


def elements(svg, tag):
    return list(ElementTree.fromstring(svg).iter(tag))


def points(svg):
    """Of the only line."""
    numbers = re.findall(r"[ML]([\d.]+) ([\d.]+)", elements(svg, "path")[0].get("d"))
    return [(float(x), float(y)) for x, y in numbers]


def tooltips(svg):
    return [element.text for element in elements(svg, "title")]


def chart(*values, **options):
    return line_chart([Line("run", values, "series-0")], list(range(len(values))), "a chart", "loss", **options)


def test_points_lie_at_their_values():
    (x0, y0), (x1, y1), (x2, y2) = points(chart(0.0, 1.0, 0.25))
    assert x1 - x0 == pytest.approx(x2 - x1, abs=0.02)
    assert y1 < y2 < y0  # upwards
    assert (y0 - y2) / (y0 - y1) == pytest.approx(0.25, abs=1e-3)


def test_every_point_says_its_value():
    assert tooltips(chart(0.5, 0.125)) == ["run, epoch 0: 0.5000", "run, epoch 1: 0.1250"]


def test_best_epoch_is_marked_where_it_is():
    svg = chart(0.5, 0.25, 0.75, marked_epoch=1)
    (mark,) = (line for line in elements(svg, "line") if line.get("class") == "best")
    assert float(mark.get("x1")) == pytest.approx(points(svg)[1][0], abs=0.01)


@pytest.mark.parametrize("missing", [None, math.nan, math.inf])
def test_a_line_has_a_gap_at_what_is_no_number(missing):
    svg = chart(0.5, missing, 0.25, 0.125)
    assert re.sub("[^ML]", "", elements(svg, "path")[0].get("d")) == "MML"
    assert len(tooltips(svg)) == 3


def test_one_epoch_and_equal_values_have_a_chart():
    assert len(points(chart(0.5))) == 1
    assert len({y for _, y in points(chart(0.5, 0.5))}) == 1


def test_chart_without_a_number_is_empty():
    assert points(chart(None, None)) == []


def test_words_are_escaped():
    svg = line_chart([Line("<script>&", [1.0], "series-0")], [0], '"><script>', "<b>")
    assert "<script" not in svg
    assert "<b>" not in svg
    assert tooltips(svg) == ["<script>&, epoch 0: 1.0000"]


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (0, 1, [0, 0.2, 0.4, 0.6, 0.8, 1]),
        (0, 0.31, [0, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3]),
        (0, 27, [0, 5, 10, 15, 20, 25]),
        (0, 3, [0, 0.5, 1, 1.5, 2, 2.5, 3]),
        (987, 1013, [990, 995, 1000, 1005, 1010]),
        (5, 5, [5]),
    ],
)
def test_ticks_are_round_numbers(low, high, expected):
    assert _ticks(low, high) == expected


def test_epochs_have_whole_numbers():
    words = [element.text for element in elements(chart(0.1, 0.2, 0.3, 0.4), "text")]
    assert "0.5" not in words
    assert {"0", "1", "2", "3"} <= set(words)


def test_reliability_diagram_has_a_bar_for_each_bin_with_rows():
    result = calibration([0.55, 0.58, 0.95, 0.97, 0.99, 0.94], [True, False, True, True, True, True], num_bins=10)
    svg = reliability_diagram(result, 2, "calibration")
    half, whole = (rect for rect in elements(svg, "rect") if rect.get("class") == "bar")
    assert float(whole.get("height")) == pytest.approx(2 * float(half.get("height")), abs=0.02)
    assert "confidence 0.50 to 0.60: 2 rows, mean confidence 0.565, accuracy 0.500" in tooltips(svg)
    assert "confidence 0.70 to 0.80: 0 rows" in tooltips(svg)


def test_reliability_diagram_begins_at_the_least_confidence_that_can_be():
    svg = reliability_diagram(calibration([0.9], [True], num_bins=10), 4, "calibration")
    counts = [rect for rect in elements(svg, "rect") if rect.get("class") == "count"]
    assert len(counts) == 8  # from 0.2: a quarter is the least of four labels


def test_rows_on_the_line_between_bins_are_drawn():
    svg = reliability_diagram(calibration([0.5, 0.5], [True, False], num_bins=10), 2, "calibration")
    assert "confidence 0.40 to 0.50: 2 rows, mean confidence 0.500, accuracy 0.500" in tooltips(svg)
