"""Draws the images of tests, and encodes them."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw


def encode(picture: Image.Image | np.ndarray, kind: str = "PNG", **options: object) -> bytes:
    """Returns the file of an image or of its pixels; options are those of Pillow's `save`."""
    image = picture if isinstance(picture, Image.Image) else Image.fromarray(picture)
    buffer = io.BytesIO()
    image.save(buffer, kind, **options)
    return buffer.getvalue()


def make_photo() -> Image.Image:
    """A smooth picture, different in every corner: 40 wide, 24 high."""
    y, x = np.mgrid[0:24, 0:40]
    return Image.fromarray(np.stack([x * 6, y * 10, 255 - x * 3 - y * 4], -1).astype(np.uint8))


def make_noise(seed: int, height: int, width: int) -> np.ndarray:
    """Pixels of which no two images have the same, uint8 [height, width, 3]."""
    return np.random.default_rng(seed).integers(0, 256, (height, width, 3), np.uint8)


def write_label_folders(folder: Path, count: int) -> None:
    """Writes folders of the labels cat and dog with PNGs of different noise, `count` in each."""
    for start, label in ((count, "cat"), (0, "dog")):
        (folder / label).mkdir(parents=True)
        for number in range(count):
            data = encode(make_noise(start + number, 5, 6))
            (folder / label / f"{number}.png").write_bytes(data)


def make_scene(seed: int) -> Image.Image:
    """A picture with soft shapes, of which no two look alike: 320 wide, 240 high."""
    shapes = Image.fromarray(make_noise(seed, 18, 24))
    return shapes.resize((320, 240), Image.Resampling.BICUBIC)


def make_drawing(seed: int) -> Image.Image:
    """A scene with shapes and edges, as a photograph has: 320 wide, 240 high."""
    rng = np.random.default_rng(seed)
    scene = make_scene(seed)
    draw = ImageDraw.Draw(scene)
    for _ in range(60):
        left, top = rng.integers(0, 320), rng.integers(0, 240)
        box = (left, top, left + rng.integers(8, 60), top + rng.integers(8, 60))
        shape = draw.ellipse if rng.integers(2) else draw.rectangle
        shape([int(side) for side in box], fill=tuple(map(int, rng.integers(0, 256, 3))))
    return scene


def decode(data: bytes) -> Image.Image:
    """Returns the image of a file."""
    return Image.open(io.BytesIO(data))
