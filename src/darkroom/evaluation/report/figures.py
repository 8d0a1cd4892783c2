"""Charts of the page, as SVG: the course of a training, and those of a kind of target."""

from __future__ import annotations

import math
from collections.abc import Sequence

from darkroom.evaluation.report.facts import HistoryEntry
from darkroom.runtime.markup import Html, element
from darkroom.targets.description import Chart

_WIDTH, _HEIGHT = 320, 190
_LEFT, _RIGHT, _TOP, _BOTTOM = 40, 8, 8, 24
_MAX_POINTS = 500
# Of a chart whose axes are equally long.
_SQUARE = _WIDTH - _LEFT - _RIGHT + _TOP + _BOTTOM


def make_curve(history: Sequence[HistoryEntry], name: str, best_epoch: int) -> Html | None:
    """Returns the chart of a metric on train and eval; None if there is no such metric.

    Args:
        history: One entry an epoch.
        name: Keras's name of the metric.
        best_epoch: The epoch that is marked; 0 for none.
    """
    entries = history[:: max(1, math.ceil(len(history) / _MAX_POINTS))]
    lines = {
        key: [
            (float(entry["epoch"]), float(entry[key]))
            for entry in entries
            if key in entry and math.isfinite(float(entry[key]))
        ]
        for key in (name, f"val_{name}")
    }
    values = [value for points in lines.values() for _, value in points]
    if not values:
        return None
    low, high = min(0.0, *values), max(values)
    high = high if high > low else low + 1
    last = max(2.0, float(history[-1]["epoch"]))
    drawn = [
        _draw_line(
            [(_scale_x((x - 1) / (last - 1)), _scale_y(y, low, high)) for x, y in points], kind
        )
        for points, kind in zip(lines.values(), ("train", "eval"), strict=True)
    ]
    mark = None
    if best_epoch:
        x = f"{_scale_x((best_epoch - 1) / (last - 1)):.1f}"
        mark = element("line", x1=x, x2=x, y1=str(_TOP), y2=str(_HEIGHT - _BOTTOM), class_="mark")
    axes = _make_axes(
        [(low, f"{low:.2g}"), (high, f"{high:.3g}")], _HEIGHT, ("1", "epoch", f"{last:.0f}")
    )
    caption = element(
        "figcaption",
        f"{name.capitalize().replace('_', ' ')}: ",
        element("span", "train", class_="key train"),
        " ",
        element("span", "eval", class_="key eval"),
        f", epoch {best_epoch} is exported" if best_epoch else None,
    )
    ends = ", ".join(f"{key} {points[-1][1]:.4f}" for key, points in lines.items() if points)
    chart = _make_svg(_HEIGHT, f"at the end {ends}", *axes, mark, *drawn)
    return element("figure", caption, chart, class_="chart")


def make_chart(chart: Chart) -> Html:
    """Returns a chart of points with its diagonal."""
    low, high = chart.low, chart.high
    points = [
        (_scale_x((x - low) / (high - low)), _scale_y(y, low, high, _SQUARE))
        for x, y in chart.points
    ]
    most = max(chart.counts, default=0)
    bars = [
        element(
            "rect",
            x=f"{x - 4:.1f}",
            y=f"{_SQUARE - _BOTTOM - 40 * count / most:.1f}",
            width="8",
            height=f"{40 * count / most:.1f}",
        )
        for (x, _), count in zip(points, chart.counts, strict=False)
    ]
    ideal = element(
        "line",
        x1=str(_LEFT),
        y1=str(_SQUARE - _BOTTOM),
        x2=str(_WIDTH - _RIGHT),
        y2=str(_TOP),
        class_="ideal",
    )
    values = (low, (low + high) / 2, high)
    ticks = [(value, f"{value:.3g}") for value in values]
    axes = _make_axes(ticks, _SQUARE, (ticks[0][1], chart.axis, ticks[-1][1]))
    drawn = _draw_line(points, "eval") if chart.counts else _draw_dots(points, "eval")
    drawing = _make_svg(_SQUARE, chart.said, *bars, *axes, drawn, ideal)
    return element("figure", element("figcaption", chart.caption), drawing, class_="chart")


def _scale_x(share: float) -> float:
    return _LEFT + share * (_WIDTH - _LEFT - _RIGHT)


def _scale_y(value: float, low: float, high: float, height: int = _HEIGHT) -> float:
    return height - _BOTTOM - (value - low) / (high - low) * (height - _TOP - _BOTTOM)


def _make_svg(height: int, said: str, *parts: Html | None) -> Html:
    view = {"viewBox": f"0 0 {_WIDTH} {height}"}
    return element("svg", *parts, role="img", aria_label=said, **view)


def _draw_line(points: Sequence[tuple[float, float]], kind: str) -> Html:
    places = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    dots = _draw_dots(points, kind) if len(points) <= 30 else None
    # Numbers, which are not cut as a text of the user would be.
    return element("g", element("polyline", points=Html(places)), dots, class_=kind)


def _draw_dots(points: Sequence[tuple[float, float]], kind: str) -> Html:
    dots = (element("circle", cx=f"{x:.1f}", cy=f"{y:.1f}", r="2.4") for x, y in points)
    return element("g", *dots, class_=kind)


def _make_axes(
    ticks: Sequence[tuple[float, str]], height: int, foot: tuple[str, str, str]
) -> list[Html]:
    """Returns lines with their texts, from the lowest to the highest, and what is below them."""
    made = []
    low, high = ticks[0][0], ticks[-1][0]
    for value, text in ticks:
        y = _scale_y(value, low, high, height)
        ends = {"x1": str(_LEFT), "x2": str(_WIDTH - _RIGHT), "y1": f"{y:.1f}", "y2": f"{y:.1f}"}
        made.append(element("line", class_="grid", **ends))
        place = {"x": str(_LEFT - 6), "y": f"{y + 4:.1f}", "text-anchor": "end"}
        made.append(element("text", text, **place))
    for share, anchor, text in zip((0, 0.5, 1), ("start", "middle", "end"), foot, strict=True):
        place = {"x": f"{_scale_x(share):.0f}", "y": str(height - 6), "text-anchor": anchor}
        made.append(element("text", text, **place))
    return made
