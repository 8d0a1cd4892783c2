"""Datasets of every kind of target, for tests of sidecars and of the readers that use them."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

import darkroom
from darkroom.conversion.result import ConversionResult
from darkroom.options.conversion import ConversionOptions

Row = Callable[[int], Sequence[Any]]

# The columns beside split and path, their kinds and cells, and options, by the kind of dataset.
KINDS: dict[str, tuple[dict[str, str], Row, dict[str, Any]]] = {
    "label": (
        {"label": "string_label", "price": "float", "shop": "string", "count": "integer"},
        lambda n: ["ein Ölbild" if n % 3 else "007", n / 2, "x" if n % 2 else "", n],
        {},
    ),
    "labels": ({"tags": "labels"}, lambda n: ["|".join(["a", "b", "c"][: n % 4])], {}),
    "numbers": ({"x": "target", "y": "target"}, lambda n: [n / 2, n], {}),
    "some numbers": (
        {"x": "target", "y": "target"},
        lambda n: [n / 2 if n % 3 else "", n if n % 3 else ""],
        {},
    ),
    "boxes": (
        {"objects": "objects"},
        lambda n: [
            json.dumps(
                [{"label": ('a "b"', "c")[k], "box": [k, 1, 4 + k, 6]} for k in range(n % 3)]
            )
        ],
        {},
    ),
    "raw": ({"label": "string_label"}, lambda n: ["ab"[n % 2]], {"encoding": "raw"}),
}


def make_dataset(folder: Path, kind: str, *, count: int = 12, **options: Any) -> ConversionResult:
    """Converts images of two sizes, every third one gray."""
    columns, cells, more = KINDS[kind]
    rng = np.random.default_rng(3)
    folder.mkdir()
    with (folder / "list.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["split", "path", *columns])
        for number in range(count):
            shape = (8 + number % 2, 7) if number % 3 == 2 else (8 + number % 2, 7, 3)
            name = f"{number}.{'png' if number % 2 else 'jpg'}"
            Image.fromarray(rng.integers(0, 256, shape, np.uint8)).save(folder / name)
            split = "test" if number % 4 == 3 else "train"
            writer.writerow([split, name, *cells(number)])
    if any(kind == "labels" for kind in columns.values()):
        more = {**more, "label_separator": "|", "empty_labels": "none"}
    return darkroom.convert(
        folder / "list.csv",
        folder / "records",
        columns={"split": "split", "path": "image", **columns},
        num_shards=2,
        options=ConversionOptions(**{**more, **options}),
    )
