"""A run that is killed keeps its finished shards; the rest is in tests/attacks/test_sweep.py."""

import random
import signal
from pathlib import Path

import pytest

from darkroom import verify
from darkroom.conversion.shards.shard import ShardReport

from ..image_set import make_images
from ..interrupted_runs import Runner

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def runner(warm_python, tmp_path_factory) -> Runner:
    return Runner(warm_python, tmp_path_factory.mktemp("runner"))


@pytest.fixture(scope="module")
def source(tmp_path_factory) -> Path:
    """A list that no test changes."""
    images = make_images(tmp_path_factory.mktemp("source") / "images", "jpg")
    images.add("TRAIN", "bad.jpg", "cat", b"no image")
    return images.csv


@pytest.fixture(scope="module")
def whole(runner, source, tmp_path_factory) -> tuple[int, dict[str, bytes]]:
    """The number of steps of an undisturbed run, and the files that it writes."""
    folder = tmp_path_factory.mktemp("whole") / "out"
    return runner.count_steps(*arguments(source, folder)), read_files(folder)


def arguments(source, output, *more):
    shards = ("--num-shards", "3", "--max-rejects", "0.5")
    return ("convert", source, "--output-dir", output, *shards, *more)


def read_files(folder: Path) -> dict[str, bytes]:
    """Returns every file below a folder; of the index only the name: it tells absolute paths."""
    return {
        str(path.relative_to(folder)): b"" if path.parent.name == "index" else path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def list_finished(folder: Path) -> dict[Path, int]:
    """Returns the shards whose report says that they need not be written again."""
    paths = folder.glob(".attempt/*/*/shard-*.json")
    reports = [ShardReport.parse(path.read_bytes()) for path in paths]
    kept = [folder / report.file for report in reports if not report.rejected]
    return {path: path.stat().st_ino for path in kept}


def test_a_killed_run_is_resumed_and_what_changed_since_is_written_again(
    runner, source, whole, tmp_path
):
    """It has the same length, so only its hash tells: a shard, another one's index, a report."""
    out = tmp_path / "out"
    argv = arguments(source, out)
    total, expected = whole
    # All shards are finished, and nothing is committed.
    assert runner.run(*argv, step=total * 3 // 4) == -signal.SIGKILL, runner.output
    reports = {
        path: report
        for path in sorted(out.glob(".attempt/*/*/shard-*.json"))
        if not (report := ShardReport.parse(path.read_bytes())).rejected
    }
    first, second, third = list(reports)[:3]
    kept = list_finished(out)
    [index] = out.glob(f"index/index-{reports[second].number:05}-*")
    rng = random.Random(7)
    for path in (out / reports[first].file, index, third):
        data = bytearray(path.read_bytes())
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        path.write_bytes(data)
    for report in (first, second, third):
        kept.pop(out / reports[report].file, None)
    assert kept
    assert runner.run(*argv) == 0, runner.output
    assert read_files(out) == expected
    assert verify(out).findings == ()
    assert {path: path.stat().st_ino for path in kept} == kept
