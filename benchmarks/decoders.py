"""What it costs to decode images other than plain JPEGs in another process.

    python benchmarks/decoders.py [--images 200] [--rounds 5]

Prepares the same images (checks `full`) in this process and in others, in turn (A B A B), and
prints medians. The images of 400 x 300 pixels are drawn with a fixed seed: smooth with some noise.
"""

from __future__ import annotations

import argparse
import io
import statistics
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from PIL import Image, features

from darkroom.images.decoders import ImagePreparer
from darkroom.images.prepare import prepare_image
from darkroom.options.image import ImageOptions

_HEIGHT, _WIDTH = 300, 400
_ORIGINALS = 20
_OPTIONS = ImageOptions()


def make_images(kind: str, count: int, scale: int = 1, cmyk: bool = False) -> list[bytes]:
    """Returns images of one format; a few different ones are repeated."""
    rng = np.random.default_rng(0)
    y, x = np.mgrid[0 : _HEIGHT * scale, 0 : _WIDTH * scale] / scale
    images = []
    for number in range(min(count, _ORIGINALS)):
        planes = np.stack([y * 0.7 + number, x * 0.5, (x + y) * 0.3], -1)
        pixels = (planes + rng.normal(0, 4, planes.shape)).clip(0, 255).astype(np.uint8)
        buffer = io.BytesIO()
        image = Image.fromarray(pixels)
        image = image.convert("CMYK") if cmyk else image
        image.save(buffer, kind)
        images.append(buffer.getvalue())
    return (images * (count // len(images) + 1))[:count]


def measure_rate(prepare: Callable[[bytes], object], images: list[bytes], threads: int) -> float:
    """Returns images a second."""
    with ThreadPoolExecutor(threads) as pool:
        started = time.perf_counter()
        for _ in pool.map(prepare, images):
            pass
        return len(images) / (time.perf_counter() - started)


def compare(name: str, images: list[bytes], threads: int, rounds: int) -> None:
    """Prints one row."""
    preparer = ImagePreparer(_OPTIONS)
    ways: dict[str, Callable[[bytes], object]] = {
        "here": lambda data: prepare_image(data, _OPTIONS),
        "apart": preparer.prepare,
    }
    for way in ways.values():
        measure_rate(way, images[: 4 * threads], threads)
    rates: dict[str, list[float]] = {way: [] for way in ways}
    for _ in range(rounds):
        for way, prepare in ways.items():
            rates[way].append(measure_rate(prepare, images, threads))
    preparer.close()
    here, apart = (statistics.median(rates[way]) for way in ways)
    ratios = [mine / other for mine, other in zip(rates["apart"], rates["here"], strict=True)]
    share = statistics.median(ratios)
    print(f"| {name} | {threads} | {here:,.0f} | {apart:,.0f} | {share:.2f} |", flush=True)


def measure_start(rounds: int) -> float:
    """Returns the seconds that the first image takes longer than the second."""
    [data] = make_images("PNG", 1)
    seconds = []
    for _ in range(rounds):
        preparer = ImagePreparer(_OPTIONS)
        marks = [time.perf_counter()]
        for _ in range(2):
            preparer.prepare(data)
            marks.append(time.perf_counter())
        seconds.append((marks[1] - marks[0]) - (marks[2] - marks[1]))
        preparer.close()
    return statistics.median(seconds)


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--images", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    print("| images | threads | images/s in this process | images/s in others | ratio |")
    print("| --- | --- | --- | --- | --- |")
    for threads in (1, 2):
        for kind in ("PNG", "WEBP", "GIF", "BMP", "TIFF"):
            images = make_images(kind, arguments.images)
            compare(f"{kind} 400 x 300", images, threads, arguments.rounds)
        images = make_images("JPEG", arguments.images, cmyk=True)
        compare("CMYK JPEG 400 x 300", images, threads, arguments.rounds)
        images = make_images("JPEG", arguments.images)
        compare("plain JPEG 400 x 300 (always in this process)", images, threads, arguments.rounds)
        images = make_images("PNG", 10, scale=5)
        compare("PNG 2000 x 1500", images, threads, arguments.rounds)
    if features.check("avif"):
        compare("AVIF 400 x 300", make_images("AVIF", 40), 2, arguments.rounds)
    print(f"\nStarting a process takes {measure_start(arguments.rounds):.2f} s, once a core.")


if __name__ == "__main__":
    main()
