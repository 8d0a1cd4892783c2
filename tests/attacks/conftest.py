"""A small pipeline that has run once, to be killed, damaged and run again."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from tests.interrupted_runs import Runner
from tests.pictures import write_label_folders
from tests.warm_python import WarmPython

# 80 images, three epochs of eight batches.
_OPTIONS = ("--image-size", "8x8", "--augment", "none", "--batch-size", "8", "--epochs", "3")
_POLICIES = ("--policy", "leakage=warn", "--policy", "label_conflicts=warn")


@pytest.fixture(scope="module")
def runner(warm_python: WarmPython, tmp_path_factory: pytest.TempPathFactory) -> Runner:
    return Runner(warm_python, tmp_path_factory.mktemp("runner"))


class SmallRun:
    """`darkroom run` on 80 images, and a copy of what its first run made."""

    def __init__(self, runner: Runner, folder: Path) -> None:
        write_label_folders(folder / "src", 40)
        self.runner = runner
        self.root = folder / "root"
        self._copy = folder / "copy"

    def make_argv(self, *more: str) -> Sequence[object]:
        """Returns the arguments of a run; what it prints is JSON."""
        data = ("--data", self.root.parent / "src", "--root", self.root)
        return ("run", *data, *_OPTIONS, *_POLICIES, "--json", *more)

    def run(self, *more: str) -> dict[str, object]:
        """Runs to the end; returns the summary, or the error."""
        code = self.runner.run(*self.make_argv(*more))
        text = self.runner.output
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
def small_run(runner: Runner, tmp_path: Path) -> Iterator[SmallRun]:
    return SmallRun(runner, tmp_path)
