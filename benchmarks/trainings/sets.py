"""Sets of images that benchmarks train on, beside photographs that one has."""

from __future__ import annotations

import csv
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from PIL import Image

from darkroom.pipelines.local.demo import FAULTS, write_demo_dataset

Array = npt.NDArray[Any]

# Where a texture has its second color, by coordinates in periods.
_TEXTURES: dict[str, Callable[[Array, Array], Array]] = {
    "bricks": lambda u, v: (v % 1 < 0.2) | ((u / 2 + v // 1 / 2) % 1 < 0.1),
    "checks": lambda u, v: (u // 1 + v // 1) % 2 == 0,
    "dots": lambda u, v: (u % 1 - 0.5) ** 2 + (v % 1 - 0.5) ** 2 < 0.1,
    "grid": lambda u, v: (u % 1 < 0.2) | (v % 1 < 0.2),
    "rings": lambda u, v: np.hypot(u - 2, v - 2) % 1 < 0.5,
    "stripes": lambda u, v: u % 1 < 0.5,
    "waves": lambda u, v: (u + 0.3 * np.sin(np.pi * v)) % 1 < 0.5,
    "zigzag": lambda u, v: (u + np.abs(v % 1 - 0.5)) % 1 < 0.5,
}
_DRAWN = {"train": 75, "validation": 25, "test": 50}
_SIDE = 96
_IMBALANCE = 20


def draw_textures(folder: Path, draw: int) -> Path:
    """Draws images <split>/<texture>/<number>.jpg in any two colors, at any scale and angle."""
    generator = np.random.default_rng(draw)
    for split, count in _DRAWN.items():
        for texture in _TEXTURES:
            place = folder / split / texture
            place.mkdir(parents=True)
            for number in range(count):
                draw_texture(texture, generator).save(place / f"{number:03}.jpg", quality=90)
    return folder


def draw_texture(texture: str, generator: np.random.Generator) -> Image.Image:
    """Draws an image of one texture, with noise."""
    ground, color = generator.integers(0, 256, (2, 3))
    # Colors of which one cannot be told from the other would be nobody's fault.
    while np.abs(ground - color).sum() < 150:
        color = generator.integers(0, 256, 3)
    turn, period = generator.uniform(0, 2 * np.pi), generator.uniform(10, 24)
    rows, columns = np.mgrid[:_SIDE, :_SIDE] / period + generator.uniform(0, 1, (2, 1, 1))
    u = rows * np.cos(turn) + columns * np.sin(turn)
    v = columns * np.cos(turn) - rows * np.sin(turn)
    is_color = _TEXTURES[texture](u, v)[..., None]
    pixels = np.where(is_color, color, ground) + generator.normal(0, 16, (_SIDE, _SIDE, 3))
    return Image.fromarray(np.clip(pixels, 0, 255).astype(np.uint8))


def write_digits(scratch: Path) -> Path:
    """Writes the demo's digits without its faults; every second eval image is for the test."""
    source = write_demo_dataset(scratch / "digits")
    faults = {fault.path for fault in FAULTS}
    with source.open(newline="") as file:
        rows = [row for row in csv.reader(file) if row[1] not in faults]
    for row in [row for row in rows if row[0] == "VALIDATION"][::2]:
        row[0] = "TEST"
    with source.open("w", newline="") as file:
        csv.writer(file).writerows(rows)
    return source


def split_again(data: Path, folder: Path, draw: int) -> Path:
    """Copies photographs into other splits, which have as many of each label as before.

    Args:
        data: Photographs as <split>/<label>/<file>.
        folder: Where the copies are.
        draw: Decides which photographs are in which split; 0 leaves them where they are.
    """
    generator = np.random.default_rng(draw)
    splits = sorted(path.name for path in data.iterdir() if path.is_dir())
    for label in sorted(path.name for path in (data / splits[0]).iterdir()):
        groups = [sorted((data / split / label).iterdir()) for split in splits]
        files = [file for group in groups for file in group]
        order = generator.permutation(len(files)) if draw else range(len(files))
        shuffled = iter([files[n] for n in order])
        for split, group in zip(splits, groups, strict=True):
            place = folder / split / label
            place.mkdir(parents=True)
            for _ in group:
                file = next(shuffled)
                # Names may be there twice, in two splits.
                shutil.copyfile(file, place / f"{file.parent.parent.name}-{file.name}")
    return folder


def make_rare(folder: Path, draw: int) -> Path:
    """Deletes nineteen of twenty images for training of half of the labels.

    Args:
        folder: What `split_again` wrote.
        draw: Decides which labels are rare, and which of their images are left.
    """
    generator = np.random.default_rng(draw)
    labels = sorted(path.name for path in (folder / "train").iterdir())
    for label in sorted(generator.permutation(labels)[: len(labels) // 2].tolist()):
        files = sorted((folder / "train" / label).iterdir())
        few = max(1, len(files) // _IMBALANCE)
        for number in generator.permutation(len(files))[few:]:
            files[number].unlink()
    return folder
