"""Rows a second of numeric CSV: make_csv_dataset, Python's csv module, pandas.

200,000 rows of 20 columns in four files, read to the end in batches of 256 rows. CPU time is shown
too, because it does not depend on other work on the machine.
"""

from __future__ import annotations

import csv
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pandas as pd

from darkroom.input.tables.csv import make_csv_dataset
from darkroom.input.tables.csv_table import CsvOptions

NUM_FILES, FILE_ROWS, NUM_FEATURES, BATCH_SIZE, RUNS = 4, 50_000, 19, 256, 5


def write_files(folder: Path) -> list[str]:
    """Writes files of normally distributed numbers with six decimals, and labels 0 to 9."""
    rng = np.random.default_rng(0)
    files = []
    for number in range(NUM_FILES):
        table = pd.DataFrame(rng.normal(size=(FILE_ROWS, NUM_FEATURES)).round(6)).add_prefix("x")
        table["y"] = rng.integers(0, 10, FILE_ROWS)
        files.append(str(folder / f"part-{number}.csv"))
        table.to_csv(files[-1], index=False)
    return files


def read_darkroom(files: list[str], training: bool) -> Iterator[int]:
    """Yields the rows of each batch."""
    options = CsvOptions("y", batch_size=BATCH_SIZE)
    for _, labels in make_csv_dataset(files, options, training=training):
        yield len(labels)


def read_python(files: list[str]) -> Iterator[int]:
    """Yields the rows of each batch, read by a loop over the csv module."""
    for file in files:
        with open(file, newline="") as text:
            rows = csv.reader(text)
            next(rows)
            cells = [[float(cell) for cell in row] for row in rows]
        for start in range(0, len(cells), BATCH_SIZE):
            yield len(np.asarray(cells[start : start + BATCH_SIZE], np.float32))


def read_pandas(files: list[str]) -> Iterator[int]:
    """Yields the rows of each batch, a whole file in memory at a time."""
    for file in files:
        cells = pd.read_csv(file).to_numpy(np.float32)
        for start in range(0, len(cells), BATCH_SIZE):
            yield len(cells[start : start + BATCH_SIZE])


def measure(name: str, read: Callable[[], Iterator[int]]) -> None:
    """Prints the median of rows a second, and CPU time a row, of some runs."""
    walls, cpus = [], []
    for _ in range(RUNS):
        wall, cpu = time.perf_counter(), time.process_time()
        rows = sum(read())
        walls.append(rows / (time.perf_counter() - wall))
        cpus.append((time.process_time() - cpu) / rows * 1e6)
    median, cost = np.median(walls), np.median(cpus)
    print(f"{name:<20} {median:10,.0f} rows/s {cost:6.2f} us CPU/row", flush=True)


def main() -> None:
    """Runs the benchmark."""
    with tempfile.TemporaryDirectory() as folder:
        files = write_files(Path(folder))
        measure("darkroom, in order", lambda: read_darkroom(files, False))
        measure("darkroom, shuffled", lambda: read_darkroom(files, True))
        measure("csv module", lambda: read_python(files))
        measure("pandas", lambda: read_pandas(files))


if __name__ == "__main__":
    main()
