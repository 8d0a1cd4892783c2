"""A small pipeline that has run once, to be killed, damaged and run again."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from tests.pictures import write_label_folders
from tests.warm_python import WarmProcess, WarmPython

_SCRIPT = Path(__file__).with_name("killed_process.py")
_MODULES = Path(__file__).parents[1] / "conversion"
# 80 images, three epochs of eight batches.
_OPTIONS = ("--image-size", "8x8", "--augment", "none", "--batch-size", "8", "--epochs", "3")
_POLICIES = ("--policy", "leakage=warn", "--policy", "label_conflicts=warn")


class Commands:
    """Runs commands in processes of their own, which may be killed at a step.

    A step is a call of the system that changes a folder, from any thread.
    """

    def __init__(self, warm_python: WarmPython, folder: Path) -> None:
        self._warm_python = warm_python
        self._folder = folder
        self.output = ""

    def start(self, *argv: object, step: int = 0) -> WarmProcess:
        """Starts a command; its output goes to a file."""
        environment = {**os.environ, "PYTHONPATH": str(_MODULES)}
        with (self._folder / "output").open("w") as log:
            return self._warm_python.start(
                *(_SCRIPT, str(step), self._folder / "steps", *map(str, argv)),
                env=environment,
                cwd=self._folder,
                stdout=log.fileno(),
                stderr=log.fileno(),
            )

    def run(self, *argv: object, step: int = 0) -> int:
        """Runs a command to its end; returns its exit code, -9 where it was killed."""
        return self.end(self.start(*argv, step=step))

    def end(self, process: WarmProcess, *, kill: bool = False) -> int:
        """Waits for a command, which is killed now or not at all; returns its exit code."""
        if kill:
            process.kill()
        code = process.wait()
        self.output = (self._folder / "output").read_text()
        return code

    def count_steps(self, *argv: object) -> int:
        """Runs a command to its end; returns how often it could have been killed."""
        assert self.run(*argv) == 0, self.output
        return int((self._folder / "steps").read_text())


@pytest.fixture(scope="module")
def commands(warm_python: WarmPython, tmp_path_factory: pytest.TempPathFactory) -> Commands:
    return Commands(warm_python, tmp_path_factory.mktemp("commands"))


class SmallRun:
    """`darkroom run` on 80 images, and a copy of what its first run made."""

    def __init__(self, commands: Commands, folder: Path) -> None:
        write_label_folders(folder / "src", 40)
        self.commands = commands
        self.root = folder / "root"
        self._copy = folder / "copy"

    def make_argv(self, *more: str) -> Sequence[object]:
        """Returns the arguments of a run; what it prints is JSON."""
        data = ("--data", self.root.parent / "src", "--root", self.root)
        return ("run", *data, *_OPTIONS, *_POLICIES, "--json", *more)

    def run(self, *more: str) -> dict[str, object]:
        """Runs to the end; returns the summary, or the error."""
        code = self.commands.run(*self.make_argv(*more))
        text = self.commands.output
        # The notes of the steps come before.
        found = json.loads(text[text.rindex("\n{\n") if "\n{\n" in text else 0 :])
        return {"code": code, **found}

    def keep(self) -> None:
        """Keeps a copy of the root."""
        shutil.copytree(self.root, self._copy, symlinks=True)

    def restore(self) -> None:
        """Makes the root what it was when the copy was made."""
        shutil.rmtree(self.root, ignore_errors=True)
        if self._copy.exists():
            shutil.copytree(self._copy, self.root, symlinks=True)


@pytest.fixture
def small_run(commands: Commands, tmp_path: Path) -> Iterator[SmallRun]:
    return SmallRun(commands, tmp_path)
