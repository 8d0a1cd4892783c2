"""darkroom beside google/tensorflow-recorder 2.0: the time and the size of the same conversion.

    python benchmarks/recorder.py --python python3.8 [--images 1000] [--pairs 3]
        [--photographs DIR] [--environment .venv/loaders/tfrecorder]

Run it by hand: it needs Python 3.8 and uv, and installs the packages of 2020 that
`benchmarks/loaders/tfrecorder.txt` pins (some GB). Both convert the same list of JPEGs, with their
defaults, each time in a fresh process on two cores. Start and imports do not count.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from input_rows.pairs import run_pairs
from input_rows.photographs import make_photographs

_PINS = Path(__file__).parent / "loaders" / "tfrecorder.txt"
_TIMED = """
import json, sys, time
{imports}
started = time.perf_counter()
{call}
print(json.dumps(time.perf_counter() - started))
"""
_OWN = _TIMED.format(imports="import darkroom", call="darkroom.convert(*sys.argv[1:])")
_OTHER = _TIMED.format(
    imports="import tfrecorder", call="tfrecorder.convert(sys.argv[1], output_dir=sys.argv[2])"
)


def make_environment(base: str, folder: Path) -> Path:
    """Returns the interpreter of an environment with tensorflow-recorder."""
    python = folder / "bin" / "python"
    if not python.exists():
        subprocess.run(["uv", "venv", "-q", "--no-project", "--python", base, folder], check=True)
    command = ["uv", "pip", "install", "-q", "--python", python, "--compile-bytecode", "-r", _PINS]
    subprocess.run(command, check=True)
    return python


def convert(python: Path, code: str, listed: Path, target: Path) -> float:
    """Converts in a fresh process, and returns its seconds."""
    command = [python, "-W", "ignore", "-c", code, listed, target]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{python} failed:\n{done.stderr}")
    return float(json.loads(done.stdout.splitlines()[-1]))


def measure_records(folder: Path) -> int:
    """Returns the bytes of all record files in a folder."""
    return sum(path.stat().st_size for path in folder.rglob("*tfrecord*") if path.is_file())


def _parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Time darkroom beside tensorflow-recorder.")
    parser.add_argument("--python", default="python3.8", help="a Python 3.8")
    parser.add_argument("--images", type=int, default=1_000, help="number of images")
    parser.add_argument("--pairs", type=int, default=3, help="runs of each, in turn")
    parser.add_argument("--photographs", type=Path, help="folder of JPEGs to take instead")
    parser.add_argument("--environment", type=Path, default=Path(".venv/loaders/tfrecorder"))
    parser.add_argument("--scratch", default=None, help="folder for the images")
    return parser.parse_args()


def main() -> None:
    """Makes environment and images, and prints the table."""
    arguments = _parse_arguments()
    other = make_environment(arguments.python, arguments.environment)
    os.sched_setaffinity(0, set(sorted(os.sched_getaffinity(0))[:2]))
    with tempfile.TemporaryDirectory(dir=arguments.scratch) as name:
        scratch = Path(name)
        make_photographs(scratch / "images", arguments.images, arguments.photographs)
        paths = sorted((scratch / "images").rglob("*.jpg"))
        listed = scratch / "images.csv"
        rows = (f"TRAIN,{path},{path.parent.name}\n" for path in paths)
        listed.write_text("split,image_uri,label\n" + "".join(rows))
        folders: dict[str, Path] = {}

        def run(python: Path, code: str, side: str) -> float:
            folders[side] = Path(tempfile.mkdtemp(dir=scratch)) / "records"
            return len(paths) / convert(python, code, listed, folders[side])

        cells = run_pairs(
            lambda: run(Path(sys.executable), _OWN, "darkroom"),
            lambda: run(other, _OTHER, "tensorflow-recorder"),
            arguments.pairs,
        )
        read = sum(path.stat().st_size for path in paths)
        print(f"{'images/s:':<10}{'darkroom':>9}{'recorder':>9}{'ratio':>8}  ratios")
        print(f"{'':<10}{cells}")
        for side, folder in folders.items():
            print(f"{side}: {measure_records(folder) / read:.2f} bytes for a byte of JPEG")


if __name__ == "__main__":
    main()
