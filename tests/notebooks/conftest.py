"""Notebooks: real kernels of Jupyter and real runs of IPython, with the newest packages.

`make test-newest` makes two environments without constraints: one with pandas and TensorFlow, whose
Python runs these tests, and a bare one, which is named by DARKROOM_BARE_PYTHON.
"""

from __future__ import annotations

import csv
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

BARE_PYTHON = "DARKROOM_BARE_PYTHON"
LABELS = ("cat", "dog", "owl")
_START_SECONDS = 120
_CELL_SECONDS = 300
_COLORS = re.compile(r"\x1b\[[0-9;]*m")


@dataclass
class Cell:
    """What a cell of a notebook shows.

    Attributes:
        out: Its standard output.
        err: Its standard error, which a notebook shows in red.
        value: The last expression as text; None without one.
        page: The last expression as HTML; None without one.
        shown: The text of each display, as it was updated last.
        trace: The lines of its traceback, without colors; empty when it did not fail.
    """

    out: str = ""
    err: str = ""
    value: str | None = None
    page: str | None = None
    shown: list[str] = field(default_factory=list)
    trace: list[str] = field(default_factory=list)

    def take(self, message: dict[str, Any]) -> None:
        """Adds what a message of the kernel says."""
        kind, content = message["msg_type"], message["content"]
        if kind == "stream" and content["name"] == "stdout":
            self.out += content["text"]
        elif kind == "stream":
            self.err += content["text"]
        elif kind == "execute_result":
            self.value = content["data"]["text/plain"]
            self.page = content["data"].get("text/html")
        elif kind == "display_data":
            self.shown.append(content["data"]["text/plain"])
        elif kind == "update_display_data":  # of the only display of a cell
            self.shown[-1] = content["data"]["text/plain"]
        elif kind == "error":
            self.trace = _COLORS.sub("", "\n".join(content["traceback"])).splitlines()


Notebook = Callable[[str], Cell]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks all tests of this folder."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.newest)


@pytest.fixture
def environment() -> str:
    """The environment, `newest` or `bare`; tests of both are parametrized by this name."""
    return "newest"


@pytest.fixture
def python(environment: str) -> str:
    """The interpreter of an environment."""
    if environment == "newest":
        return sys.executable
    assert BARE_PYTHON in os.environ, "Run `make test-newest`, which makes the environments."
    return os.environ[BARE_PYTHON]


@pytest.fixture
def variables(tmp_path: Path) -> dict[str, str]:
    """The variables of a notebook's process: settings and temporary files of its own."""
    folder = tmp_path / "tmp"
    folder.mkdir()
    return {**os.environ, "TMPDIR": str(folder), "IPYTHONDIR": str(tmp_path / "ipython")}


@pytest.fixture
def notebook(python: str, tmp_path: Path, variables: dict[str, str]) -> Iterator[Notebook]:
    """Runs cells in a kernel of Jupyter, in the folder of the test."""
    from jupyter_client.manager import KernelManager

    manager = KernelManager(transport="ipc", connection_file=str(tmp_path / "kernel.json"))
    manager.kernel_spec.argv = [python, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    manager.start_kernel(cwd=str(tmp_path), env=variables)
    client = manager.client()
    client.start_channels()

    def run(code: str) -> Cell:
        cell = Cell()
        client.execute_interactive(code, output_hook=cell.take, timeout=_CELL_SECONDS)
        return cell

    try:
        client.wait_for_ready(timeout=_START_SECONDS)
        yield run
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)


@pytest.fixture
def ipython(python: str, tmp_path: Path, variables: dict[str, str]) -> Notebook:
    """Runs a script by IPython, in the folder of the test."""

    def run(code: str) -> Cell:
        (tmp_path / "script.py").write_text(code, encoding="utf-8")
        done = subprocess.run(
            [python, "-m", "IPython", "--no-banner", "--colors=NoColor", "script.py"],
            cwd=tmp_path,
            env=variables,
            capture_output=True,
            text=True,
            timeout=_CELL_SECONDS,
        )
        return Cell(done.stdout, done.stderr)

    return run


@pytest.fixture
def images(tmp_path: Path) -> Path:
    """A list of 23 rows: JPEGs, PNGs, GIFs, and a copy of one. Another process decodes the GIFs."""
    rng = np.random.default_rng(5)
    folder = tmp_path / "images"
    folder.mkdir()
    rows = []
    for number in range(22):
        pixels = rng.integers(0, 256, (12, 10, 3), np.uint8)
        name = f"{number:02d}.{('jpg', 'png', 'gif')[number % 3]}"
        Image.fromarray(pixels).save(folder / name)
        split = "VALIDATION" if number % 4 == 3 else "TRAIN"
        rows.append((split, f"images/{name}", LABELS[number % 3]))
    (folder / "copy.png").write_bytes((folder / "01.png").read_bytes())
    rows.append(("TRAIN", "images/copy.png", LABELS[1]))
    path = tmp_path / "images.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([("split", "image_uri", "label"), *rows])
    return path
