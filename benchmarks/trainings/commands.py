"""Commands of darkroom in processes of their own: what they take, and how good their models are."""

from __future__ import annotations

import resource
import statistics
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import darkroom


class Cost(NamedTuple):
    """What a command took, in seconds.

    Attributes:
        wall: By the clock.
        cpu: Of all processors, user and system.
    """

    wall: float
    cpu: float

    def __add__(self, other: object) -> Cost:
        assert isinstance(other, Cost)  # noqa: S101
        return Cost(self.wall + other.wall, self.cpu + other.cpu)

    def __str__(self) -> str:
        return f"{self.wall:.1f} s ({self.cpu:.1f} s)"


class Score(NamedTuple):
    """How good an exported model is on the eval and the test split together.

    Attributes:
        accuracy: Share of right answers, 0 to 1.
        recall: Mean recall of the labels, 0 to 1.
        images: Number of images.
    """

    accuracy: float
    recall: float
    images: int


def run(*arguments: str) -> Cost:
    """Runs a command of darkroom, from the start of Python to its end."""
    used, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    command = [sys.executable, "-W", "ignore", "-m", "darkroom.cli", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(arguments)}:\n{done.stderr[-2000:]}")
    spent = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = spent.ru_utime + spent.ru_stime - used.ru_utime - used.ru_stime
    return Cost(time.monotonic() - started, cpu)


def train(records: Path, run_dir: Path, options: Sequence[str]) -> Cost:
    """Trains, exports and evaluates a model by the command."""
    return run("train", "--data", str(records), "--checkpoint-dir", str(run_dir), *options)


def score(run_dir: Path, records: Path) -> Score:
    """Asks an exported model for the labels of all images that did not train it."""
    right, total = Counter[str](), Counter[str]()
    for split in ("eval", "test"):
        for found in darkroom.evaluate(run_dir, records, split).metrics.classes:
            right[found.label] += round((found.recall or 0) * found.support)
            total[found.label] += found.support
    recalls = [right[label] / count for label, count in total.items() if count]
    return Score(right.total() / total.total(), statistics.mean(recalls), total.total())


def format_each(values: Sequence[float]) -> str:
    """Returns the mean of shares, and each of them."""
    each = ", ".join(f"{value:.3f}" for value in values)
    return f"{statistics.mean(values):.3f} ({each})"


def format_costs(costs: Sequence[Cost]) -> str:
    """Returns the median of costs."""
    return str(Cost(*map(statistics.median, zip(*costs, strict=True))))
