"""JPEGs to measure with: drawn, or from a folder, hard-linked until there are enough."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import simplejpeg
from convert import draw_noise

_ORIGINALS, _SHAPE, _QUALITY = 200, (533, 400), 72
# How fast a photograph's fine structure falls off; this gives JPEGs of 28 kB, as shops have.
_EXPONENTS = (1.35, 1.75)


def make_photographs(folder: Path, count: int, source: Path | None) -> None:
    """Makes `count` JPEGs in folders by label: from a folder, or drawn like shops' photographs."""
    if source:
        link_photographs(folder, source, count)
    else:
        draw_photographs(folder, count, _SHAPE, _QUALITY, _EXPONENTS, _ORIGINALS)


def draw_photographs(
    folder: Path,
    count: int,
    shape: tuple[int, int],
    quality: int,
    exponents: tuple[float, float],
    originals: int,
) -> None:
    """Writes `count` JPEGs into two folders, as hard links to a few different ones."""
    rng = np.random.default_rng(0)
    for number in range(count):
        path = folder / f"class-{number % 2}" / f"{number:06d}.jpg"
        path.parent.mkdir(parents=True, exist_ok=True)
        if number < originals:
            pixels = draw_noise(rng, *shape, rng.uniform(*exponents))
            path.write_bytes(simplejpeg.encode_jpeg(pixels, quality, "RGB", "420"))
        else:
            first = number % originals
            os.link(folder / f"class-{first % 2}" / f"{first:06d}.jpg", path)


def link_photographs(folder: Path, source: Path, count: int) -> None:
    """Hard-links, or copies, the JPEGs of a folder until there are `count`."""
    found = sorted(source.rglob("*.jpg"))
    for number in range(count):
        path = folder / f"class-{number % 2}" / f"{number:06d}.jpg"
        path.parent.mkdir(parents=True, exist_ok=True)
        if number < len(found):
            path.write_bytes(found[number].read_bytes())
        else:
            first = number % len(found)
            os.link(folder / f"class-{first % 2}" / f"{first:06d}.jpg", path)
