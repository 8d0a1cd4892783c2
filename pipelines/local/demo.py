"""Writes the demo's data: real handwritten digits as image files, with a few faults among them.

The digits are the 1,797 of scikit-learn: the test set of "Optical Recognition of Handwritten
Digits" by E. Alpaydin and C. Kaynak, from the UCI Machine Learning Repository (CC BY 4.0).
`digits.gz` has 65 bytes for each: 8 x 8 pixels from 0 to 16, and the digit. They are written as PNG
and JPEG files with a CSV in AutoML Vision's format.
"""

from __future__ import annotations

import csv
import gzip
import hashlib
import io
import os
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from PIL import Image

from darkroom.images.jpeg_header import ORIENTATION_TAG
from darkroom.storage import ledger

if TYPE_CHECKING:
    import numpy.typing as npt

    Pixels = npt.NDArray[np.uint8]

MANIFEST_FILE = "digits.csv"
NUM_DIGITS = 1797
_DIGITS_FILE = Path(__file__).with_name("digits.gz")
_JPEG_QUALITY = 95
_MAX_VALUE = 16.0  # of a pixel in that file
_EVAL_EVERY = 5  # every fifth image of a class: 20 %
_TURN_CLOCKWISE = 6  # EXIF: turn 90 degrees clockwise to see the image upright
_HTML = b"<!doctype html>\n<title>404 Not Found</title>\n<h1>Not Found</h1>\n"


@dataclass(frozen=True)
class Fault:
    """A deliberate fault, and the outcome that darkroom should report.

    Attributes:
        path: The image, relative to the CSV.
        fault: Description of the fault.
        outcome: "rejected", "written" (after a fix) or "finding" (written and reported).
        code: Reason of the reject, change in the index, or name of the check.
    """

    path: str
    fault: str
    outcome: str
    code: str


TRUNCATED = Fault("faults/truncated.jpg", "a JPEG cut in half", "rejected", "truncated")
EMPTY = Fault("faults/empty.png", "a file of no bytes", "rejected", "empty")
PAGE = Fault("faults/not-found.jpg", "an HTML page named .jpg", "rejected", "not_an_image")
MISSING = Fault("faults/missing.png", "a file that does not exist", "rejected", "missing")
TURNED = Fault(
    "digits/7/0021.jpg", "turned on its side, with an EXIF flag", "written", "orientation"
)
LEAKED = Fault(
    "digits/3/copy-of-0010.png", "a training image in VALIDATION too", "finding", "leakage"
)
RELABELLED = Fault(
    "digits/8/copy-of-a-3.png",
    "a training image with another label too",
    "finding",
    "label_conflicts",
)
FAULTS = (TRUNCATED, EMPTY, PAGE, MISSING, TURNED, LEAKED, RELABELLED)
LEAKED_FROM = "digits/3/0010.png"
RELABELLED_FROM = "digits/3/0012.png"


class _Row(NamedTuple):
    split: str
    path: str
    label: str


def write_demo_dataset(directory: str | os.PathLike[str]) -> Path:
    """Writes the digits, the faults and the CSV; leaves files alone that are already right.

    About 80 % of each class are TRAIN, the others VALIDATION; each class is half PNG, half JPEG.

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
    rows = [*_add_digits(files), *_add_faults(files)]
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    files[MANIFEST_FILE] = text.getvalue().encode()
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
    return root / MANIFEST_FILE


def read_digits() -> tuple[Pixels, list[str]]:
    """Returns the digits: uint8 [1797, 8, 8] with ink as white, and their labels."""
    data = np.frombuffer(gzip.decompress(_DIGITS_FILE.read_bytes()), np.uint8)
    digits = data.reshape(NUM_DIGITS, 65)
    pixels = np.rint(digits[:, :64] * (255 / _MAX_VALUE)).astype(np.uint8)
    return pixels.reshape(NUM_DIGITS, 8, 8), [str(label) for label in digits[:, 64]]


def _add_digits(files: dict[str, bytes]) -> Iterator[_Row]:
    seen: Counter[str] = Counter()
    for pixels, label in zip(*read_digits(), strict=True):
        # Counted within the class, so that split and format say nothing about the label.
        number = seen[label]
        seen[label] += 1
        suffix = "jpg" if number % 2 else "png"
        path = f"digits/{label}/{number:04}.{suffix}"
        exif = Image.Exif()
        if path == TURNED.path:
            exif[ORIENTATION_TAG] = _TURN_CLOCKWISE
            pixels = np.ascontiguousarray(np.rot90(pixels))  # np.rot90 turns counterclockwise
        files[path] = _encode(pixels, suffix, exif)
        is_eval = number % _EVAL_EVERY == _EVAL_EVERY - 1
        yield _Row("VALIDATION" if is_eval else "TRAIN", path, label)


def _add_faults(files: dict[str, bytes]) -> Iterator[_Row]:
    whole = files[RELABELLED_FROM]
    with Image.open(io.BytesIO(whole), formats=["PNG"]) as image:
        # Large enough that half a file is half a picture.
        large = np.asarray(image.resize((128, 128), Image.Resampling.BICUBIC))
    jpeg = _encode(large, "jpg", Image.Exif())
    files[TRUNCATED.path] = jpeg[: len(jpeg) // 2]
    yield _Row("TRAIN", TRUNCATED.path, "3")
    files[EMPTY.path] = b""
    yield _Row("TRAIN", EMPTY.path, "1")
    files[PAGE.path] = _HTML
    yield _Row("VALIDATION", PAGE.path, "4")
    yield _Row("TRAIN", MISSING.path, "5")
    files[LEAKED.path] = files[LEAKED_FROM]
    yield _Row("VALIDATION", LEAKED.path, "3")
    files[RELABELLED.path] = whole
    yield _Row("TRAIN", RELABELLED.path, "8")


def _encode(pixels: Pixels, suffix: str, exif: Image.Exif) -> bytes:
    image, buffer = Image.fromarray(pixels), io.BytesIO()
    if suffix == "png":
        image.save(buffer, "PNG")
    else:
        image.save(buffer, "JPEG", quality=_JPEG_QUALITY, exif=exif.tobytes() if exif else b"")
    return buffer.getvalue()
