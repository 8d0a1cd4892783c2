"""darkroom beside the loaders that people use.

    python benchmarks/side_by_side.py [--images 10000] [--pairs 3] [--loaders grain,...]
        [--own darkroom_numpy] [--uses train,eval] [--photographs DIR]
        [--environments .venv/loaders] [--python PYTHON]

Run it by hand: it is not part of `make bench`, because the first run installs each loader into an
environment of its own (some GB from the network in all), with the versions that
`benchmarks/loaders/*.txt` pin.

All loaders get the same JPEG files, written once in the format that each reads, and make the same
batches: 64 x 224 x 224 x 3, uint8, bilinear; of random windows (training), or of the middle of
images resized to a short side of 256 (evaluation). Two cores, page cache warm, batches consumed one
after another; the first ten do not count. Each loader is used in the way that its documentation
calls fastest, and runs in turn with `--own`, each in a fresh process. The table shows medians, and
the ratios of the pairs; and the same of images a second of processor time, which other work on the
machine changes less.

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

from input_rows.pairs import show_pairs
from input_rows.photographs import make_photographs
from loaders.environments import make_environment

_CORES = 2
_READERS = Path(__file__).parent / "loaders"
# The name of a loader's script, and the environment that it runs in: None is this one.
LOADERS = {
    "darkroom": None,
    "darkroom_numpy": None,
    "darkroom_torch": "darkroom_torch",
    "tfds_folder": "tfds",
    "tfds_records": "tfds",
    "webdataset": "webdataset",
    "grain": "grain",
    "image_folder": "image_folder",
    "litdata": "litdata",
    "streaming": "streaming",
}
_OTHERS = ("tfds_folder", "tfds_records", "webdataset", "grain")


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

    def read(self, use: str, expected: int) -> dict[str, float]:
        """Returns the rates of an epoch in a fresh process; see `contract.consume`."""
        result = self._run("read", self.target, use, "--cores", _CORES)
        if result["images"] != expected:
            raise SystemExit(f"{self.name} gave {result['images']} images instead of {expected}.")
        return result

    def _run(self, *arguments: object) -> dict[str, float]:
        script = _READERS / f"{self.name}_reader.py"
        command = [self.python, script, *arguments]
        done = subprocess.run([str(part) for part in command], capture_output=True, text=True)
        if done.returncode:
            raise SystemExit(f"{self.name} failed:\n{done.stderr}")
        return json.loads(done.stdout.splitlines()[-1])


def compare(own: Loader, other: Loader, use: str, count: int, pairs: int) -> None:
    """Prints a row of images a second, and one of images a second of processor time."""
    runs = [(own.read(use, count), other.read(use, count)) for _ in range(pairs)]
    for what, name in ((use, "rate"), (f"{use}, processor", "processor_rate")):
        cells = show_pairs([(first[name], second[name]) for first, second in runs])
        print(f"{other.name:<16}{what:<18}{cells}", flush=True)


def _parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Time darkroom beside other loaders.")
    parser.add_argument("--images", type=int, default=10_000, help="number of images")
    parser.add_argument("--pairs", type=int, default=3, help="runs of each, in turn")
    parser.add_argument("--own", default="darkroom", choices=LOADERS, help="which is compared")
    parser.add_argument("--loaders", default=",".join(_OTHERS), help="which to compare with")
    parser.add_argument("--uses", default="train,eval", help="also whole, if all are darkroom")
    parser.add_argument("--photographs", type=Path, help="folder of JPEGs to take instead")
    parser.add_argument("--environments", type=Path, default=Path(".venv/loaders"))
    parser.add_argument("--python", default=sys.executable, help="for the environments")
    parser.add_argument("--scratch", default=None, help="folder for the images")
    return parser.parse_args()


def _find_python(name: str, arguments: argparse.Namespace) -> Path:
    environment = LOADERS[name]
    if environment is None:
        return Path(sys.executable)
    return make_environment(
        _READERS / f"{environment}.txt", arguments.environments, arguments.python
    )


def main() -> None:
    """Makes environments and images, and prints the table."""
    arguments = _parse_arguments()
    names = [arguments.own, *arguments.loaders.split(",")]
    pythons = {name: _find_python(name, arguments) for name in names}
    os.sched_setaffinity(0, set(sorted(os.sched_getaffinity(0))[:_CORES]))
    with tempfile.TemporaryDirectory(dir=arguments.scratch) as scratch:
        images = Path(scratch, "images")
        make_photographs(images / "train", arguments.images, arguments.photographs)
        size = sum(path.stat().st_size for path in images.rglob("*.jpg"))
        print(f"{arguments.images:,} JPEGs of {size / 1e6:,.0f} MB; {_CORES} cores; images/s")
        own, *others = [Loader(name, pythons[name], Path(scratch, name)) for name in names]
        for loader in (own, *others):
            print(f"format of {loader.name}: {loader.write(images)}", flush=True)
        print(f"against {'':<8}{'use':<18}{'own':>9}{'against':>9}{'ratio':>8}  ratios, {own.name}")
        for other in others:
            for use in arguments.uses.split(","):
                compare(own, other, use, arguments.images, arguments.pairs)


if __name__ == "__main__":
    main()
