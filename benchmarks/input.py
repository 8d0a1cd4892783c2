"""How fast darkroom feeds a training, against other ways to read the same images.

    python benchmarks/input.py [--images 10000] [--pairs 3] [--rows train,eval,...]
        [--photographs DIR]

Batches of 64 images, 224 x 224 x 3, uint8, are consumed one after another, with a warm page cache.
The limits are two processes without TensorFlow, including reading:

    ops     simplejpeg decodes, OpenCV resizes (bilinear): the same windows, or the middle of
            images with a short side of 256
    full    simplejpeg decodes completely, nothing else

`keras` is Keras's loader of folders. `ways` are 13 ways to read, from a loop in Python over tf.data
by hand to darkroom with other options and other forms of storage.

Each row runs in turn with its limit; the table shows medians, and the ratios of the pairs. Without
--photographs, JPEGs of 533 x 400 pixels and 28 kB are drawn, as large as shops' photographs of
clothing, and hard-linked until there are enough. Images of 12 megapixels are always drawn.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
from pathlib import Path

from input_rows.bench import Bench

ROWS = (
    "train",
    "eval",
    "scaled",
    "resized",
    "raw",
    "keras",
    "ways",
    "spans",
    "options",
    "busy",
    "cores",
    "memory",
)


def main() -> None:
    """Makes the images and prints the table."""
    parser = argparse.ArgumentParser(description="Time input pipelines against bare loops.")
    parser.add_argument("--images", type=int, default=10_000, help="number of images")
    parser.add_argument("--pairs", type=int, default=3, help="runs of each, in turn")
    parser.add_argument("--rows", default=",".join(ROWS), help="which rows to measure")
    parser.add_argument("--photographs", type=Path, help="folder of JPEGs to take instead")
    parser.add_argument("--scratch", default=None, help="folder for the images")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=arguments.scratch) as scratch:
        bench = Bench(Path(scratch), arguments.images, arguments.pairs, arguments.photographs)
        mean = statistics.fmean(path.stat().st_size for path in bench.paths)
        print(
            f"{len(bench.paths):,} JPEGs of {mean / 1000:.0f} kB; {os.cpu_count()} cores; images/s"
        )
        print(f"{'row : against':<34}{'darkroom':>9}{'against':>9}{'ratio':>8}  {'aim':<8}ratios")
        for row in arguments.rows.split(","):
            getattr(bench, row)()


if __name__ == "__main__":
    main()
