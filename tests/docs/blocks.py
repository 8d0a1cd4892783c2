"""Runs the Python and shell blocks of a page of the documentation, in order and in one folder.

A comment directly before a block says what readers need not see:

    <!-- not run: needs a cluster -->            why no test runs it
    <!-- run by make test-long -->               which run does: also test-torch, or a file of tests
    <!-- before: cp -r records monday -->        what comes first, in the language of the block

README has no comments, because package indexes and editors show them: `_README` has theirs.

A block `text` is what the shell block before it prints; `...` stands for any text.
"""

from __future__ import annotations

import csv
import doctest
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from darkroom.conversion.convert import convert

from ..pictures import encode, make_noise
from ..warm_python import WarmProcess

ROOT = Path(__file__).parents[2]
PAGES = {
    str(path.relative_to(ROOT)): path.read_text("utf-8")
    for path in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))
}
_BLOCK = re.compile(
    r"((?:^<!--(?:(?!-->).)*-->\n)*)^```(python|bash|text)\n(.*?)^```$", re.M | re.S
)
_COMMENT = re.compile(r"<!--\s*(not run: |run by |before: )(.*?)\s*-->", re.S)
# The comments of the blocks of README, by their first lines.
_README = {
    "pip install '.[reader]'  # the base, and load for PyTorch, JAX and NumPy": (
        "<!-- not run: installs packages -->"
    ),
    "import darkroom": (
        '<!-- before: import shutil; shutil.rmtree("records"); from reader import model -->'
    ),
    'data = darkroom.load("records", image_size=224, batch_size=64, training=True, '
    'framework="torch")': "<!-- run by make test-torch -->",
    "darkroom convert images.csv --output-dir records          # TFRecords": (
        "<!-- run by make test-long --><!-- before: cp -r photos new -->"
    ),
}
# What trains, and would for minutes, does so on small images, in one epoch; nothing is downloaded.
_SMALLER = {
    r"darkroom (train|run) (--data (records|images))": (
        r"darkroom \1 --epochs 1 --image-size 16x16 \2"
    ),
    r"\(224, 224\)|\(96, 96\)": "(16, 16)",
    r"image_size=(224|96|320)": "image_size=16",
    r"steps_per_epoch=\d+": "steps_per_epoch=2",
    r"epochs=\d+": "epochs=1",
    r"epochs \d+": "epochs 1",
    r"batch_size=\d+": "batch_size=4",
    "--image-size 96x96": "--image-size 16x16",
    r"\(\(3, 20\)": "((3, 1)",
}
# The programs are those of this checkout, and start at once.
_SHELL = """
python() { "$_PYTHON" -IS warm.py "$@"; }
darkroom() { python -m darkroom.cli "$@"; }
"""


class Block(NamedTuple):
    """A block of code: its line in the page, its text, and what the comments before it say."""

    line: int
    language: str
    text: str
    why_not: str
    runner: str
    before: str


def read_blocks(page: str) -> list[Block]:
    """Returns the blocks of a page, by its path in the repository."""
    blocks = []
    for found in _BLOCK.finditer(PAGES[page]):
        first_line = found[3].partition("\n")[0]
        comments = _README.get(first_line, "") if page == "README.md" else found[1]
        said = dict(_COMMENT.findall(comments))
        says = [said.get(name, "") for name in ("not run: ", "run by ", "before: ")]
        blocks.append(Block(PAGES[page].count("\n", 0, found.start(3)), found[2], found[3], *says))
    return blocks


def list_pages(runner: str) -> list[str]:
    """Returns the pages with code of that runner, "" for none."""
    return [page for page in PAGES if any(_is_code_of(runner, each) for each in read_blocks(page))]


def _is_code_of(runner: str, block: Block) -> bool:
    return block.language != "text" and not block.why_not and block.runner == runner


def run_page(
    page: str,
    runners: set[str],
    names: dict[str, Any],
    server: str = "",
    replaced: Mapping[str, str] | None = None,
) -> None:
    """Runs the blocks of these runners in the current folder; Python adds to the names.

    `server` is that of a warm Python, for shell blocks.
    """
    printed: str | None = None
    for block in read_blocks(page):
        if block.why_not or block.runner not in runners:
            printed = None if block.language == "bash" else printed
            continue
        before, text = block.before, block.text
        for pattern, other in {**_SMALLER, **(replaced or {})}.items():
            before, text = (re.sub(pattern, other, each) for each in (before, text))
        where = f"{page}, line {block.line}:\n{text}"
        if block.language == "python":
            # Tracebacks have the lines of the page.
            for code in (before, "\n" * block.line + text):
                exec(compile(code, page, "exec", dont_inherit=True), names)
        elif block.language == "bash":
            command = ["bash", "-euc", f"{_SHELL}{before}\n{text}"]
            given = {**os.environ, "_PYTHON": sys.executable, "_SERVER": server}
            done = subprocess.run(command, env=given, capture_output=True, text=True, check=False)
            assert done.returncode == 0, f"{where}\n{done.stdout}\n{done.stderr}"
            printed = done.stdout
        elif printed is not None:
            how = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
            assert doctest.OutputChecker().check_output(text, printed, how), f"{where}\n{printed}"
    if os.path.exists("seconds"):
        WarmProcess.processor_seconds += sum(map(float, Path("seconds").read_text().split()))


def write_given(folder: Path) -> None:
    """Writes what pages take for granted: photographs by label, lists of them, a checkout."""
    rows = []
    for number in range(20):
        path = folder / "photos" / ("cat", "dog")[number % 2] / f"{number // 2}.jpg"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(encode(make_noise(number, 24, 20) // 2 + 100 * (number % 2), "JPEG"))
        split = "train" if number < 12 else ("eval", "test")[number // 2 % 2]
        rows.append((split, str(path.relative_to(folder)), path.parent.name))
    with (folder / "images.csv").open("w", newline="") as file:
        csv.writer(file).writerows([("split", "image_uri", "label"), *rows])
    convert(folder / "images.csv", folder / "records")
    sides = {"width": 20, "height": 24}
    images = [{"id": number, "file_name": row[1], **sides} for number, row in enumerate(rows)]
    boxes = [{"image_id": each["id"], "category_id": 1, "bbox": [2, 3, 8, 9]} for each in images]
    annotations = [{"id": number, **box} for number, box in enumerate(boxes)]
    coco = {"images": images, "annotations": annotations, "categories": [{"id": 1, "name": "cat"}]}
    (folder / "annotations.json").write_text(json.dumps(coco))
    (folder / "results.json").write_text(json.dumps([{**box, "score": 0.9} for box in boxes]))
    shutil.copytree(Path(__file__).with_name("given"), folder, dirs_exist_ok=True)
    for name in ("benchmarks", "docs", "examples", "kubernetes"):
        (folder / name).symlink_to(ROOT / name)
