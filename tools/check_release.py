"""Builds a release and tries it as its users will: `make release-check`.

Builds sdist and wheel, checks their metadata by twine, installs each into an environment of its own
with the newest packages, and uses them outside the checkout. Needs a package index, and the
packages `build` and `setuptools`. What was built stays in `dist`.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
DIST = ROOT / "dist"
MAKE_IMAGES = """
from pathlib import Path
from PIL import Image
rows = ["split,image_uri,label"]
for number in range(8):
    name = f"{number}.png"
    Image.new("RGB", (8 + number, 8), (number * 30, 99, 0)).save(name)
    rows.append(f"{'eval' if number > 5 else 'train'},{name},{('cat', 'dog')[number % 2]}")
Path("images.csv").write_text("\\n".join(rows) + "\\n")
"""


def run(*command: str | Path, cwd: Path) -> str:
    """Runs a command without this project's paths; returns what it printed, or ends this."""
    names = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV")
    environment = {name: value for name, value in os.environ.items() if name not in names}
    done = subprocess.run(
        list(map(str, command)),
        cwd=cwd,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        print(done.stdout, done.stderr, sep="\n", file=sys.stderr)
        sys.exit(f"error: {' '.join(map(str, command))} ended with exit code {done.returncode}")
    return done.stdout


def expect(found: object, wanted: object, what: str) -> None:
    """Ends this when something is not as it should be."""
    if found != wanted:
        sys.exit(f"error: {what} is {found!r}, expected {wanted!r}")


def read_version() -> str:
    """Returns the version of the project, which the changelog must have with a date."""
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    version = re.findall(r'^version = "(.*)"', text, re.MULTILINE)[0]
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    dated = re.findall(r"^## (\S+) - \d{4}-\d\d-\d\d$", changelog, re.MULTILINE)
    if ".dev" not in version:
        expect(dated[:1], [version], "the newest dated section of CHANGELOG.md")
    return str(version)


def make_environment(folder: Path, *packages: str | Path) -> Path:
    """Makes an environment with nothing but packages and what they need; returns its Python."""
    run(sys.executable, "-m", "venv", folder, cwd=folder.parent)
    python = folder / "bin" / "python"
    run(python, "-m", "pip", "install", "-q", *packages, cwd=folder)
    return python


def use(python: Path, folder: Path, version: str) -> None:
    """Converts images that are made here, and looks at the result."""
    folder.mkdir()
    darkroom = python.with_name("darkroom")
    expect("convert" in run(darkroom, "--help", cwd=folder), True, "convert in darkroom --help")
    said = run(python, "-m", "darkroom.cli", "--version", cwd=folder)
    expect(said, f"darkroom {version}\n", "darkroom.cli --version")
    place = run(python, "-c", "import darkroom; print(darkroom.__file__)", cwd=folder)
    expect(Path(place).is_relative_to(python.parents[1]), True, f"{place} in {python.parents[1]}")
    run(python, "-c", MAKE_IMAGES, cwd=folder)
    convert = ("convert", "images.csv", "--output-dir", "records", "--json")
    result = json.loads(run(darkroom, *convert, cwd=folder))
    expect((result["written"], result["splits"]), (8, {"eval": 2, "train": 6}), "what was written")
    checked = json.loads(run(darkroom, "verify", "records", "--json", cwd=folder))
    expect(checked["findings"], [], "what darkroom verify found")


def main() -> None:
    """Does all of it."""
    version = read_version()
    shutil.rmtree(DIST, ignore_errors=True)
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", DIST, cwd=ROOT)
    built = sorted(DIST.iterdir())
    names = [f"darkroom_data-{version}-py3-none-any.whl", f"darkroom_data-{version}.tar.gz"]
    expect([path.name for path in built], names, "what was built")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        python = make_environment(folder / "twine", "twine")
        run(python, "-m", "twine", "check", "--strict", *built, cwd=folder)
        print("The metadata is valid.")
        for path in built:
            python = make_environment(folder / path.suffix, path)
            use(python, folder / f"use{path.suffix}", version)
            print(f"{path.relative_to(ROOT)} installs, converts and verifies.")


if __name__ == "__main__":
    main()
