"""Runs the Python and shell blocks of a page of the documentation, in order and in one folder.

A comment directly before a block says what readers need not see:

    <!-- not run: needs a cluster -->            why no test runs it
    <!-- run by make test-long -->               which run does: also test-torch, or a file of tests
    <!-- before: cp -r records monday -->        what comes first, in the language of the block

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

import numpy as np

from darkroom.conversion.convert import convert

from ..pictures import encode, make_noise

ROOT = Path(__file__).parents[2]
PAGES = {
    str(path.relative_to(ROOT)): path.read_text("utf-8")
    for path in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))
}
_BLOCK = re.compile(
    r"((?:^<!--(?:(?!-->).)*-->\n)*)^```(python|bash|text)\n(.*?)^```$", re.M | re.S
)
_COMMENT = re.compile(r"<!--\s*(not run: |run by |before: )(.*?)\s*-->", re.S)
# What trains, and would for minutes, does so on small images, in one epoch; nothing is downloaded.
_SMALLER = {
    r"darkroom (train|run) (--data (records|images))": (
        r"darkroom \1 --epochs 1 --image-size 16x16 \2"
    ),
    r"\(224, 224\)|\(96, 96\)": "(16, 16)",
    r"image_size=(224|96|320)": "image_size=16",
    r"batch_size=\d+": "batch_size=4",
    r"epochs=\d+": "epochs=1",
    r"epochs \d+": "epochs 1",
    "weights=None": "weights=None, weights_backbone=None",
    r"\(\(3, 20\)": "((3, 1)",
    r"--image-size 96x96": "--image-size 16x16",
    r"steps_per_epoch=1000": "steps_per_epoch=2",
}


class Block(NamedTuple):
    """A block of code: its line in the page, its text, and what the comments before it say."""

    page: str
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
        said = dict(_COMMENT.findall(found[1]))
        says = [said.get(name, "") for name in ("not run: ", "run by ", "before: ")]
        line = PAGES[page].count("\n", 0, found.start(3))
        blocks.append(Block(page, line, found[2], found[3], *says))
    return blocks


def run_page(
    page: str,
    runners: set[str],
    names: dict[str, Any],
    replaced: Mapping[str, str],
    environment: Mapping[str, str],
) -> None:
    """Runs the blocks that these runners, "" for none, have in the current folder.

    The Python blocks add to the names. Texts are replaced by patterns in each block.
    """
    printed: str | None = ""
    for block in read_blocks(page):
        if block.why_not or block.runner not in runners:
            printed = None if block.language == "bash" else printed
            continue
        before, text = block.before, block.text
        for pattern, other in (_SMALLER | replaced).items():
            before, text = (re.sub(pattern, other, each) for each in (before, text))
        if block.language == "python":
            # Tracebacks have the lines of the page.
            for code in (before, "\n" * block.line + text):
                exec(compile(code, page, "exec", dont_inherit=True), names)
        elif block.language == "bash":
            done = subprocess.run(
                ["bash", "-euc", f"{before}\n{text}"],
                env=environment,
                capture_output=True,
                text=True,
            )
            printed = done.stdout
            where = f"{page}, line {block.line}"
            assert done.returncode == 0, f"{where}\n{text}\n{printed}\n{done.stderr}"
        elif printed is not None:
            difference = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
            same = doctest.OutputChecker().check_output(text, printed, difference)
            assert same, f"{page}, line {block.line} says:\n{text}\nThis was printed:\n{printed}"


def write_given(folder: Path) -> None:
    """Writes what the pages take for granted: photographs by label, a list of them, a checkout."""
    rows = [("split", "image_uri", "label")]
    for number in range(20):
        label = ("cat", "dog")[number % 2]
        path = folder / "photos" / label / f"{number // 2}.jpg"
        path.parent.mkdir(parents=True, exist_ok=True)
        pixels = make_noise(number, 24, 20) // 2 + np.uint8(100 * (number % 2))
        path.write_bytes(encode(pixels, "JPEG"))
        split = "train" if number < 12 else ("eval", "test")[number // 2 % 2]
        rows.append((split, str(path.relative_to(folder)), label))
    with (folder / "images.csv").open("w", newline="") as file:
        csv.writer(file).writerows(rows)
    convert(folder / "images.csv", folder / "records")
    _write_boxes(folder)
    for path in Path(__file__).with_name("given").iterdir():
        shutil.copy(path, folder)
    for name in ("benchmarks", "docs", "examples", "kubernetes"):
        (folder / name).symlink_to(ROOT / name)


def _write_boxes(folder: Path) -> None:
    """Writes annotations of the photographs, of which one box is outside of its image."""
    paths = [str(path.relative_to(folder)) for path in sorted(folder.glob("photos/*/*.jpg"))]
    boxes = [[*place, 5, 5] for place in ((0, 0), (9, 0), (0, 9), (9, 9), (5, 15), (14, 5))]
    objects = [(image, box) for image in range(len(paths)) for box in boxes]
    labels = [{"id": number, "name": label} for number, label in enumerate(("cat", "dog"))]
    text = json.dumps(
        {
            "images": [
                {"id": number, "file_name": path, "width": 20, "height": 24}
                for number, path in enumerate(paths)
            ],
            "annotations": [
                {"id": number, "image_id": image, "category_id": number % 2, "bbox": box}
                for number, (image, box) in enumerate([*objects, (0, [90, 90, 5, 5])])
            ],
            "categories": labels,
        }
    )
    (folder / "annotations.json").write_text(text)


def write_programs(folder: Path, server: Path) -> None:
    """Writes the programs `darkroom`, of this checkout, and `python`: forks of a warm Python."""
    for name, words in {"darkroom": ["-m", "darkroom.cli"], "python": []}.items():
        text = _PROGRAM.format(
            python=sys.executable, server=str(server), words=words, used=str(folder / "used")
        )
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)


# As WarmPython.start does, which would take long to import.
_PROGRAM = """#!{python} -IS
import json, os, socket, sys
if sys.argv[1:2] == ["-c"]:
    os.execv({python!r}, [{python!r}, *sys.argv[1:]])
arguments = {words} + sys.argv[1:]
task = {{"arguments": arguments, "environment": dict(os.environ), "folder": os.getcwd()}}
connection = socket.socket(socket.AF_UNIX)
connection.connect({server!r})
socket.send_fds(connection, [b"\\n"], [0, 1, 2])
connection.sendall(json.dumps(task).encode())
connection.shutdown(socket.SHUT_WR)
_, code, seconds = connection.makefile().read().split()
with open({used!r}, "a") as file:
    print(seconds, file=file)
sys.exit(int(code) % 256)
"""


def list_pages(runner: str) -> list[str]:
    """Returns the pages with code of that runner."""
    return [
        page
        for page in PAGES
        if any(
            each.runner == runner and not each.why_not and each.language != "text"
            for each in read_blocks(page)
        )
    ]


def make_environment(programs: Path) -> dict[str, str]:
    """Returns the environment of a shell that finds these programs first."""
    return {**os.environ, "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}"}
