"""A run that is killed anywhere: the next one ends with the bytes of an undisturbed run."""

import random
import shutil
import signal
import time
from pathlib import Path

import pytest

from darkroom import verify
from darkroom.conversion.shards.shard import ShardReport
from darkroom.dataset.commit import read_dataset
from darkroom.errors import DataError

from ..image_set import make_images
from ..interrupted_runs import Runner

pytestmark = pytest.mark.slow

REJECTED_ROWS = 1


@pytest.fixture(scope="module")
def runner(warm_python, tmp_path_factory) -> Runner:
    return Runner(warm_python, tmp_path_factory.mktemp("runner"))


@pytest.fixture(scope="module")
def source(tmp_path_factory) -> Path:
    """A list that no test changes."""
    images = make_images(tmp_path_factory.mktemp("source") / "images", "jpg")
    for number in range(REJECTED_ROWS):
        images.add("TRAIN", f"bad{number}.jpg", "cat", b"no image")
    return images.csv


@pytest.fixture(scope="module")
def whole(runner, source, tmp_path_factory) -> tuple[int, dict[str, bytes]]:
    """The number of steps of an undisturbed run, and the files that it writes."""
    folder = tmp_path_factory.mktemp("whole") / "out"
    return runner.count_steps(*arguments(source, folder)), read_files(folder)


@pytest.fixture(scope="module")
def old(runner, source, tmp_path_factory) -> Path:
    """A dataset to replace."""
    folder = tmp_path_factory.mktemp("old") / "old"
    assert runner.run(*arguments(source, folder, "--seed", "7")) == 0, runner.output
    return folder


@pytest.fixture(scope="module")
def smaller(runner, source, tmp_path_factory) -> Path:
    """A dataset to update: some images are not in it yet, and one has another label."""
    header, first, *lines = source.read_text().splitlines(keepends=True)
    shorter = source.with_name("shorter.csv")
    shorter.write_text(header + first.replace("cat", "dog") + "".join(lines[:-3]))
    folder = tmp_path_factory.mktemp("smaller") / "old"
    assert runner.run(*update(shorter, folder)) == 0, runner.output
    return folder


def arguments(source, output, *more):
    shards = ("--num-shards", "3", "--max-rejects", "0.5")
    return ("convert", source, "--output-dir", output, *shards, *more)


def replace(source, output):
    return arguments(source, output, "--overwrite")


def update(source, output):
    return ("convert", source, "--output-dir", output, "--max-rejects", "0.5", "--update")


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


def check_state(folder: Path, allowed: list[dict[str, bytes]]) -> None:
    """Checks that a reader takes nothing but a whole dataset."""
    if not (folder / "dataset.json").exists():
        with pytest.raises(DataError, match="is not a dataset"):
            read_dataset(str(folder))
        return
    assert verify(folder).findings == ()
    fixed = {name: data for name, data in read_files(folder).items() if name[0] != "."}
    assert fixed in allowed


def check_rerun(runner, argv, output, expected, allowed) -> bool:
    """Checks a killed run's output, and runs again; tells whether a shard was kept."""
    check_state(output, allowed)
    finished = list_finished(output)
    assert runner.run(*argv) == 0, runner.output
    assert read_files(output) == expected
    assert {path: path.stat().st_ino for path in finished} == finished
    assert [path.name for path in output.parent.glob(".*darkroom*")] == []
    return bool(finished)


def choose_steps(total: int, count: int) -> list[int]:
    """Returns steps to end at: all, or a sample that is the same every time.

    It has a step at which shards are finished.
    """
    steps = range(1, total + 1)
    late = [total * 7 // 8][:count]
    return sorted({*late, *random.Random(3).sample(steps, min(count, total))})


def check_kills(runner, source, whole, tmp_path, num_steps, num_moments):
    """Kills runs at steps and at random moments; returns the number of kills."""
    argv = arguments(source, tmp_path / "out")
    total, expected = whole
    kept = killed = 0
    plans = [{"step": step} for step in choose_steps(total, num_steps)]
    if num_moments:
        started = time.monotonic()
        runner.run(*arguments(source, tmp_path / "timed"))
        seconds, moments = time.monotonic() - started, random.Random(5)
        plans += [{"kill_after": moments.uniform(0, seconds)} for _ in range(num_moments)]
    for plan in plans:
        shutil.rmtree(tmp_path / "out", ignore_errors=True)
        code = runner.run(*argv, **plan)
        killed += code == -signal.SIGKILL
        assert code == -signal.SIGKILL or "kill_after" in plan, (plan, runner.output)
        if (tmp_path / "out").exists():
            kept += check_rerun(runner, argv, tmp_path / "out", expected, [expected])
    assert kept  # else nothing here shows that finished shards stay
    return killed


def check_kills_of_replacements(runner, source, old, tmp_path, num_steps, make=replace):
    """The same with a dataset to replace, or to update; returns the number of kills."""
    shutil.copytree(old, tmp_path / "counted")
    total = runner.count_steps(*make(source, tmp_path / "counted"))
    allowed = [read_files(old), read_files(tmp_path / "counted")]
    steps = choose_steps(total, num_steps)
    for step in steps:
        shutil.rmtree(tmp_path / "out", ignore_errors=True)
        shutil.copytree(old, tmp_path / "out")
        argv = make(source, tmp_path / "out")
        assert runner.run(*argv, step=step) == -signal.SIGKILL, runner.output
        assert verify(tmp_path / "out").findings == ()  # at no moment is there no dataset
        check_rerun(runner, argv, tmp_path / "out", allowed[1], allowed)
    return len(steps)


def check_kills_of_replacements_in_place(runner, source, old, tmp_path, num_steps):
    """The same where a foreign file in the folder forbids the exchange: the old dataset goes."""
    shutil.copytree(old, tmp_path / "old")
    (tmp_path / "old" / "README").write_text("mine")
    shutil.copytree(tmp_path / "old", tmp_path / "counted")
    total = runner.count_steps(*replace(source, tmp_path / "counted"))
    allowed = [read_files(tmp_path / "old"), read_files(tmp_path / "counted")]
    steps = choose_steps(total, num_steps)
    for step in steps:
        shutil.rmtree(tmp_path / "out", ignore_errors=True)
        shutil.copytree(tmp_path / "old", tmp_path / "out")
        argv = replace(source, tmp_path / "out")
        assert runner.run(*argv, step=step) == -signal.SIGKILL, runner.output
        check_foreign_file(runner, argv, tmp_path / "out")
        check_rerun(runner, argv, tmp_path / "out", allowed[1], allowed)
    return len(steps)


def check_foreign_file(runner, argv, output):
    """Checks that a file of others stops the next run, too, and that nothing else does."""
    (output / "index").mkdir(exist_ok=True)
    (output / "index" / "notes.txt").write_text("mine")
    before = {name: path.read_bytes() for name, path in list_all(output).items()}
    assert runner.run(*argv) == 4
    said = "holds 1 file that darkroom did not write, or that changed since: index/notes.txt."
    assert said in " ".join(runner.output.split()), runner.output
    assert {name: path.read_bytes() for name, path in list_all(output).items()} == before
    (output / "index" / "notes.txt").unlink()


def list_all(folder: Path) -> dict[str, Path]:
    """Returns every file below a folder but the lock, which each run takes and gives back."""
    found = {str(path.relative_to(folder)): path for path in folder.rglob("*") if path.is_file()}
    found.pop(".darkroom.lock", None)
    return found


def check_full_disks(runner, source, whole, tmp_path, num_steps):
    """Lets the disk be full from a step on; returns how often."""
    argv = arguments(source, tmp_path / "out")
    total = runner.count_steps(*arguments(source, tmp_path / "counted"), fault="full")
    _, expected = whole
    steps = choose_steps(total, num_steps)
    for step in steps:
        shutil.rmtree(tmp_path / "out", ignore_errors=True)
        assert runner.run(*argv, step=step, fault="full") == 3, runner.output
        assert "No space left on device" in runner.output
        assert "Traceback" not in runner.output
        if (tmp_path / "out").exists():
            check_rerun(runner, argv, tmp_path / "out", expected, [])
    return len(steps)


def test_a_killed_update_leaves_the_old_dataset_or_the_new_one(runner, source, smaller, tmp_path):
    check_kills_of_replacements(runner, source, smaller, tmp_path, num_steps=1, make=update)


def test_a_killed_run_is_resumed_and_what_changed_since_is_written_again(
    runner, source, whole, tmp_path
):
    """It has the same length, so only its hash tells: a shard, another one's index, a report."""
    out = tmp_path / "out"
    argv = arguments(source, out)
    total, expected = whole
    # All shards are finished, and nothing is committed.
    assert runner.run(*argv, step=total * 7 // 8) == -signal.SIGKILL, runner.output
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


EVERYWHERE = 10_000


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "start", "check"),
    [
        ("killed at every step", "whole", lambda *run: check_kills(*run, EVERYWHERE, 0)),
        ("killed at any moment", "whole", lambda *run: check_kills(*run, 0, 150)),
        (
            "killed while replacing",
            "old",
            lambda *run: check_kills_of_replacements(*run, EVERYWHERE),
        ),
        (
            "killed while updating",
            "smaller",
            lambda *run: check_kills_of_replacements(*run, EVERYWHERE, update),
        ),
        (
            "killed while replacing in place",
            "old",
            lambda *run: check_kills_of_replacements_in_place(*run, EVERYWHERE),
        ),
        ("disk full from a write on", "whole", lambda *run: check_full_disks(*run, EVERYWHERE)),
    ],
)
def test_runs_ended_everywhere(runner, source, tmp_path, capsys, request, name, start, check):
    count = check(runner, source, request.getfixturevalue(start), tmp_path)
    assert count >= 20
    with capsys.disabled():
        print(f"\n{name:<28}{count:>6} times, as many good reruns")
