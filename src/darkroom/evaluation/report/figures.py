"""Charts of the page, as SVG: the course of a training, and how well scores are calibrated."""

from __future__ import annotations

import math
from collections.abc import Sequence

from darkroom.evaluation.report.facts import HistoryEntry
from darkroom.evaluation.scores.metrics import Bin
from darkroom.runtime.markup import Html, element

_WIDTH, _HEIGHT = 320, 190
_LEFT, _RIGHT, _TOP, _BOTTOM = 40, 8, 8, 24
_MAX_POINTS = 500
_VIEW = {"viewBox": f"0 0 {_WIDTH} {_HEIGHT}"}


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
        [(low, f"{low:.2g}"), (high, f"{high:.3g}")], low, high, "epoch", f"{last:.0f}"
    )
    caption = element(
        "figcaption",
        f"{name.capitalize()}: ",
        element("span", "train", class_="key train"),
        " ",
        element("span", "eval", class_="key eval"),
        f", epoch {best_epoch} is exported" if best_epoch else None,
    )
    ends = ", ".join(f"{key} {points[-1][1]:.4f}" for key, points in lines.items() if points)
    chart = element(
        "svg", *axes, mark, *drawn, role="img", aria_label=f"at the end {ends}", **_VIEW
    )
    return element("figure", caption, chart, class_="chart")


def make_calibration(bins: Sequence[Bin]) -> Html:
    """Returns the chart of how often predictions of a score are right."""
    most = max(each.count for each in bins)
    points = [(_scale_x(each.confidence), _scale_y(each.accuracy, 0, 1)) for each in bins]
    bars = [
        element(
            "rect",
            x=f"{_scale_x(each.confidence) - 4:.1f}",
            y=f"{_HEIGHT - _BOTTOM - 40 * each.count / most:.1f}",
            width="8",
            height=f"{40 * each.count / most:.1f}",
        )
        for each in bins
    ]
    ideal = element(
        "line",
        x1=str(_LEFT),
        y1=str(_HEIGHT - _BOTTOM),
        x2=str(_WIDTH - _RIGHT),
        y2=str(_TOP),
        class_="mark",
    )
    axes = _make_axes([(0.0, "0"), (0.5, "0.5"), (1.0, "1")], 0, 1, "score", "1")
    said = ", ".join(f"{b.confidence:.2f}: {b.accuracy:.2f} of {b.count}" for b in bins)
    chart = element(
        "svg",
        *bars,
        *axes,
        ideal,
        _draw_line(points, "eval"),
        role="img",
        aria_label=f"accuracy by score: {said}",
        **_VIEW,
    )
    caption = element(
        "figcaption",
        "How often predictions of a score are right. On the dashed line, a score is a true "
        "probability. Bars: how many images.",
    )
    return element("figure", caption, chart, class_="chart")


def _scale_x(share: float) -> float:
    return _LEFT + share * (_WIDTH - _LEFT - _RIGHT)


def _scale_y(value: float, low: float, high: float) -> float:
    return _HEIGHT - _BOTTOM - (value - low) / (high - low) * (_HEIGHT - _TOP - _BOTTOM)


def _draw_line(points: Sequence[tuple[float, float]], kind: str) -> Html:
    places = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    dots = (
        element("circle", cx=f"{x:.1f}", cy=f"{y:.1f}", r="2.4")
        for x, y in (points if len(points) <= 30 else ())
    )
    # Numbers, which are not cut as a text of the user would be.
    return element("g", element("polyline", points=Html(places)), *dots, class_=kind)


def _make_axes(
    ticks: Sequence[tuple[float, str]], low: float, high: float, name: str, last: str
) -> list[Html]:
    made = []
    for value, text in ticks:
        y = _scale_y(value, low, high)
        ends = {"x1": str(_LEFT), "x2": str(_WIDTH - _RIGHT), "y1": f"{y:.1f}", "y2": f"{y:.1f}"}
        made.append(element("line", class_="grid", **ends))
        place = {"x": str(_LEFT - 6), "y": f"{y + 4:.1f}", "text-anchor": "end"}
        made.append(element("text", text, **place))
    foot = {"y": str(_HEIGHT - 6)}
    made.append(element("text", name, x=str(_LEFT), **foot))
    end = {"x": str(_WIDTH - _RIGHT), "text-anchor": "end", **foot}
    made.append(element("text", last, **end))
    return made
