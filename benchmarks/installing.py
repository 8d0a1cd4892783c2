"""What `pip install` costs: packages, MB, and the seconds until 100 photographs are a dataset.

    python benchmarks/installing.py [--python PYTHON] [--extras beam,gcp]

Installs a wheel of this checkout into a new environment, by pip without a cache, and converts JPEGs
of 500 x 375 pixels. MB are without bytecode and pip. Needs a package index.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from importlib.metadata import Distribution, distributions
from pathlib import Path

from PIL import Image

_ROOT = Path(__file__).resolve().parents[1]


def weigh(package: Distribution) -> float:
    """Returns the MB of an installed package."""
    files = (each for each in package.files or () if each.suffix != ".pyc")
    return sum(Path(each.locate()).stat().st_size for each in files) / 1e6


def main() -> None:
    """Prints the figures, and what is largest."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--extras", default="")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for number in range(100):
            path = folder / "images" / ("cat", "dog")[number % 2] / f"{number}.jpg"
            path.parent.mkdir(exist_ok=True, parents=True)
            Image.effect_noise((500, 375), 30).convert("RGB").save(path)
        subprocess.run([arguments.python, "-m", "venv", folder / "env"], check=True)
        pip = [folder / "env/bin/python", "-m", "pip", "-q", "--no-cache-dir"]
        subprocess.run([*pip, "wheel", "--no-deps", "-w", folder, _ROOT], check=True)
        [wheel] = folder.glob("*.whl")
        started = time.perf_counter()
        subprocess.run(
            [*pip, "install", f"darkroom-data[{arguments.extras}] @ file://{wheel}"], check=True
        )
        installed = time.perf_counter()
        convert = [folder / "env/bin/darkroom", "convert", folder / "images", "--output-dir"]
        subprocess.run([*convert, folder / "out"], check=True, capture_output=True)
        converted = time.perf_counter()
        [site] = map(str, folder.glob("env/lib/python*/site-packages"))
        sizes = {each.name: weigh(each) for each in distributions(path=[site])}
    del sizes["pip"]
    print(f"{len(sizes)} packages, {sum(sizes.values()):.0f} MB")
    print(f"{installed - started:.0f} s to install, {converted - started:.0f} s to the dataset")
    for name in sorted(sizes, key=sizes.__getitem__, reverse=True)[:6]:
        print(f"  {name} {sizes[name]:.1f} MB")


if __name__ == "__main__":
    main()
