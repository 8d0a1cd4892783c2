"""The charts of the page: the course of a training, and those of a kind of target."""

from __future__ import annotations

import math
from collections.abc import Sequence

from darkroom.evaluation.report.facts import HistoryEntry
from darkroom.runtime.chart import Plot
from darkroom.runtime.markup import Html, element
from darkroom.targets.description import Chart

_MAX_POINTS = 500
# The height of the highest bar below a line.
_BAR_SHARE = 0.15


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
    height = high - low if high > low else 1.0
    last = max(2.0, float(history[-1]["epoch"]))
    plot = Plot({0: f"{low:.2g}", 1: f"{low + height:.3g}"}, ("1", "epoch", f"{last:.0f}"))
    if best_epoch:
        place = (best_epoch - 1) / (last - 1)
        plot.draw_line((place, 0), (place, 1), "mark")
    for points, kind in zip(lines.values(), ("train", "eval"), strict=True):
        plot.draw_curve([((x - 1) / (last - 1), (y - low) / height) for x, y in points], kind)
    ends = ", ".join(f"{key} {points[-1][1]:.4f}" for key, points in lines.items() if points)
    return plot.make_figure(
        f"at the end {ends}",
        f"{name.capitalize().replace('_', ' ')}: ",
        element("span", "train", class_="key train"),
        " ",
        element("span", "eval", class_="key eval"),
        f", epoch {best_epoch} is exported" if best_epoch else None,
    )


def make_chart(chart: Chart) -> Html:
    """Returns a chart of points with its diagonal."""
    low, length = chart.low, chart.high - chart.low
    places = {place: f"{low + place * length:.3g}" for place in (0, 0.5, 1)}
    plot = Plot(places, (places[0], chart.axis, places[1]), is_square=True)
    points = [((x - low) / length, (y - low) / length) for x, y in chart.points]
    if chart.counts:
        most = max(chart.counts)
        shares = (_BAR_SHARE * count / most for count in chart.counts)
        plot.draw_bars([(x, share) for (x, _), share in zip(points, shares, strict=True)])
        plot.draw_curve(points, "eval")
    else:
        plot.draw_dots(points, "eval")
    plot.draw_line((0, 0), (1, 1), "ideal")
    return plot.make_figure(chart.said, chart.caption)
