"""JPEGs like photographs, as many as wanted, without encoding each one."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import simplejpeg

_DIFFERENT = 200


def write_jpegs(folder: Path, number: int) -> Path:
    """Writes different JPEGs of some 28 kB, and returns the CSV that lists them.

    Some are pictures of their own; the others differ from one of these in a comment.
    """
    rng = np.random.default_rng(0)
    pictures = [_encode(rng) for _ in range(min(number, _DIFFERENT))]
    splits = ("TRAIN", "TRAIN", "TRAIN", "TRAIN", "VALIDATION", "TEST")
    rows = ["split,image_uri,label"]
    for each in range(number):
        data, note = pictures[each % len(pictures)], b"%08d" % each
        path = folder / str(each // 1_000) / f"{each:06d}.jpg"
        path.parent.mkdir(parents=True, exist_ok=True)
        # A comment of eight bytes after the first marker.
        path.write_bytes(data[:2] + b"\xff\xfe\x00\x0a" + note + data[2:])
        rows.append(f"{splits[each % 6]},{path.relative_to(folder)},class-{each % 10}")
    source = folder / "images.csv"
    source.write_text("\n".join(rows))
    return source


def _encode(rng: np.random.Generator) -> bytes:
    """A picture of 360 x 280: slopes of color, blocks, and noise."""
    y, x = np.mgrid[0:280, 0:360]
    slopes = np.stack([x * rng.uniform(0, 1) + y * rng.uniform(0, 1) for _ in range(3)], -1)
    blocks = rng.normal(0, 28, (70, 90, 3)).repeat(4, 0).repeat(4, 1)
    pixels = slopes * 0.6 + blocks + rng.normal(50, 6, (280, 360, 3))
    return simplejpeg.encode_jpeg(np.clip(pixels, 0, 255).astype(np.uint8), 63)
