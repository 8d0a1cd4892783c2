"""Writes the demo's data: drawings with a CSV in AutoML Vision's format, and faults among them.

The faults are those of real data: damaged files, copies in two splits, wrong labels.
"""

from __future__ import annotations

import csv
import hashlib
import io
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from PIL import Image, ImageEnhance, ImageOps

from darkroom.images.jpeg_header import ORIENTATION_TAG
from darkroom.pipelines.local.drawings import LABELS, draw_label
from darkroom.storage import ledger

LIST_FILE = "drawings.csv"
NUM_OF_LABEL = 57
_JPEG_QUALITY, _POOR_QUALITY = 90, 60
_EVAL_EVERY = 5  # every fifth image of a class: 20 %
_PNG_EVERY = 4
_TURN_CLOCKWISE = 6  # EXIF: turn 90 degrees clockwise to see the image upright
_HTML = b"<!doctype html>\n<title>404 Not Found</title>\n<h1>Not Found</h1>\n"


class DemoFault(NamedTuple):
    """A deliberate fault, and the outcome that darkroom should report.

    Attributes:
        path: The image, relative to the CSV.
        outcome: "rejected", "written" (after a fix) or "finding" (written and reported).
        code: Reason of the reject, change in the index, or name of the check.
    """

    path: str
    outcome: str
    code: str


TRUNCATED_FAULT = DemoFault("faults/truncated.jpg", "rejected", "truncated")
EMPTY_FAULT = DemoFault("faults/empty.png", "rejected", "empty")
PAGE_FAULT = DemoFault("faults/not-found.jpg", "rejected", "not_an_image")
MISSING_FAULT = DemoFault("faults/missing.png", "rejected", "missing")
TURNED_FAULT = DemoFault("drawings/sun/0006.jpg", "written", "orientation")
# A training image in VALIDATION too, and one with another label too.
LEAKED_FAULT = DemoFault("drawings/cup/leaked.jpg", "finding", "leakage")
RELABELLED_FAULT = DemoFault("drawings/house/a-cup.jpg", "finding", "label_conflicts")
LEAKED_FROM, RELABELLED_FROM = "drawings/cup/0010.jpg", "drawings/cup/0011.jpg"
# Changed copies in VALIDATION of training images: of each label one, by how it is changed.
_CHANGES: dict[str, Callable[[Image.Image], Image.Image]] = {
    "compressed": lambda image: image,
    "smaller": lambda image: image.reduce(2),
    "cropped": lambda image: image.crop((20, 10, 190, 180)),
    "mirrored": ImageOps.mirror,
    "brighter": lambda image: ImageEnhance.Brightness(image).enhance(1.2),
    "tilted": lambda image: image.rotate(5, Image.Resampling.BICUBIC),
}
NEAR_COPIES = tuple(
    DemoFault(f"drawings/{label}/{how}.jpg", "finding", "near_leakage")
    for label, how in zip(LABELS, _CHANGES, strict=False)
)
# Training images with the label of something else.
_WRONG = {f"drawings/{label}/0007.jpg": LABELS[place - 3] for place, label in enumerate(LABELS[:6])}
WRONG_LABELS = tuple(DemoFault(path, "finding", "suspect_labels") for path in _WRONG)
FAULTS = (
    TRUNCATED_FAULT,
    EMPTY_FAULT,
    PAGE_FAULT,
    MISSING_FAULT,
    TURNED_FAULT,
    LEAKED_FAULT,
    RELABELLED_FAULT,
    *NEAR_COPIES,
    *WRONG_LABELS,
)


class _Row(NamedTuple):
    split: str
    path: str
    label: str


def write_demo_dataset(directory: str | os.PathLike[str]) -> Path:
    """Writes the drawings, the faults and the CSV; leaves files alone that are already right.

    About 80 % of each class are TRAIN, the others VALIDATION; a quarter is PNG, the others JPEG.

    Args:
        directory: Folder for the files; created if it does not exist.

    Returns:
        The CSV: rows of split, path relative to the CSV, and label, without a header.

    Raises:
        OutputError: The directory has other files, or some of these were changed.
        OSError: The directory cannot be written.
    """
    root = Path(directory)
    files: dict[str, bytes] = {}
    rows = [*_add_drawings(files), *_add_faults(files)]
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    files[LIST_FILE] = text.getvalue().encode()
    hint = "Move them, or choose another folder: darkroom demo --root DIR."
    ledger.check_alone(str(root), {name.partition("/")[0] for name in files}, hint)
    hashes = {name: hashlib.sha256(data).hexdigest() for name, data in files.items()}
    ledger.claim(str(root), hashes, hint)
    for name, data in files.items():
        path = root / name
        # A file that is right keeps its modification time, so a second run finds nothing changed.
        if not path.is_file() or path.read_bytes() != data:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
    return root / LIST_FILE


def _add_drawings(files: dict[str, bytes]) -> Iterator[_Row]:
    """Adds the drawings to the files, bytes by path, and yields their rows.

    Two kinds of faults are among them: a turned image, and wrong labels.
    """
    for number in range(NUM_OF_LABEL):
        for place, label in enumerate(LABELS):
            path = f"drawings/{label}/{number:04}.{'jpg' if number % _PNG_EVERY else 'png'}"
            # Each has its own numbers, so that it is the same however many there are.
            image = draw_label(label, np.random.default_rng([place, number]))
            exif = Image.Exif()
            if path == TURNED_FAULT.path:
                exif[ORIENTATION_TAG] = _TURN_CLOCKWISE
                image = image.transpose(Image.Transpose.ROTATE_90)  # which is counterclockwise
            files[path] = _encode(image, path, exif=exif.tobytes())
            is_eval = number % _EVAL_EVERY == _EVAL_EVERY - 1
            yield _Row("VALIDATION" if is_eval else "TRAIN", path, _WRONG.get(path, label))


def _add_faults(files: dict[str, bytes]) -> Iterator[_Row]:
    """Adds the other faults, and yields their rows; most are copies of drawings in `files`."""
    jpeg = files[LEAKED_FROM]
    files |= {
        TRUNCATED_FAULT.path: jpeg[: len(jpeg) // 2],
        EMPTY_FAULT.path: b"",
        PAGE_FAULT.path: _HTML,
    }
    files |= {LEAKED_FAULT.path: jpeg, RELABELLED_FAULT.path: files[RELABELLED_FROM]}
    yield from (
        _Row("TRAIN", TRUNCATED_FAULT.path, "cup"),
        _Row("TRAIN", EMPTY_FAULT.path, "fish"),
        _Row("VALIDATION", PAGE_FAULT.path, "boat"),
        _Row("TRAIN", MISSING_FAULT.path, "tree"),
        _Row("VALIDATION", LEAKED_FAULT.path, "cup"),
        _Row("TRAIN", RELABELLED_FAULT.path, "house"),
    )
    # Of each label, 0003 is a JPEG of TRAIN. There are fewer changes than labels.
    for label, (path, *_), change in zip(LABELS, NEAR_COPIES, _CHANGES.values(), strict=False):
        with Image.open(io.BytesIO(files[f"drawings/{label}/0003.jpg"]), formats=["JPEG"]) as image:
            files[path] = _encode(change(image), path, quality=_POOR_QUALITY)
        yield _Row("VALIDATION", path, label)


def _encode(image: Image.Image, path: str, **options: Any) -> bytes:
    buffer = io.BytesIO()
    kind = "PNG" if path.endswith("png") else "JPEG"
    image.save(buffer, kind, **{"quality": _JPEG_QUALITY, **options})
    return buffer.getvalue()
