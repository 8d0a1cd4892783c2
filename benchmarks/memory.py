"""How much memory a conversion takes, by the number of rows.

    python benchmarks/memory.py [--rows 200000,1000000]

The images are JPEGs of about 1 kB, so that the number of rows matters most: hard links to a
thousand different ones. `convert` runs as a command with all its defaults and decodes every image.
Its memory is the proportional set size of it and its children, from /proc every 100 ms. `busy` is
the share of all cores' time that the conversion's processes used.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import simplejpeg
from planning import make_source, read_tree_bytes


def write_images(folder: Path) -> None:
    """Turns the files that `make_source` links to into images."""
    rng = np.random.default_rng(0)
    for original in sorted(folder.glob("original-*")):
        pixels = rng.integers(0, 256, (24, 24, 3), np.uint8)
        original.write_bytes(simplejpeg.encode_jpeg(pixels, 85))


def measure(source: Path, output: Path) -> tuple[float, float, int]:
    """Converts a source; returns seconds, seconds of processors, and the most bytes."""
    command = [sys.executable, "-m", "darkroom.cli", "convert", str(source)]
    command += ["--output-dir", str(output), "--json"]
    before, started = os.times(), time.perf_counter()
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    with subprocess.Popen(command, **quiet) as process:
        peak = 0
        while process.poll() is None:
            peak = max(peak, read_tree_bytes(process.pid))
            time.sleep(0.1)
    after, seconds = os.times(), time.perf_counter() - started
    if process.returncode:
        raise SystemExit(f"The conversion ended with {process.returncode}.")
    used = after.children_user + after.children_system
    return seconds, used - before.children_user - before.children_system, peak


def main() -> None:
    """Measures and prints one row a size."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rows", default="200000,1000000", help="numbers of rows")
    parser.add_argument("--scratch", default=None, help="folder for the images")
    arguments = parser.parse_args()
    cores = os.cpu_count() or 1
    print(f"{'rows':>10}{'seconds':>10}{'images/s':>10}{'busy':>8}{'peak MB':>10}   {cores} cores")
    for rows in map(int, arguments.rows.split(",")):
        with tempfile.TemporaryDirectory(dir=arguments.scratch) as scratch:
            folder = Path(scratch, "images")
            folder.mkdir()
            source = make_source(folder, rows, "present")
            write_images(folder)
            seconds, used, peak = measure(source, Path(scratch, "records"))
        print(
            f"{rows:>10,}{seconds:>10.1f}{rows / seconds:>10,.0f}"
            f"{used / seconds / cores:>8.0%}{peak / 1e6:>10.0f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
