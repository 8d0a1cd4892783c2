"""Datasets of each kind of target, made once."""

from __future__ import annotations

import numpy as np
import pytest
from PIL import Image

from darkroom.cli import main

OPTIONS = {
    "label": {},
    "labels": {"label_separator": ";"},
    "numbers": {"target_columns": ("w", "h")},
}
FLAGS = {
    "label": [],
    "labels": ["--label-separator", ";"],
    "numbers": ["--target-columns", "w,h"],
}
# By turns; the images 2 and 7 of eight are not annotated.
LABELS = [("big",), ("big", "round"), None, ("red",), ("big", "red"), ("round",), ("big",), None]


@pytest.fixture(scope="session")
def listed(tmp_path_factory: pytest.TempPathFactory):
    """A function that writes a list of 32 images for a kind, and returns its path."""
    folder = tmp_path_factory.mktemp("listed")
    random = np.random.default_rng(0)
    for number in range(32):
        pixels = random.integers(0, 255, (12, 16, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(folder / f"{number}.png")

    def write(kind: str, change=lambda rows: rows):
        rows = []
        for number in range(32):
            labels = LABELS[number % 8]
            texts = {"label": "odd" if number % 2 else "even", "labels": ";".join(labels or ())}
            split = "TRAIN" if number < 24 else "VALIDATION"
            cells = texts.get(kind, ""), number / 2, "" if number == 3 else 100 - number
            rows.append([split, f"{number}.png", *cells])
        path = folder / f"{kind}.csv"
        lines = [",".join(map(str, row)) for row in change(rows)]
        path.write_text("\n".join(["split,image_uri,label,w,h", *lines, ""]))
        return path

    return write


@pytest.fixture(scope="session")
def datasets(listed, tmp_path_factory: pytest.TempPathFactory):
    """The dataset of each kind."""
    root = tmp_path_factory.mktemp("datasets")
    for kind, flags in FLAGS.items():
        assert main(["convert", str(listed(kind)), "--output-dir", str(root / kind), *flags]) == 0
    return {kind: root / kind for kind in OPTIONS}
