"""Makes convert.png: a terminal in which `darkroom convert` says how it read a list.

    python docs/images/terminal.py

Needs Pillow, and the font DejaVu Sans Mono.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path

from PIL import Image, ImageDraw, ImageFont

_COMMAND = "darkroom convert photos.csv --output-dir records"
_COLUMNS, _LINE, _EDGE = 110, 19, 16
_PAPER, _INK, _SOFT, _DOUBT = "#14161a", "#d8dbe2", "#8b93a3", "#e0b050"
_FONT = ImageFont.truetype("DejaVuSansMono.ttf", 13)


def run(folder: Path) -> list[str]:
    """Returns what the command prints about a list with a column of splits of another name."""
    rows = []
    for number in range(120):
        name, label = f"{number}.png", str(number % 11)
        pixels = bytes((number * 7 + place) % 251 for place in range(16 * 16 * 3))
        Image.frombytes("RGB", (16, 16), pixels).save(folder / name)
        rows.append(f"{name},{label},{'test' if number % 5 == 0 else 'train'},{number % 7}")
    text = "\n".join(["sep=,", "image,label,phase,camera", *rows])
    (folder / "photos.csv").write_text(text + "\n")
    command = [sys.executable, "-m", "darkroom.cli", *_COMMAND.split()[1:]]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
    doubts = [line for line in done.stderr.splitlines() if line.startswith("Doubt")]
    said = done.stdout.split("\nLabels")[0].splitlines()
    return [f"$ {_COMMAND}", *doubts, *said]


def draw(lines: list[str]) -> Image.Image:
    """Returns lines as a terminal shows them, long ones in several rows."""
    rows = []
    for line in lines:
        color = _DOUBT if "doubt" in line.lower() else _SOFT if line.startswith("$") else _INK
        rows += [(part, color) for part in textwrap.wrap(line, _COLUMNS, drop_whitespace=False)]
    width = int(_FONT.getlength("x") * _COLUMNS) + 2 * _EDGE
    image = Image.new("RGB", (width, _LINE * len(rows) + 2 * _EDGE), _PAPER)
    pen = ImageDraw.Draw(image)
    for number, (text, color) in enumerate(rows):
        pen.text((_EDGE, _EDGE + number * _LINE), text, font=_FONT, fill=color)
    return image


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as scratch:
        picture = draw(run(Path(scratch)))
    target = Path(__file__).with_name("convert.png")
    picture.quantize(32, dither=Image.Dither.NONE).save(target, optimize=True)
