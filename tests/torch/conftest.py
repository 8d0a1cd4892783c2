"""A dataset whose images show their number: in their brightness, and in a column."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from darkroom.conversion.convert import convert

from ..pictures import encode

TRAINED, EVALUATED = 150, 25
DARKEST = 50


def write_records(folder: Path, trained: int = TRAINED) -> Path:
    random = np.random.default_rng(0)
    rows = []
    for number in range(trained + EVALUATED):
        pixels = DARKEST + number + random.integers(-2, 3, (12, 10, 3))
        (folder / f"{number}.jpg").write_bytes(encode(pixels.astype(np.uint8), "JPEG", quality=95))
        split, label = "train" if number < trained else "eval", "abc"[number % 3]
        row = {"image": f"{number}.jpg", "split": split, "label": label, "number": number}
        rows.append(row | ({"note": f"n{number}", "price": number / 4} if number % 5 else {}))
    (folder / "list.jsonl").write_text("\n".join(map(json.dumps, rows)))
    convert(folder / "list.jsonl", folder / "records", num_shards={"train": 3, "eval": 2})
    return folder / "records"


@pytest.fixture(scope="session")
def records(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_records(tmp_path_factory.mktemp("numbered"))
