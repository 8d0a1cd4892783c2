"""How fast darkroom converts, against bare loops that do the same work.

    python benchmarks/convert.py [--sizes 2000,5000,10000] [--pairs 3]

Images are photographs in size and statistics (1/f noise, JPEG, about 30 kB), made with a fixed seed
and hard-linked to the number wanted. The limits are two processes without Beam that do the
contract's own work on the same files, page cache warm:

    L_write  read, header check, SHA-256 of image and shard, CRC32C, write, fsync
    L_full   the same, decoding every image completely, xxh3-128 of its pixels, mean luminance

darkroom and the limit run in turn, A B A B; quoted are medians. Time is fitted as t = a + b * n, so
that start-up (a) does not hide in the rate (1 / b).
"""

from __future__ import annotations

import argparse
import hashlib
import multiprocessing
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import simplejpeg

from darkroom.converter import convert
from darkroom.images import hash_pixels, measure_luminance
from darkroom.tfrecords import RecordWriter

_PROCESSES = 2
_ORIGINALS = 200
_HEIGHT, _WIDTH = 300, 400


def make_photographs(folder: Path, count: int) -> None:
    """Writes `count` JPEGs, hard links to a few hundred different ones."""
    rng = np.random.default_rng(0)
    rows = np.fft.fftfreq(_HEIGHT)[:, None]
    columns = np.fft.rfftfreq(_WIDTH)[None, :]
    falloff = np.maximum(np.hypot(rows, columns), 1.0 / _WIDTH) ** -1.25
    for number in range(count):
        path = folder / str(number % 10) / f"{number:06d}.jpg"
        path.parent.mkdir(parents=True, exist_ok=True)
        if number >= _ORIGINALS:
            os.link(folder / str(number % _ORIGINALS % 10) / f"{number % _ORIGINALS:06d}.jpg", path)
            continue
        phases = np.exp(2j * np.pi * rng.random((3, *falloff.shape)))
        planes = np.fft.irfft2(falloff * phases, (_HEIGHT, _WIDTH))
        # Photographs differ little between their colour planes.
        planes = (planes[:1] + 0.25 * planes) / planes.std() * 40 + 128
        pixels = np.ascontiguousarray(np.clip(planes.transpose(1, 2, 0), 0, 255).astype(np.uint8))
        path.write_bytes(simplejpeg.encode_jpeg(pixels, 80, "RGB", "420"))


def _run_limit(paths: list[Path], target: Path, full: bool, start: float) -> None:
    time.sleep(max(0.0, start - time.time()))
    with target.open("wb") as file:
        writer = RecordWriter(file)
        for path in paths:
            data = path.read_bytes()
            simplejpeg.decode_jpeg_header(data)
            hashlib.sha256(data).hexdigest()
            if full:
                pixels = simplejpeg.decode_jpeg(data, fastdct=True)
                hash_pixels(pixels)
                measure_luminance(pixels)
            writer.write(b"", data)
        file.flush()
        os.fsync(file.fileno())


def time_limit(source: Path, full: bool) -> float:
    """Returns the seconds of the bare loops on all images of a folder."""
    paths = sorted(source.rglob("*.jpg"))
    with tempfile.TemporaryDirectory(dir=source.parent) as scratch:
        start = time.time() + 1.5  # time for both processes to start and import
        processes = [
            multiprocessing.get_context("spawn").Process(
                target=_run_limit,
                args=(paths[i::_PROCESSES], Path(scratch, str(i)), full, start),
            )
            for i in range(_PROCESSES)
        ]
        for process in processes:
            process.start()
        for process in processes:
            process.join()
        return time.time() - start


def time_convert(source: Path, checks: str) -> float:
    """Returns the seconds of `darkroom.convert` on a folder."""
    with tempfile.TemporaryDirectory(dir=source.parent) as scratch:
        started = time.time()
        result = convert(source, Path(scratch, "records"), checks=checks)
        seconds = time.time() - started
    if result.written != result.rows:
        raise SystemExit(f"Not all images were written: {result}")
    return seconds


def _fit(sizes: list[int], seconds: list[float]) -> tuple[float, float]:
    """Returns fixed seconds and seconds an image."""
    slope, fixed = np.polyfit(sizes, seconds, 1)
    return float(fixed), float(slope)


def compare(folders: dict[int, Path], checks: str, pairs: int) -> None:
    """Prints one row: darkroom's fixed cost and rate, and its share of the limit's rate."""
    runs: dict[str, Callable[[Path], float]] = {
        "darkroom": lambda source: time_convert(source, checks),
        "limit": lambda source: time_limit(source, checks == "full"),
    }
    fits: dict[str, list[tuple[float, float]]] = {name: [] for name in runs}
    for _ in range(pairs):
        for name, run in runs.items():
            fits[name].append(_fit(list(folders), [run(folder) for folder in folders.values()]))
    ratios = [limit[1] / own[1] for own, limit in zip(fits["darkroom"], fits["limit"], strict=True)]
    own_fixed = statistics.median(fixed for fixed, _ in fits["darkroom"])
    rates = {name: statistics.median(1 / slope for _, slope in fit) for name, fit in fits.items()}
    print(
        f"{checks:<8}{rates['darkroom']:>12,.0f}{rates['limit']:>12,.0f}"
        f"{statistics.median(ratios):>8.2f}{own_fixed:>12.2f}",
        flush=True,
    )


def main() -> None:
    """Makes the images and prints the table."""
    parser = argparse.ArgumentParser(description="Time conversion against bare loops.")
    parser.add_argument("--sizes", default="1000,3000,6000", help="numbers of images")
    parser.add_argument("--pairs", type=int, default=3, help="runs of each, in turn")
    parser.add_argument("--scratch", default=None, help="folder for the images")
    arguments = parser.parse_args()
    sizes = [int(size) for size in arguments.sizes.split(",")]
    with tempfile.TemporaryDirectory(dir=arguments.scratch) as scratch:
        folders = {size: Path(scratch, f"images-{size}") for size in sizes}
        for size, folder in folders.items():
            make_photographs(folder, size)
        sample = sorted(folders[sizes[0]].rglob("*.jpg"))[:_ORIGINALS]
        mean = statistics.mean(path.stat().st_size for path in sample)
        print(f"{_WIDTH} x {_HEIGHT} JPEG, {mean / 1000:.0f} kB; {os.cpu_count()} cores; images/s")
        print(f"{'checks':<8}{'darkroom':>12}{'limit':>12}{'ratio':>8}{'fixed s':>12}")
        time_convert(folders[sizes[0]], "header")  # imports, and the page cache
        for checks in ("full", "header"):
            compare(folders, checks, arguments.pairs)


if __name__ == "__main__":
    main()
