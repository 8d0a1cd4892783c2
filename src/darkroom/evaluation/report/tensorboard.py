"""The evaluation for TensorBoard: numbers, the grid of counts, and some images."""

from __future__ import annotations

import base64
import io
import textwrap
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from PIL import Image, ImageDraw

from darkroom import storage
from darkroom.evaluation.report.pictures import Gallery
from darkroom.evaluation.report.result import Evaluation
from darkroom.runtime.text import make_visible
from darkroom.targets.description import Caption, Grid

TENSORBOARD_FOLDER = "tensorboard"

_PART = "evaluation"
_CELL = 26
_MARGIN = 110
_IMAGE = 128
_LINE = 13
_MAX_IMAGES = 12
_MAX_CHARACTERS = 17
# Below an image, where texts are wrapped.
_CAPTION_CHARACTERS = 60
_LINE_CHARACTERS = 20
_WHITE, _BLACK = (255, 255, 255), (0, 0, 0)
_RIGHT, _WRONG = (47, 143, 87), (208, 68, 58)

_Pixels = npt.NDArray[np.uint8]
_Color = tuple[int, int, int]


def write_summaries(folder: str, found: Evaluation, gallery: Gallery, step: int) -> None:
    """Writes the evaluation for `tensorboard --logdir FOLDER`, beside the curves.

    Args:
        folder: The folder that TensorBoard is given.
        found: The numbers.
        gallery: The images of the page.
        step: Where on the axis of the curves, which count epochs from 0.
    """
    import tensorflow as tf

    def name(title: str) -> str:
        return f"{found.split}_{title.lower().replace(' ', '_')}"

    view = gallery.view
    writer = tf.summary.create_file_writer(storage.join(folder, TENSORBOARD_FOLDER, _PART))
    with writer.as_default(step=step):
        for scalar, value in found.list_scalars().items():
            tf.summary.scalar(scalar, value)
        if view.grid:
            tf.summary.image(f"{name(view.grid.title)}_matrix", draw_grid(view.grid)[None])
        for group in view.groups:
            if len(drawn := draw_images(group.numbers, gallery)):
                tf.summary.image(name(group.title), drawn, max_outputs=_MAX_IMAGES)
    writer.close()


def draw_grid(grid: Grid) -> _Pixels:
    """Returns a picture of a grid, [H, W, 3]."""
    size = _MARGIN + _CELL * len(grid.names)
    picture = Image.new("RGB", (size, size), _WHITE)
    draw = ImageDraw.Draw(picture)
    for place, (name, cells) in enumerate(zip(grid.names, grid.cells, strict=True)):
        start = _MARGIN + _CELL * place
        draw.text((4, start + 7), _shorten(name), fill=_BLACK)
        above = Image.new("RGB", (_MARGIN - 4, 14), _WHITE)
        ImageDraw.Draw(above).text((0, 1), _shorten(name), fill=_BLACK)
        picture.paste(above.rotate(90, expand=True), (start + 6, 2))
        for across, cell in enumerate(cells):
            left = _MARGIN + _CELL * across
            color = _mix(_RIGHT if cell.is_right else _WRONG, cell.share)
            draw.rectangle((left, start, left + _CELL - 2, start + _CELL - 2), fill=color)
            if cell.images:
                draw.text((left + 3, start + 7), str(cell.images), fill=_BLACK)
    return np.asarray(picture)


def draw_images(numbers: Sequence[int], gallery: Gallery) -> _Pixels:
    """Returns images above their labels and predictions, [N, H, W, 3].

    An image that could not be read is left out.
    """
    known = [number for number in numbers if number in gallery.thumbnails][:_MAX_IMAGES]
    captions = [_list_lines(gallery.view.captions[n]) for n in known]
    height = _IMAGE + 2 + _LINE * max(map(len, captions), default=0)
    drawn = [
        _draw_image(lines, gallery.thumbnails[n], height)
        for n, lines in zip(known, captions, strict=True)
    ]
    return np.stack(drawn) if drawn else np.zeros((0, height, _IMAGE, 3), np.uint8)


def _list_lines(said: Caption) -> list[tuple[str, _Color]]:
    """Returns the lines below an image, with their colors: its target, and what the model says."""
    parts = (
        (said.truth, _BLACK),
        (f"{said.score} {said.answer}".strip(), _RIGHT if said.is_right else _WRONG),
    )
    return [
        (line, color)
        for text, color in parts
        for line in textwrap.wrap(_shorten(text, _CAPTION_CHARACTERS), _LINE_CHARACTERS)
    ]


def _draw_image(lines: Sequence[tuple[str, _Color]], uri: str, height: int) -> _Pixels:
    picture = Image.new("RGB", (_IMAGE, height), _WHITE)
    with Image.open(io.BytesIO(base64.b64decode(uri.partition(",")[2]))) as thumbnail:
        scale = _IMAGE / max(thumbnail.size)
        size = [max(1, round(side * scale)) for side in thumbnail.size]
        resized = thumbnail.convert("RGB").resize(size)
    picture.paste(resized, ((_IMAGE - size[0]) // 2, (_IMAGE - size[1]) // 2))
    draw = ImageDraw.Draw(picture)
    for number, (text, color) in enumerate(lines):
        draw.text((2, _IMAGE + 1 + _LINE * number), text, fill=color)
    return np.asarray(picture)


def _shorten(text: str, max_characters: int = _MAX_CHARACTERS) -> str:
    # Pillow's own font of older versions knows no other letters.
    shown = make_visible(text, max_characters).replace("…", "...")
    return shown.encode("latin-1", "replace").decode("latin-1")


def _mix(color: tuple[int, int, int], share: float) -> tuple[int, ...]:
    light = 0.08 + 0.72 * share if share else 0.03
    return tuple(round(255 + (each - 255) * light) for each in color)
