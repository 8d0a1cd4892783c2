"""The evaluation for TensorBoard: numbers, the confusion matrix, and some images."""

from __future__ import annotations

import base64
import io
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from PIL import Image, ImageDraw

from darkroom import storage
from darkroom.evaluation.report.page import choose_labels
from darkroom.evaluation.report.pictures import Gallery, Shown
from darkroom.evaluation.report.result import Evaluation
from darkroom.evaluation.scores.metrics import Ints
from darkroom.runtime.text import make_visible

TENSORBOARD_FOLDER = "tensorboard"

_PART = "evaluation"
_CELL = 26
_MARGIN = 110
_IMAGE = 128
_CAPTION = 28
_MAX_IMAGES = 12
_MAX_CHARACTERS = 17
_WHITE, _BLACK = (255, 255, 255), (0, 0, 0)
_RIGHT, _WRONG = (47, 143, 87), (208, 68, 58)

_Pixels = npt.NDArray[np.uint8]


def write_summaries(
    folder: str, found: Evaluation, confusion: Ints, gallery: Gallery, step: int
) -> None:
    """Writes the evaluation for `tensorboard --logdir FOLDER`, beside the curves.

    Args:
        folder: The folder that TensorBoard is given.
        found: The numbers.
        confusion: [C, C], records by label and predicted label.
        gallery: The images of the page.
        step: Where on the axis of the curves, which count epochs from 0.
    """
    import tensorflow as tf

    labels = [each.label for each in found.metrics.classes]
    numbers = found.metrics
    scalars = {
        "accuracy": numbers.accuracy,
        "macro_f1": numbers.macro_f1,
        "macro_recall": numbers.macro_recall,
        "calibration_error": numbers.calibration_error,
    }
    writer = tf.summary.create_file_writer(storage.join(folder, TENSORBOARD_FOLDER, _PART))
    with writer.as_default(step=step):
        for name, value in scalars.items():
            tf.summary.scalar(f"{found.split}_{name}", value)
        matrix = draw_matrix(confusion, labels, choose_labels(confusion))
        tf.summary.image(f"{found.split}_confusion_matrix", matrix[None])
        groups = {"worst_mistakes": gallery.mistakes, "least_certain": gallery.uncertain}
        for name, images in groups.items():
            if len(drawn := draw_images(images, labels, gallery)):
                tf.summary.image(f"{found.split}_{name}", drawn, max_outputs=_MAX_IMAGES)
    writer.close()


def draw_matrix(confusion: Ints, labels: Sequence[str], shown: Sequence[int]) -> _Pixels:
    """Returns a picture of a confusion matrix, [H, W, 3]; a row is a label, a column a prediction.

    Args:
        confusion: [C, C], records by label and predicted label.
        labels: The C labels.
        shown: The numbers of the labels to show.
    """
    size = _MARGIN + _CELL * len(shown)
    picture = Image.new("RGB", (size, size), _WHITE)
    draw = ImageDraw.Draw(picture)
    for place, row in enumerate(shown):
        start = _MARGIN + _CELL * place
        draw.text((4, start + 7), _shorten(labels[row]), fill=_BLACK)
        above = Image.new("RGB", (_MARGIN - 4, 14), _WHITE)
        ImageDraw.Draw(above).text((0, 1), _shorten(labels[row]), fill=_BLACK)
        picture.paste(above.rotate(90, expand=True), (start + 6, 2))
        total = max(int(confusion[row].sum()), 1)
        for across, column in enumerate(shown):
            count, left = int(confusion[row, column]), _MARGIN + _CELL * across
            color = _mix(_RIGHT if row == column else _WRONG, count / total)
            draw.rectangle((left, start, left + _CELL - 2, start + _CELL - 2), fill=color)
            if count:
                draw.text((left + 3, start + 7), str(count), fill=_BLACK)
    return np.asarray(picture)


def draw_images(images: Sequence[Shown], labels: Sequence[str], gallery: Gallery) -> _Pixels:
    """Returns images above their labels and predictions, [N, H, W, 3].

    An image that could not be read is left out.
    """
    known = [each for each in images if each.number in gallery.thumbnails][:_MAX_IMAGES]
    drawn = [_draw_image(each, labels, gallery.thumbnails[each.number]) for each in known]
    return np.stack(drawn) if drawn else np.zeros((0, _IMAGE + _CAPTION, _IMAGE, 3), np.uint8)


def _draw_image(each: Shown, labels: Sequence[str], uri: str) -> _Pixels:
    picture = Image.new("RGB", (_IMAGE, _IMAGE + _CAPTION), _WHITE)
    with Image.open(io.BytesIO(base64.b64decode(uri.partition(",")[2]))) as thumbnail:
        scale = _IMAGE / max(thumbnail.size)
        width, height = (max(1, round(side * scale)) for side in thumbnail.size)
        resized = thumbnail.convert("RGB").resize((width, height))
    picture.paste(resized, ((_IMAGE - width) // 2, (_IMAGE - height) // 2))
    draw = ImageDraw.Draw(picture)
    color = _RIGHT if each.label == each.predicted else _WRONG
    draw.text((2, _IMAGE + 1), _shorten(labels[each.label]), fill=_BLACK)
    said = f"{each.score:.2f} {_shorten(labels[each.predicted])}"
    draw.text((2, _IMAGE + 14), said, fill=color)
    return np.asarray(picture)


def _shorten(text: str) -> str:
    # Pillow's own font of older versions knows no other letters.
    return make_visible(text, _MAX_CHARACTERS).encode("latin-1", "replace").decode("latin-1")


def _mix(color: tuple[int, int, int], share: float) -> tuple[int, ...]:
    light = 0.08 + 0.72 * share if share else 0.03
    return tuple(round(255 + (each - 255) * light) for each in color)
