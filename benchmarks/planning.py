"""How fast a manifest is planned, and in how much memory.

    python benchmarks/planning.py [--rows 200000,1000000] [--images present,absent]

The source is a CSV `split,image_uri,label` of local images: hard links in folders of 1,000 each,
created before the clock starts, or files that do not exist. `write_manifest` runs in a process of
its own. Its memory is the proportional set size of it and its children, from /proc every 50 ms.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

_IN_FOLDER = 1_000
_ORIGINALS = 1_000
_SPLITS = ("TRAIN", "VALIDATION", "TEST", "")
_PHASES = {
    "stage_rows": "read, check, look up",
    "_reject_conflicts": "compare",
    "_make_label_map": "labels",
    "_write_ordered": "order, write",
}


def make_source(folder: Path, rows: int, images: str) -> Path:
    """Writes a CSV of `rows` rows and, when `images` is `present`, the images that it names."""
    originals = [folder / f"original-{number}" for number in range(_ORIGINALS)]
    for number, original in enumerate(originals):
        original.write_bytes(b"x" * (100 + number))
    with (folder / "m.csv").open("w") as file:
        file.write("split,image_uri,label\n")
        for number in range(rows):
            name = f"{number // _IN_FOLDER:04d}/{number % _IN_FOLDER:04d}.jpg"
            file.write(f"{_SPLITS[number % 7 % 4]},{name},label{number % 101}\n")
            if images == "present":
                if number % _IN_FOLDER == 0:
                    (folder / name).parent.mkdir()
                os.link(originals[number % _ORIGINALS], folder / name)
    return folder / "m.csv"


def plan(source: str) -> dict[str, Any]:
    """Plans a source in this process; returns the seconds of each phase and of all."""
    from darkroom.manifest import writer

    seconds = dict.fromkeys(_PHASES.values(), 0.0)
    for name, phase in _PHASES.items():
        owner = writer if hasattr(writer, name) else writer._Rows
        setattr(owner, name, _timed(getattr(owner, name), seconds, phase))
    with tempfile.TemporaryDirectory() as output:
        started, used = time.perf_counter(), time.process_time()
        manifest = writer.write_manifest(source, output, output)
        seconds["in all"] = time.perf_counter() - started
        seconds["of processors"] = time.process_time() - used
    return {"rows": manifest.rows, "seconds": seconds}


def _timed(function: Any, seconds: dict[str, float], phase: str) -> Any:
    def call(*arguments: Any) -> Any:
        started = time.perf_counter()
        try:
            return function(*arguments)
        finally:
            seconds[phase] += time.perf_counter() - started

    return call


def read_tree_bytes(root: int) -> int:
    """Returns the proportional set size of a process and all its children, in bytes."""
    children: dict[int, list[int]] = {}
    for name in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            parent = int(Path("/proc", name, "stat").read_text().rpartition(")")[2].split()[1])
            children.setdefault(parent, []).append(int(name))
    return sum(map(_read_bytes, _walk(root, children)))


def _walk(process: int, children: dict[int, list[int]]) -> Iterator[int]:
    yield process
    for child in children.get(process, ()):
        yield from _walk(child, children)


def _read_bytes(process: int) -> int:
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{process}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024
    return 0


def measure(source: Path) -> dict[str, Any]:
    """Plans a source in a process of its own; returns what `plan` does, and the peak in bytes."""
    command = [sys.executable, __file__, "--plan", str(source)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        peak = 0
        while process.poll() is None:
            peak = max(peak, read_tree_bytes(process.pid))
            time.sleep(0.05)
        output = process.communicate()[0]
    if process.returncode:
        raise SystemExit("Planning failed.")
    return {**json.loads(output), "peak_bytes": peak}


def main() -> None:
    """Measures and prints one row a size."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rows", default="200000,1000000", help="numbers of rows")
    parser.add_argument("--images", default="present,absent", help="whether the images are there")
    parser.add_argument("--plan", metavar="CSV", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.plan:
        print(json.dumps(plan(arguments.plan)))
        return
    print("images       rows   rows/s   peak MB  " + "  ".join([*_PHASES.values(), "in all (s)"]))
    for images in arguments.images.split(","):
        for rows in map(int, arguments.rows.split(",")):
            with tempfile.TemporaryDirectory() as folder:
                found = measure(make_source(Path(folder), rows, images))
            seconds = found["seconds"]
            print(
                f"{images:8} {found['rows']:>8,} {rows / seconds['in all']:>8,.0f} "
                f"{found['peak_bytes'] / 1e6:>9.0f}  "
                + "  ".join(f"{seconds[name]:{len(name)}.2f}" for name in _PHASES.values())
                + f"  {seconds['in all']:10.2f} ({seconds['of processors']:.1f} of processors)",
                flush=True,
            )


if __name__ == "__main__":
    main()
