"""
The pictures of a report as inline SVG. Colours come from the style sheet of the page, so that they follow its light or
dark mode; every mark has its numbers as a tooltip.
"""

import math
from typing import Any, List, NamedTuple, Optional, Sequence, Tuple
from xml.etree import ElementTree

from markupsafe import Markup

from elmo_tasks.commands.report_statistics import Calibration

WIDTH, HEIGHT = 440, 260
_LEFT, _RIGHT, _TOP, _BOTTOM = 54, 12, 12, 40
_COUNTS_HEIGHT = 64
_NUM_TICKS = 6


class Line(NamedTuple):
    """
    # Parameters

    name : `str`
        For tooltips.
    values : `Sequence[Optional[float]]`
        One for each epoch; the line has a gap at `None`, and at what is not finite.
    style : `str`
        Classes of the style sheet: a colour such as "series-0", and "faint".
    """

    name: str
    values: Sequence[Optional[float]]
    style: str


class _Scale(NamedTuple):
    """From values to points of the picture."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        return self.start + (value - self.low) / (self.high - self.low) * (self.end - self.start)


def line_chart(
    lines: Sequence[Line],
    epochs: Sequence[int],
    label: str,
    y_label: str,
    marked_epoch: Optional[int] = None,
    y_range: Optional[Tuple[float, float]] = None,
) -> Markup:
    """
    # Parameters

    lines : `Sequence[Line]`
    epochs : `Sequence[int]`
        Where the values are, ascending; a line may be shorter.
    label : `str`
        What the picture shows, for those who hear it.
    y_label : `str`
    marked_epoch : `Optional[int]`, optional (default = `None`)
        Gets a vertical line, as the best one.
    y_range : `Optional[Tuple[float, float]]`, optional (default = `None`)
        `None`: as the values need it.

    # Returns

    `Markup`
        An `svg` element.
    """
    values = [value for line in lines for value in line.values if _is_number(value)]
    y = _Scale(*(y_range or _roomy_range(values)), HEIGHT - _BOTTOM, _TOP)
    x = _Scale(epochs[0] - 0.5, epochs[-1] + 0.5, _LEFT, WIDTH - _RIGHT)
    svg = _svg(label, HEIGHT)
    for tick in _ticks(y.low, y.high):
        _add(svg, "line", "grid", x1=_LEFT, x2=WIDTH - _RIGHT, y1=y(tick), y2=y(tick))
        _text(svg, f"{tick:g}", _LEFT - 6, y(tick) + 4, "end")
    for tick in _ticks(epochs[0], epochs[-1]):
        if tick == int(tick):
            _text(svg, f"{tick:g}", x(tick), HEIGHT - _BOTTOM + 18, "middle")
    _text(svg, "epoch", (_LEFT + WIDTH - _RIGHT) / 2, HEIGHT - 6, "middle")
    _upright(svg, y_label, (_TOP + HEIGHT - _BOTTOM) / 2)
    if marked_epoch is not None:
        mark = _add(svg, "line", "best", x1=x(marked_epoch), x2=x(marked_epoch), y1=_TOP, y2=HEIGHT - _BOTTOM)
        _tooltip(mark, f"best epoch: {marked_epoch}")
    for line in lines:
        group = _add(svg, "g", f"line {line.style}")
        points = [
            (x(epoch), y(value)) if _is_number(value) else None  # type: ignore[arg-type]
            for epoch, value in zip(epochs, line.values)
        ]
        _add(group, "path", "", d=_path(points))
        for epoch, value, point in zip(epochs, line.values, points):
            if point is not None:
                dot = _add(group, "circle", "", cx=point[0], cy=point[1], r=2.5)
                _tooltip(dot, f"{line.name}, epoch {epoch}: {value:.4f}")
    return _markup(svg)


def reliability_diagram(calibration: Calibration, num_labels: int, label: str) -> Markup:
    """
    A bar of accuracy for each bin of confidence, with the diagonal on which they would end if confidence were accuracy;
    below, how many predictions are in each bin.

    # Parameters

    calibration : `Calibration`
    num_labels : `int`
        The most probable of them has at least their share: bins below it are left out.
    label : `str`
        What the picture shows, for those who hear it.

    # Returns

    `Markup`
        An `svg` element.
    """
    bins = [one for one in calibration.bins if one.upper >= 1 / num_labels]
    bottom = HEIGHT - _BOTTOM
    x = _Scale(bins[0].lower, 1, _LEFT, WIDTH - _RIGHT)
    y = _Scale(0, 1, bottom, _TOP)
    counts_bottom = HEIGHT + _COUNTS_HEIGHT
    count_scale = _Scale(0, max(1, *(one.num_rows for one in bins)), counts_bottom, HEIGHT + 16)
    svg = _svg(label, HEIGHT + _COUNTS_HEIGHT + 8)
    for tick in _ticks(0, 1):
        _add(svg, "line", "grid", x1=_LEFT, x2=WIDTH - _RIGHT, y1=y(tick), y2=y(tick))
        _text(svg, f"{tick:g}", _LEFT - 6, y(tick) + 4, "end")
    for tick in _ticks(x.low, 1):
        _text(svg, f"{tick:g}", x(tick), bottom + 18, "middle")
    for one in bins:
        left, width = x(one.lower) + 1, x(one.upper) - x(one.lower) - 2
        words = f"confidence {one.lower:.2f} to {one.upper:.2f}: {one.num_rows} rows"
        if one.num_rows:
            words += f", mean confidence {one.mean_confidence:.3f}, accuracy {one.accuracy:.3f}"
            _bar(svg, "bar", left, width, y(one.accuracy), bottom, words)
        _bar(svg, "count", left, width, count_scale(one.num_rows), counts_bottom, words)
        _text(svg, str(one.num_rows), left + width / 2, count_scale(one.num_rows) - 4, "middle")
    _add(svg, "line", "diagonal", x1=x(x.low), y1=y(x.low), x2=x(1), y2=y(1))
    for one in bins:
        if one.num_rows:
            dot = _add(svg, "circle", "mean", cx=x(one.mean_confidence), cy=y(one.accuracy), r=3.5)
            _tooltip(dot, f"mean confidence {one.mean_confidence:.3f}, accuracy {one.accuracy:.3f}")
    _add(svg, "line", "axis", x1=_LEFT, x2=WIDTH - _RIGHT, y1=counts_bottom, y2=counts_bottom)
    _text(svg, "confidence", (_LEFT + WIDTH - _RIGHT) / 2, bottom + 32, "middle")
    _upright(svg, "accuracy", (_TOP + bottom) / 2)
    _upright(svg, "rows", (HEIGHT + 16 + counts_bottom) / 2)
    return _markup(svg)


def _svg(label: str, height: float) -> ElementTree.Element:
    return ElementTree.Element("svg", {"viewBox": f"0 0 {WIDTH} {height:g}", "role": "img", "aria-label": label})


def _add(parent: ElementTree.Element, tag: str, classes: str, **attributes: Any) -> ElementTree.Element:
    written = {
        name: f"{round(value, 2):g}" if isinstance(value, (int, float)) else value for name, value in attributes.items()
    }
    return ElementTree.SubElement(parent, tag, {"class": classes, **written} if classes else written)


def _bar(
    svg: ElementTree.Element, classes: str, left: float, width: float, top: float, bottom: float, words: str
) -> None:
    _tooltip(_add(svg, "rect", classes, x=left, width=width, y=top, height=bottom - top), words)


def _text(svg: ElementTree.Element, words: str, x: float, y: float, anchor: str) -> None:
    _add(svg, "text", anchor, x=x, y=y).text = words


def _upright(svg: ElementTree.Element, words: str, y: float) -> None:
    element = _add(svg, "text", "middle", x=0, y=0, transform=f"translate(12 {y:g}) rotate(-90)")
    element.text = words


def _tooltip(element: ElementTree.Element, words: str) -> None:
    ElementTree.SubElement(element, "title").text = words


def _path(points: Sequence[Optional[Tuple[float, float]]]) -> str:
    """Through the points, beginning anew after each gap."""
    steps = []
    is_down = False
    for point in points:
        if point is not None:
            steps.append(f"{'L' if is_down else 'M'}{point[0]:.2f} {point[1]:.2f}")
        is_down = point is not None
    return "".join(steps)


def _is_number(value: Optional[float]) -> bool:
    return value is not None and math.isfinite(value)


def _roomy_range(values: List[Any]) -> Tuple[float, float]:
    low, high = (min(values), max(values)) if values else (0.0, 1.0)
    room = 0.05 * (high - low) or 0.05 * abs(high) or 0.5
    return low - room, high + room


def _ticks(low: float, high: float) -> List[float]:
    """Round numbers within the range, about `_NUM_TICKS` of them: multiples of 1, 2 or 5 times a power of ten."""
    if high <= low:
        return [low]
    rough = (high - low) / _NUM_TICKS
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= 0.8 * rough)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    # Rounded, so that 3 * 0.1 is 0.3.
    return [round(number * step, 12) for number in range(first, last + 1)]


def _markup(svg: ElementTree.Element) -> Markup:
    return Markup(ElementTree.tostring(svg, encoding="unicode"))
