"""Photographs of every stored kind, converted: what the reader is asked for."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from darkroom.conversion.convert import convert

COLUMNS = {"image_uri": "image", "label": "string_label", "split": "split", "price": "float"}
FORMS = ("rgb.jpg", "fine.jpg", "gray.jpg", "rgb.png", "gray.png")


@pytest.fixture(scope="session")
def photos(tmp_path_factory: pytest.TempPathFactory) -> pd.DataFrame:
    """A table of 100 smooth pictures of many sizes, in five forms; three of four to train."""
    folder = tmp_path_factory.mktemp("photos")
    rng = np.random.default_rng(5)
    rows = []
    for number in range(100):
        height, width = (int(side) for side in rng.integers(30, 400, 2))
        coarse = rng.integers(0, 256, (height // 16 + 2, width // 16 + 2, 3), dtype=np.uint8)
        picture = Image.fromarray(coarse).resize((width, height), Image.Resampling.BICUBIC)
        form = FORMS[number % len(FORMS)]
        path = folder / f"{number:03d}.{form}"
        if form.startswith("gray"):
            picture = picture.convert("L")
        picture.save(path, **({"subsampling": 0} if form == "fine.jpg" else {}))
        split = "eval" if number % 4 == 3 else "train"
        rows.append((str(path), "abc"[number % 3], split, number / 2))
    return pd.DataFrame(rows, columns=["image_uri", "label", "split", "price"])


@pytest.fixture(scope="session")
def records(photos: pd.DataFrame, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Their dataset of five files to train and one to evaluate, which no test changes."""
    folder = tmp_path_factory.mktemp("converted") / "records"
    convert(photos, folder, num_shards={"train": 5, "eval": 1}, columns=COLUMNS)
    return folder
