"""How fast darkroom converts, against bare loops that do the same work.

    python benchmarks/convert.py [--sizes 2000,8000,20000] [--pairs 3] [--rows full,header,resize]

The images resemble ImageNet's in size and statistics: JPEGs of 500 x 375 and larger, lognormal in
bytes (mean about 110 kB), 1/f noise, drawn with a fixed seed and hard-linked until there are
enough. The limits are two processes without Beam that do the necessary work on the same files, with
a warm page cache:

    header  read, header check, SHA-256 of image and shard, CRC32C, write, fsync
    full    the same, decoding every image completely, xxh3-128 of its pixels, mean luminance,
            perceptual hash
    resize  the same, decoding, reducing the short side to 256 and encoding again

darkroom and the limit run in turn, and the table shows medians. Time is fitted as t = a + b * n, so
that the fixed cost (a) is not part of the rate (1 / b). `output` is the bytes of the shards per
byte of the images in them.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import simplejpeg
from input_rows.processes import time_processes

from darkroom.conversion.convert import convert
from darkroom.conversion.result import ConversionResult
from darkroom.dataset.tfrecord import RecordWriter
from darkroom.images.perceptual_hash import hash_look
from darkroom.images.pixels import encode, hash_pixels, measure_luminance, shrink
from darkroom.options import ConversionOptions
from darkroom.options.image import DEFAULT_JPEG_QUALITY
from darkroom.storage import read_bytes

_PROCESSES = 2
_ORIGINALS = 300
_SHAPES = ((375, 500), (333, 500), (500, 375))
_LARGE_BYTES = 200_000
_SHORT_SIDE = 256
_ROWS = ("full", "header", "resize")


def make_photographs(folder: Path, count: int) -> None:
    """Writes `count` JPEGs, hard links to a few hundred different ones."""
    rng = np.random.default_rng(0)
    for number in range(count):
        path = folder / str(number % 10) / f"{number:06d}.jpg"
        path.parent.mkdir(parents=True, exist_ok=True)
        if number < _ORIGINALS:
            path.write_bytes(_draw_photograph(rng, number))
        else:
            first = number % _ORIGINALS
            os.link(folder / str(first % 10) / f"{first:06d}.jpg", path)


def _draw_photograph(rng: np.random.Generator, number: int) -> bytes:
    """Returns a JPEG about as long as an image of ImageNet."""
    wanted = float(np.clip(rng.lognormal(11.21, 0.938), 6e3, 8e5))
    height, width = _SHAPES[number % len(_SHAPES)]
    if wanted > _LARGE_BYTES:
        height, width = 2 * height, 2 * width
    pixels = draw_noise(rng, height, width, rng.uniform(1.0, 1.6))
    subsampling = "444" if number % 5 == 4 else "420"
    low, high, best = 30, 97, b""
    while low < high:
        quality = (low + high) // 2
        data = simplejpeg.encode_jpeg(pixels, quality, "RGB", subsampling)
        if not best or abs(len(data) - wanted) < abs(len(best) - wanted):
            best = data
        low, high = (quality + 1, high) if len(data) < wanted else (low, quality)
    return best


def draw_noise(rng: np.random.Generator, height: int, width: int, exponent: float) -> np.ndarray:
    """Returns 1/f noise that compresses like a photograph: uint8 [height, width, 3]."""
    rows = np.fft.fftfreq(height)[:, None]
    columns = np.fft.rfftfreq(width)[None, :]
    falloff = np.maximum(np.hypot(rows, columns), 1.0 / width) ** -exponent
    phases = np.exp(2j * np.pi * rng.random((3, *falloff.shape)))
    planes = np.fft.irfft2(falloff * phases, (height, width))
    # Photographs differ little between their color planes.
    planes = planes[:1] + 0.25 * planes
    planes = planes / planes.std() * 45 + 128
    return np.ascontiguousarray(np.clip(planes.transpose(1, 2, 0), 0, 255).astype(np.uint8))


def _prepare(data: bytes, row: str) -> bytes:
    """Does the necessary work on an image; returns the bytes to write."""
    simplejpeg.decode_jpeg_header(data)
    if row == "header":
        return data
    pixels = simplejpeg.decode_jpeg(data, fastdct=True)
    hash_pixels(pixels)
    measure_luminance(pixels)
    hash_look(pixels)
    if row == "full":
        return data
    return encode(shrink(pixels, _SHORT_SIDE)[0], "jpeg", DEFAULT_JPEG_QUALITY)


def _run_limit(paths: list[str], target: str, row: str) -> None:
    with open(target, "wb") as file:
        writer = RecordWriter(file)
        for path in paths:
            data = _prepare(read_bytes(path), row)
            hashlib.sha256(data).hexdigest()
            writer.write(b"", data)
        os.fsync(file.fileno())


def time_limit(source: Path, row: str) -> float:
    """Returns the seconds of the bare loops on all images of a folder."""
    paths = sorted(str(path) for path in source.rglob("*.jpg"))
    with tempfile.TemporaryDirectory(dir=source.parent) as scratch:
        parts = [(paths[i::_PROCESSES], f"{scratch}/{i}", row) for i in range(_PROCESSES)]
        return time_processes(_run_limit, parts)


def run_convert(source: Path, target: Path, row: str) -> ConversionResult:
    """Converts a folder with the options of a row of the table."""
    return convert(
        source,
        target,
        options=ConversionOptions(
            image_check="header" if row == "header" else "full",
            resize_short_side=_SHORT_SIDE if row == "resize" else None,
        ),
    )


def time_convert(source: Path, row: str) -> float:
    """Returns the seconds of `darkroom.convert` on a folder."""
    with tempfile.TemporaryDirectory(dir=source.parent) as scratch:
        started = time.time()
        result = run_convert(source, Path(scratch, "records"), row)
        seconds = time.time() - started
    if result.written != result.rows:
        raise SystemExit(f"Not all images were written: {result}")
    return seconds


def measure_output(source: Path) -> float:
    """Returns the bytes of the shards per byte of the images."""
    with tempfile.TemporaryDirectory(dir=source.parent) as scratch:
        run_convert(source, Path(scratch, "records"), "header")
        written = sum(path.stat().st_size for path in Path(scratch).rglob("data_tfrecord-*"))
    return written / sum(path.stat().st_size for path in source.rglob("*.jpg"))


def _fit(sizes: list[int], seconds: list[float]) -> tuple[float, float]:
    """Returns fixed seconds and seconds an image."""
    slope, fixed = np.polyfit(sizes, seconds, 1)
    return float(fixed), float(slope)


def compare(folders: dict[int, Path], row: str, pairs: int) -> None:
    """Prints one row: darkroom's fixed cost and rate, and its share of the limit's rate."""
    runs: dict[str, Callable[[Path, str], float]] = {"darkroom": time_convert, "limit": time_limit}
    fits: dict[str, list[tuple[float, float]]] = {name: [] for name in runs}
    for _ in range(pairs):
        seconds: dict[str, list[float]] = {name: [] for name in runs}
        # In turn at every size, so that other work on the machine slows both.
        for folder in folders.values():
            for name, run in runs.items():
                seconds[name].append(run(folder, row))
        for name, taken in seconds.items():
            fits[name].append(_fit(list(folders), taken))
    ratios = [limit[1] / own[1] for own, limit in zip(fits["darkroom"], fits["limit"], strict=True)]
    own_fixed = statistics.median(fixed for fixed, _ in fits["darkroom"])
    rates = {name: statistics.median(1 / slope for _, slope in fit) for name, fit in fits.items()}
    print(
        f"{row:<8}{rates['darkroom']:>12,.0f}{rates['limit']:>12,.0f}"
        f"{statistics.median(ratios):>8.2f}{own_fixed:>12.2f}"
        f"   {' '.join(f'{ratio:.2f}' for ratio in ratios)}",
        flush=True,
    )


def main() -> None:
    """Makes the images and prints the table."""
    parser = argparse.ArgumentParser(description="Time conversion against bare loops.")
    parser.add_argument("--sizes", default="2000,8000,20000", help="numbers of images")
    parser.add_argument("--pairs", type=int, default=3, help="runs of each, in turn")
    parser.add_argument("--rows", default=",".join(_ROWS), help="which rows to measure")
    parser.add_argument("--scratch", default=None, help="folder for the images")
    arguments = parser.parse_args()
    sizes = [int(size) for size in arguments.sizes.split(",")]
    with tempfile.TemporaryDirectory(dir=arguments.scratch) as scratch:
        folders = {size: Path(scratch, f"images-{size}") for size in sizes}
        for size, folder in folders.items():
            make_photographs(folder, size)
        sample = sorted(folders[sizes[0]].rglob("*.jpg"))[:_ORIGINALS]
        mean = statistics.mean(path.stat().st_size for path in sample)
        # This also imports everything and warms the page cache.
        output = measure_output(folders[sizes[0]])
        print(f"JPEG of {mean / 1000:.0f} kB on average; {os.cpu_count()} cores; images/s")
        print(f"output  {output:.3f} bytes for a byte of images")
        print(f"{'checks':<8}{'darkroom':>12}{'limit':>12}{'ratio':>8}{'fixed s':>12}   ratios")
        for row in arguments.rows.split(","):
            compare(folders, row, arguments.pairs)


if __name__ == "__main__":
    main()
