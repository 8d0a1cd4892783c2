"""A chart of horizontal bars in two columns, drawn with Pillow."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass

from PIL import Image, ImageDraw, ImageFont

WIDTH, ROW_HEIGHT, HEAD_HEIGHT = 1200, 34, 92
LABEL_WIDTH, NUMBER_WIDTH = 280, 80
BAR_WIDTHS = (500, 160)
COLORS = ((38, 98, 166), (219, 122, 42))
TITLE_SIZE, TEXT_SIZE = 20, 16

_MARGIN, _BAR_MARGIN = 16, 6
_INK, _GRAY = (32, 32, 32), (120, 120, 120)


@dataclass(frozen=True)
class Bars:
    """A row of the chart.

    Attributes:
        label: The name of the row.
        values: The value of each column, from 0; empty if there is nothing to show.
        texts: The values as text; only the reason if there is nothing to show.
        is_marked: Whether the label is bold.
    """

    label: str
    values: tuple[float, ...]
    texts: tuple[str, ...]
    is_marked: bool = False


def draw_chart(
    title: str, columns: Sequence[str], rows: Sequence[Bars], scales: Sequence[float]
) -> bytes:
    """Returns a PNG.

    Args:
        title: The title of the chart.
        columns: The titles of the two columns.
        rows: The rows, from top to bottom.
        scales: For each column, the value of a bar with the full width of `BAR_WIDTHS`.
    """
    picture = Image.new("RGB", (WIDTH, HEAD_HEIGHT + len(rows) * ROW_HEIGHT + _MARGIN), "white")
    draw = ImageDraw.Draw(picture)
    draw.text((_MARGIN, _MARGIN), title, _INK, ImageFont.load_default(TITLE_SIZE))
    font = ImageFont.load_default(TEXT_SIZE)
    for left, name in zip(list_bar_places(), columns, strict=True):
        draw.text((left, HEAD_HEIGHT - _MARGIN // 2), name, _GRAY, font, anchor="lb")
    for number, row in enumerate(rows):
        _draw_row(draw, font, HEAD_HEIGHT + number * ROW_HEIGHT, row, scales)
    buffer = io.BytesIO()
    picture.save(buffer, "PNG", optimize=True)
    return buffer.getvalue()


def list_bar_places() -> tuple[int, int]:
    """Returns where the bars of both columns start, in pixels from the left."""
    first = _MARGIN + LABEL_WIDTH
    return first, first + BAR_WIDTHS[0] + NUMBER_WIDTH


def _draw_row(
    draw: ImageDraw.ImageDraw,
    font: ImageFont.ImageFont | ImageFont.FreeTypeFont,
    top: int,
    row: Bars,
    scales: Sequence[float],
) -> None:
    middle = top + ROW_HEIGHT // 2
    weight = 1 if row.is_marked else 0
    draw.text((_MARGIN, middle), row.label, _INK, font, anchor="lm", stroke_width=weight / 2)
    places = list_bar_places()
    if not row.values:
        draw.text((places[0], middle), " ".join(row.texts), _GRAY, font, anchor="lm")
        return
    for column, (left, value, text) in enumerate(zip(places, row.values, row.texts, strict=True)):
        width = round(BAR_WIDTHS[column] * min(1.0, value / scales[column]))
        if width:
            box = (left, top + _BAR_MARGIN, left + width - 1, top + ROW_HEIGHT - _BAR_MARGIN - 1)
            draw.rectangle(box, COLORS[column])
        draw.text((left + width + 8, middle), text, _INK, font, anchor="lm")
