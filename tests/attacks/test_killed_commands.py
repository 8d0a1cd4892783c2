"""Commands that are killed while they write: the next run ends as if nothing had happened."""

from __future__ import annotations

import random
import shutil
import signal
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from tests.pictures import encode, make_noise
from tests.trees import read_files

from darkroom.audit.verify import verify
from darkroom.conversion.convert import convert

# The arguments of each command that works in a folder, which has the dataset `records`.
COMMANDS: dict[str, Callable[[Path], Sequence[object]]] = {
    "duplicates": lambda folder: (
        *("duplicates", folder / "records"),
        *("--output", folder / "list.parquet", "--overwrite"),
    ),
    "validate": lambda folder: (
        *("validate", folder / "records", "--report", folder / "report"),
        *("--policy", "leakage=warn", "--policy", "label_conflicts=warn"),
    ),
    "inspect": lambda folder: (
        *("inspect", folder / "records"),
        *("--output-dir", folder / "look"),
    ),
}


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("made")
    for number in range(24):
        label = ("cat", "dog")[number % 2]
        (folder / "src" / label).mkdir(parents=True, exist_ok=True)
        # Each image occurs twice.
        data = encode(make_noise(number // 2, 5, 6))
        (folder / "src" / label / f"{number}.png").write_bytes(data)
    convert(folder / "src", folder / "records", split_ratios="80,20,0")
    return folder


def read(folder: Path) -> dict[str, bytes]:
    """Returns all files but locks and what lists a folder's files."""
    return read_files(folder, ".darkroom*")


def copy(made: Path, folder: Path) -> Path:
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(made / "records", folder / "records")
    return folder


def check_kills(runner, made, tmp_path, arguments, num_steps: int) -> int:
    """Kills a command before some of its calls of the system; returns how often."""
    folder = copy(made, tmp_path / "folder")
    old = read(folder)
    total = runner.count_steps(*arguments(folder), fault="system")
    new = read(folder)
    assert total
    assert new != old
    steps = random.Random(3).sample(range(1, total + 1), min(num_steps, total))
    for step in sorted(steps):
        copy(made, folder)
        code = runner.run(*arguments(folder), step=step, fault="system")
        assert code == -signal.SIGKILL, runner.output
        assert verify(folder / "records").is_sound
        for name, data in read(folder).items():
            # A file is the old one or the new one, under a name that a reader takes.
            is_hidden = Path(name).name.startswith(".")
            assert is_hidden or data in (old.get(name), new.get(name)), name
        assert runner.run(*arguments(folder)) == 0, runner.output
        found = read(folder)
        assert {name: found.get(name) for name in new} == new
        left = found.keys() - new.keys()
        assert not [name for name in left if not Path(name).name.startswith(".")]
    return len(steps)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["validate", "inspect"])
def test_a_killed_command_leaves_nothing_half_written(name, runner, made, tmp_path):
    check_kills(runner, made, tmp_path, COMMANDS[name], num_steps=1)


@pytest.mark.long
def test_commands_killed_everywhere(runner, made, tmp_path, capsys):
    """Prints how often each was killed."""
    for name, arguments in COMMANDS.items():
        count = check_kills(runner, made, tmp_path, arguments, num_steps=10_000)
        with capsys.disabled():
            print(f"\n{name:<28}{count:>6} times, as many good reruns")
