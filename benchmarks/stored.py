"""Training from images that are stored smaller, or as pixels, without TensorFlow.

    python benchmarks/stored.py [--images 2560] [--rounds 5] [--photographs DIR]

Random windows of 224 x 224 are read in NumPy by two threads, from photographs as they are, stored
with a short side of 256, and that as raw pixels. Each round is compared with two threads in which
simplejpeg decodes the originals completely, and does nothing else (`full`). Prints images a second
of processor time: medians, and the ratios of the rounds.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import simplejpeg
from input_rows.pairs import run_pairs
from input_rows.photographs import make_photographs

import darkroom
from darkroom.options import ConversionOptions

_THREADS = 2
_FORMS = {
    "as they are": {},
    "short side 256": {"resize_short_side": 256},
    "raw, short side 256": {"resize_short_side": 256, "encoding": "raw"},
}


def _read(records: Path) -> float:
    size = {"image_size": 224, "batch_size": 64, "augment": "crop", "training": True}
    loader = darkroom.load(records, framework="numpy", **size)["train"]
    started, count = time.process_time(), 0
    for images, _ in loader:
        images.reshape(-1)[::4096].max()
        count += len(images)
    return count / (time.process_time() - started)


def _decode(files: list[bytes]) -> float:
    started = time.process_time()
    with ThreadPoolExecutor(_THREADS) as pool:
        for _ in pool.map(lambda data: simplejpeg.decode_jpeg(data, fastdct=True).shape, files):
            pass
    return len(files) / (time.process_time() - started)


def main() -> None:
    """Converts the photographs in each form, and prints a row for each."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--images", type=int, default=2560, help="number of images")
    parser.add_argument("--rounds", type=int, default=5, help="runs of each, in turn")
    parser.add_argument("--photographs", type=Path, help="folder of JPEGs to take instead")
    parser.add_argument("--scratch", default=None, help="folder for the images")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=arguments.scratch) as scratch:
        images = Path(scratch, "images")
        make_photographs(images, arguments.images, arguments.photographs)
        files = [path.read_bytes() for path in sorted(images.rglob("*.jpg"))]
        print(f"{'stored':<22}{'darkroom':>9}{'full':>9}{'ratio':>8}  ratios")
        for name, form in _FORMS.items():
            records = Path(scratch, name)
            options = ConversionOptions(split_ratios="100/0/0", **form)
            darkroom.convert(images, records, options=options)
            cells = run_pairs(
                lambda records=records: _read(records), lambda: _decode(files), arguments.rounds
            )
            print(f"{name:<22}{cells}", flush=True)


if __name__ == "__main__":
    main()
