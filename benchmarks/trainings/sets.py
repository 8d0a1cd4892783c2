"""Sets of images that benchmarks train on, beside photographs that one has."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Callable
from itertools import cycle
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from PIL import Image
from sklearn.datasets import load_digits

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


def write_digits(folder: Path) -> Path:
    """Writes scikit-learn's digits; of each fifth one of a label, every second is for the test."""
    digits, seen = load_digits(), Counter[int]()
    held_out = cycle(("test", "validation"))
    for values, label in zip(digits.images, digits.target.tolist(), strict=True):
        number = seen[label]
        seen[label] += 1
        place = folder / (next(held_out) if number % 5 == 4 else "train") / str(label)
        place.mkdir(parents=True, exist_ok=True)
        pixels = np.rint(values * (255 / 16)).astype(np.uint8)
        suffix = "jpg" if number % 2 else "png"
        Image.fromarray(pixels).save(place / f"{number:04}.{suffix}", quality=95)
    return folder


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
