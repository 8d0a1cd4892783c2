"""Draws seven things, in any colors, place, size and angle, on rough paper."""

from __future__ import annotations

import numpy as np
from PIL import Image, ImageChops, ImageDraw, ImageOps

_SIDE = 200
# Saturation and value in percent; hues are random. The first two are those of the ground.
_COLORS = {
    "pale": (15, 100),
    "strong": (40, 72),
    "light": (15, 100),
    "dark": (50, 28),
    "main": (75, 80),
    "other": (80, 90),
}
# The parts of each thing from back to front, on a square with sides of 100.
_PARTS: dict[str, list[tuple[str, str, tuple[int, ...]]]] = {
    "boat": [
        ("rectangle", "dark", (47, 3, 52, 70)),
        ("polygon", "light", (56, 8, 90, 60, 56, 60)),
        ("polygon", "other", (44, 18, 18, 60, 44, 60)),
        ("polygon", "main", (2, 68, 98, 68, 80, 92, 20, 92)),
    ],
    "cup": [
        ("ellipse", "dark", (7, 80, 93, 95)),
        ("ellipse", "main", (60, 36, 95, 70)),
        ("ellipse", "light", (66, 43, 87, 63)),
        ("polygon", "main", (20, 30, 80, 30, 71, 88, 29, 88)),
        ("rectangle", "other", (24, 48, 76, 60)),
        ("ellipse", "dark", (20, 23, 80, 37)),
    ],
    "fish": [
        ("polygon", "other", (72, 50, 97, 28, 90, 50, 97, 72)),
        ("polygon", "other", (45, 35, 57, 15, 67, 38)),
        ("ellipse", "main", (7, 29, 82, 71)),
        ("polygon", "other", (52, 48, 67, 50, 52, 60)),
        ("ellipse", "light", (18, 39, 31, 52)),
        ("ellipse", "dark", (21, 43, 27, 49)),
    ],
    "flower": [
        ("rectangle", "dark", (47, 35, 52, 98)),
        ("ellipse", "dark", (51, 74, 74, 84)),
        *[("ellipse", "main", (x, y, x + 24, y + 24)) for x, y in ((38, 4), (18, 17), (58, 17))],
        *[("ellipse", "main", (x, y, x + 24, y + 24)) for x, y in ((26, 39), (50, 39))],
        ("ellipse", "other", (38, 24, 62, 48)),
    ],
    "house": [
        ("rectangle", "dark", (65, 8, 75, 35)),
        ("rectangle", "main", (18, 42, 82, 92)),
        ("polygon", "other", (8, 42, 50, 5, 92, 42)),
        ("rectangle", "dark", (43, 65, 57, 92)),
        *[("rectangle", "light", (x, 55, x + 13, 70)) for x in (25, 62)],
    ],
    "sun": [
        *[("rectangle", "other", box) for box in ((46, 1, 54, 99), (1, 46, 99, 54))],
        ("polygon", "other", (13, 19, 19, 13, 87, 81, 81, 87)),
        ("polygon", "other", (13, 81, 19, 87, 87, 19, 81, 13)),
        ("ellipse", "main", (22, 22, 78, 78)),
        *[("ellipse", "dark", (x, 40, x + 6, 48)) for x in (38, 56)],
        ("polygon", "dark", (36, 58, 50, 66, 64, 58, 50, 71)),
    ],
    "tree": [
        ("rectangle", "dark", (44, 55, 56, 97)),
        *[("ellipse", "main", (x, y, x + 42, y + 42)) for x, y in ((10, 28), (48, 28), (29, 4))],
        *[("ellipse", "other", (x, y, x + 7, y + 7)) for x, y in ((27, 50), (46, 14), (68, 42))],
    ],
}
LABELS = tuple(_PARTS)


def draw_label(label: str, rng: np.random.Generator) -> Image.Image:
    """Draws one of `LABELS`: RGB, 200 pixels wide and high."""
    colors = {
        name: f"hsv({rng.integers(360)},{saturation}%,{value}%)"
        for name, (saturation, value) in _COLORS.items()
    }
    # Large, because a smaller one has smooth edges.
    thing = Image.new("RGBA", (4 * 100, 4 * 100))
    pen = ImageDraw.Draw(thing)
    for shape, color, corners in _PARTS[label]:
        getattr(pen, shape)([4 * each for each in corners], fill=colors[color])
    if rng.integers(2):
        thing = ImageOps.mirror(thing)
    thing = thing.resize(rng.integers(100, 155, 2).tolist(), Image.Resampling.LANCZOS)
    thing = thing.rotate(rng.uniform(-15, 15), Image.Resampling.BICUBIC, expand=True)
    pale, strong = (Image.new("RGB", (_SIDE, _SIDE), colors[name]) for name in ("pale", "strong"))
    image = Image.composite(pale, strong, _make_spots(5, 0, rng))
    image.paste(thing, tuple(rng.integers(0, np.subtract(image.size, thing.size))), thing)
    return ImageChops.multiply(image, _make_spots(24, 195, rng).convert("RGB"))


def _make_spots(count: int, darkest: int, rng: np.random.Generator) -> Image.Image:
    """Returns soft random spots, `count` along each side, up to white."""
    few = Image.fromarray(rng.integers(darkest, 256, (count, count), np.uint8))
    return few.resize((_SIDE, _SIDE), Image.Resampling.BICUBIC)
