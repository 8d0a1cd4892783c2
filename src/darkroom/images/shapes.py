"""Shapes over a picture: as SVG in a page, and drawn into a picture that is a file."""

from __future__ import annotations

from collections.abc import Sequence

from PIL import Image, ImageDraw

from darkroom.runtime.markup import Html, element, join_html
from darkroom.runtime.style import COLORS
from darkroom.targets.description import Shape

_LINE_PIXELS = 2
# Of a line below the colored one, which is seen on any photograph.
_BELOW = "#000"


def make_picture(
    source: str, name: str, shapes: Sequence[Shape] = (), size: tuple[int, int] = (1, 1)
) -> Html:
    """Returns a thumbnail with its shapes as part of a page; each of them says its text.

    Args:
        source: Its `data:` URI.
        name: What it is, in words.
        shapes: What is over it; an image without any stays an `img`.
        size: Width and height of the image, in pixels or other units.
    """
    if not shapes:
        return element("img", src=source, alt=name, class_="thumb")
    width, height = map(str, size)
    whole = {"width": width, "height": height, "preserveAspectRatio": "none"}
    image = element("image", href=source, **whole)
    return draw_over(shapes, size, image, class_="thumb", role="img", aria_label=name)


def draw_over(
    shapes: Sequence[Shape], size: tuple[int, int], *below: Html, **attributes: str
) -> Html:
    """Returns shapes as SVG over an image of a width and a height, or over what is below them."""
    drawn = (_make_rectangle(shape, *size) for shape in shapes)
    view = {"viewBox": f"0 0 {size[0]} {size[1]}"}
    return element("svg", *below, *drawn, **attributes, **view)


def _make_rectangle(shape: Shape, width: int, height: int) -> Html:
    place = {
        "x": shape.left * width,
        "y": shape.top * height,
        "width": (shape.right - shape.left) * width,
        "height": (shape.bottom - shape.top) * height,
    }
    numbers = {name: f"{value:.4g}" for name, value in place.items()}
    dash = {"stroke_dasharray": "5 4"} if shape.tone is None else {}
    return join_html(
        element("rect", stroke=_BELOW, **numbers),
        element("rect", element("title", shape.text), stroke=_pick(shape), **numbers, **dash),
    )


def _pick(shape: Shape) -> str:
    return "#fff" if shape.tone is None else COLORS[shape.tone % len(COLORS)]


def draw_shapes(picture: Image.Image, shapes: Sequence[Shape]) -> None:
    """Draws shapes into an RGB picture, without their texts."""
    draw, (width, height) = ImageDraw.Draw(picture), picture.size
    for shape in shapes:
        left, right = (round(side * (width - 1)) for side in (shape.left, shape.right))
        top, bottom = (round(side * (height - 1)) for side in (shape.top, shape.bottom))
        draw.rectangle((left - 1, top - 1, right + 1, bottom + 1), outline=_BELOW)
        draw.rectangle((left, top, right, bottom), outline=_pick(shape), width=_LINE_PIXELS)
