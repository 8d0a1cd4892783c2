"""Charts as SVG, without scripts: lines or points over two axes, and histograms."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from darkroom.runtime.markup import Html, element

_WIDTH, _HEIGHT = 320, 190
_LEFT, _RIGHT, _TOP, _BOTTOM = 40, 8, 8, 24
# Of a chart whose axes are equally long.
_SQUARE = _WIDTH - _LEFT - _RIGHT + _TOP + _BOTTOM
_MAX_DOTS = 30

# From left to right and from the bottom up, both from 0 to 1.
Points = Sequence[tuple[float, float]]


class Plot:
    """A drawing with axes; what is drawn has shares of their lengths as its places.

    Args:
        ticks: Texts beside the axis on the left, by their places from 0, the bottom, to 1.
        foot: Texts below the other axis: its begin, its name, its end.
        is_square: Whether both axes are equally long.
    """

    def __init__(
        self, ticks: Mapping[float, str], foot: tuple[str, str, str], *, is_square: bool = False
    ) -> None:
        self._height = _SQUARE if is_square else _HEIGHT
        self._parts: list[Html] = []
        for place, text in ticks.items():
            self.draw_line((0, place), (1, place), "grid")
            self._write(text, _LEFT - 6, self._find(0, place)[1] + 4, "end")
        for place, anchor, text in zip((0, 0.5, 1), ("start", "middle", "end"), foot, strict=True):
            self._write(text, self._find(place, 0)[0], self._height - 6, anchor)

    def draw_line(self, start: tuple[float, float], end: tuple[float, float], class_: str) -> None:
        """Draws a straight line."""
        (x1, y1), (x2, y2) = self._find(*start), self._find(*end)
        ends = {"x1": f"{x1:.1f}", "y1": f"{y1:.1f}", "x2": f"{x2:.1f}", "y2": f"{y2:.1f}"}
        self._parts.append(element("line", class_=class_, **ends))

    def draw_curve(self, points: Points, class_: str) -> None:
        """Draws a line from point to point, and the points themselves if they are few."""
        places = " ".join(f"{x:.1f},{y:.1f}" for x, y in (self._find(*each) for each in points))
        # Numbers, which are not cut as a text of the user would be.
        line = element("polyline", points=Html(places))
        self._parts.append(element("g", line, class_=class_))
        if len(points) <= _MAX_DOTS:
            self.draw_dots(points, class_)

    def draw_dots(self, points: Points, class_: str) -> None:
        """Draws points."""
        places = (self._find(*each) for each in points)
        dots = (element("circle", cx=f"{x:.1f}", cy=f"{y:.1f}", r="2.4") for x, y in places)
        self._parts.append(element("g", *dots, class_=class_))

    def draw_bars(self, bars: Points) -> None:
        """Draws bars of these places and heights."""
        for place, share in bars:
            x, y = self._find(place, share)
            height = self._height - _BOTTOM - y
            bar = {"x": f"{x - 4:.1f}", "y": f"{y:.1f}", "width": "8", "height": f"{height:.1f}"}
            self._parts.append(element("rect", **bar))

    def make_figure(self, said: str, *caption: str | None) -> Html:
        """Returns the drawing with its caption, and its content in words."""
        view = {"viewBox": f"0 0 {_WIDTH} {self._height}"}
        drawing = element("svg", *self._parts, role="img", aria_label=said, **view)
        return element("figure", element("figcaption", *caption), drawing, class_="chart")

    def _find(self, x: float, y: float) -> tuple[float, float]:
        width, height = _WIDTH - _LEFT - _RIGHT, self._height - _TOP - _BOTTOM
        return _LEFT + x * width, _TOP + (1 - y) * height

    def _write(self, text: str, x: float, y: float, anchor: str) -> None:
        place = {"x": f"{x:.0f}", "y": f"{y:.1f}", "text-anchor": anchor}
        self._parts.append(element("text", text, **place))


def make_histogram(title: str, counts: Sequence[int], low: float, high: float) -> Html:
    """Returns how often values occur, in bins of equal width from `low` to `high`."""
    caption = element("figcaption", title)
    edges = [f"{edge:,.0f}" for edge in (low, high)]
    if len(counts) == 1:
        return element("figure", caption, element("p", f"always {edges[0]}", class_="always"))
    largest, width = max(*counts, 1), 200 / len(counts)
    bars = (
        element(
            "rect",
            x=f"{number * width + 0.5:.2f}",
            y=f"{60 - 60 * count / largest:.2f}",
            width=f"{width - 1:.2f}",
            height=f"{60 * count / largest:.2f}",
        )
        for number, count in enumerate(counts)
    )
    said = "records by bin: " + ", ".join(f"{count:,}" for count in counts)
    fit = {"viewBox": "0 0 200 60", "preserveAspectRatio": "none"}
    drawing = element("svg", *bars, role="img", aria_label=said, **fit)
    axis = element("div", *(element("span", edge) for edge in edges), class_="axis")
    return element("figure", caption, drawing, axis)
