"""darkroom beside the loaders that people use: tfds.ImageFolder, TFDS, webdataset, Grain.

    python benchmarks/side_by_side.py [--images 10000] [--pairs 3] [--loaders grain,...]
        [--photographs DIR] [--environments .venv/loaders]

Run it by hand: it is not part of `make bench`, because the first run installs each loader into an
environment of its own (some GB from the network in all), with the versions that
`benchmarks/loaders/*.txt` pin.

All loaders get the same JPEG files, written once in the format that each reads, and make the same
batches: 64 x 224 x 224 x 3, uint8, bilinear; of random windows (training), or of the middle of
images resized to a short side of 256 (evaluation). Two cores, page cache warm, batches consumed one
after another; the first ten do not count. Each loader is used in the way that its documentation
calls fastest, and runs in turn with darkroom, each in a fresh process. The table shows medians, and
the ratios of the pairs.

Without --photographs, JPEGs are drawn as in benchmarks/input.py.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from input_rows.pairs import run_pairs
from input_rows.photographs import make_photographs
from loaders.environments import make_environment

_CORES = 2
_READERS = Path(__file__).parent / "loaders"
# The name of a loader's script, and the environment that it runs in.
LOADERS = {
    "tfds_folder": "tfds",
    "tfds_records": "tfds",
    "webdataset": "webdataset",
    "grain": "grain",
}


@dataclass(frozen=True)
class Loader:
    """A loader and the photographs in its format.

    Attributes:
        name: Name of its script.
        python: Interpreter of its environment.
        target: Folder of the photographs in its format.
    """

    name: str
    python: Path
    target: Path

    def write(self, photographs: Path) -> str:
        """Writes the photographs in its format; returns size and time, in words."""
        seconds = self._run("write", photographs, self.target)["seconds"]
        size = sum(path.stat().st_size for path in self.target.rglob("*") if path.is_file())
        if self.target.is_symlink():
            return "none: reads the files"
        return f"{size / 1e6:,.0f} MB, written in {seconds:.1f} s"

    def read(self, use: str, expected: int) -> float:
        """Returns the images a second of an epoch in a fresh process."""
        result = self._run("read", self.target, use, "--cores", _CORES)
        if result["images"] != expected:
            raise SystemExit(f"{self.name} gave {result['images']} images instead of {expected}.")
        return result["rate"]

    def _run(self, *arguments: object) -> dict[str, float]:
        script = _READERS / f"{self.name}_reader.py"
        command = [self.python, script, *arguments]
        done = subprocess.run([str(part) for part in command], capture_output=True, text=True)
        if done.returncode:
            raise SystemExit(f"{self.name} failed:\n{done.stderr}")
        return json.loads(done.stdout.splitlines()[-1])


def compare(own: Loader, other: Loader, use: str, count: int, pairs: int) -> None:
    """Prints a row: images a second of both, and their ratio."""
    cells = run_pairs(lambda: own.read(use, count), lambda: other.read(use, count), pairs)
    print(f"{other.name:<14}{use:<7}{cells}", flush=True)


def _parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Time darkroom beside other loaders.")
    parser.add_argument("--images", type=int, default=10_000, help="number of images")
    parser.add_argument("--pairs", type=int, default=3, help="runs of each, in turn")
    parser.add_argument("--loaders", default=",".join(LOADERS), help="which to compare with")
    parser.add_argument("--photographs", type=Path, help="folder of JPEGs to take instead")
    parser.add_argument("--environments", type=Path, default=Path(".venv/loaders"))
    parser.add_argument("--scratch", default=None, help="folder for the images")
    return parser.parse_args()


def main() -> None:
    """Makes environments and images, and prints the table."""
    arguments = _parse_arguments()
    names = arguments.loaders.split(",")
    pythons = {name: make_environment(LOADERS[name], arguments.environments) for name in names}
    os.sched_setaffinity(0, set(sorted(os.sched_getaffinity(0))[:_CORES]))
    with tempfile.TemporaryDirectory(dir=arguments.scratch) as scratch:
        images = Path(scratch, "images")
        make_photographs(images / "train", arguments.images, arguments.photographs)
        size = sum(path.stat().st_size for path in images.rglob("*.jpg"))
        print(f"{arguments.images:,} JPEGs of {size / 1e6:,.0f} MB; {_CORES} cores; images/s")
        own = Loader("darkroom", Path(sys.executable), Path(scratch, "darkroom"))
        others = [Loader(name, pythons[name], Path(scratch, name)) for name in names]
        for loader in (own, *others):
            print(f"format of {loader.name}: {loader.write(images)}", flush=True)
        print(f"{'loader':<14}{'use':<7}{'darkroom':>9}{'loader':>9}{'ratio':>8}  ratios")
        for other in others:
            for use in ("train", "eval"):
                compare(own, other, use, arguments.images, arguments.pairs)


if __name__ == "__main__":
    main()
