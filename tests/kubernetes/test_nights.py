"""Ten nights, by the very commands of the CronJob, in a folder instead of the volume."""

from __future__ import annotations

import filecmp
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest
from PIL import Image

import darkroom
from darkroom.kfp.execution import parse_execution
from darkroom.steps import webhook

from ..kfp.test_webhook import server
from ..nights import Nights, read_shards
from .conftest import FOLDER, yaml

__all__ = ["server"]

# Stands for darkroom: a conversion copies a finished dataset, and that named leak does not pass.
DARKROOM = """#!/bin/sh
case $3 in
notify) printf '%s\\n--\\n' "$5" >> "$HOME/told" ;;
convert)
  echo $6 > "$HOME/base"
  rm -rf "${5#--output-dir=}"
  cp -r "$HOME/made/$4" "${5#--output-dir=}"
  ;;
*) ! cmp -s "$4/SHA256SUMS" "$HOME/made/leak/SHA256SUMS" ;;
esac
"""
# A version is named by its second, in which no other night begins.
DATE = """#!/bin/sh
[ "$1" = -u ] && cat "$HOME/now" || PATH=/bin:/usr/bin exec date "$@"
"""
# Of the commands that change something, ends the night with all its processes before one of them.
COUNTED = """#!/bin/sh
echo >> "$HOME/count"
[ "$(wc -l < "$HOME/count")" != "$KILLED" ] || kill -KILL 0
exec {command} "$@"
"""


class Volume:
    """A volume, and the CronJob that writes to it.

    Attributes:
        data: The folder in the place of /data.
    """

    def __init__(self, home: Path, python: str) -> None:
        self.home, self.data = home, home / "data"
        self._bin = home / "bin"
        self._bin.mkdir()
        self.data.mkdir()
        self.add_command("python", python)
        self.add_command("date", DATE)
        self.night = 0
        text = (FOLDER / "components/nightly/commands.yaml").read_text()
        pod = yaml.safe_load(text)["spec"]["jobTemplate"]["spec"]["template"]["spec"]
        [container] = pod["containers"]
        self._command = [
            *container["command"],
            container["args"][0].replace("/data/", f"{self.data}/"),
        ]

    def add_command(self, name: str, text: str) -> None:
        (self._bin / name).write_text(text)
        (self._bin / name).chmod(0o755)

    def run(self, source: str, **environment: str) -> int:
        """Runs a night; returns its exit code, negative for a signal."""
        self.night += 1
        (self.home / "now").write_text(f"night-{self.night:02d}")
        known = {"HOME": str(self.home), "PATH": f"{self._bin}:{os.environ['PATH']}"}
        known |= {
            "DARKROOM_WEBHOOK": "http://h",
            "HOSTNAME": "darkroom-nightly-1-a",
            "DATA": source,
        }
        return subprocess.run(
            self._command, env=known | environment, start_new_session=True, check=False
        ).returncode

    def wait(self, days: int = 1) -> None:
        """Lets days pass, for all files by which the commands tell the time."""
        for mark in (self.data / ".night", *self.data.glob("versions/*/.in-use")):
            if mark.exists():
                os.utime(mark, (past := mark.stat().st_mtime - days * 86400, past))

    @property
    def records(self) -> Path:
        """The dataset that a reader finds now."""
        return (self.data / "records").resolve()

    def read_told(self) -> list[tuple[str, str]]:
        """Returns the state and the reason of each message, as the task of `notify` reads them."""
        told = self.home / "told"
        parts = told.read_text().split("\n--\n")[:-1] if told.exists() else []
        told.unlink(missing_ok=True)
        read = [parse_execution(each, webhook.STEP).parameters for each in parts]
        assert all(each["run"] == "darkroom-nightly-1-a" for each in read)
        return [(each["status"]["state"], each["status"]["error"]["message"]) for each in read]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Datasets of one image: a to e, `again`, which is e of newer files, and one that leaks."""
    folder = tmp_path_factory.mktemp("made")
    for number, name in enumerate(("leak", "a", "b", "c", "d", "e")):
        image = folder / f"{name}.png"
        Image.new("L", (8, 8), 40 * number).save(image)
        rows = pd.DataFrame([(str(image), "x")], columns=["image_uri", "label"])
        darkroom.convert(rows, folder / "made" / name, split_ratios="100/0/0")
    os.utime(folder / "e.png", (1, 1))
    again = folder / "made" / "again"
    darkroom.convert(rows, again, split_ratios="100/0/0")
    commits = [(folder / "made" / each / "dataset.json").read_bytes() for each in ("e", "again")]
    assert commits[0] == commits[1]
    return folder / "made"


@pytest.fixture
def volume(made: Path, tmp_path: Path) -> Volume:
    """A volume that has the dataset a, as the Job darkroom-convert wrote it."""
    (tmp_path / "made").symlink_to(made)
    volume = Volume(tmp_path, DARKROOM)
    shutil.copytree(made / "a", volume.data / "records")
    return volume


def list_names(volume: Volume, made: Path) -> list[str]:
    """Returns which datasets the versions are, oldest first; that of readers is in capitals."""
    names = {(path / "SHA256SUMS").read_bytes(): path.name for path in made.iterdir()}
    found = []
    for path in sorted((volume.data / "versions").iterdir()):
        assert darkroom.verify(path).is_sound  # unlike other readers, it holds nothing
        name = names[(path / "SHA256SUMS").read_bytes()]
        found.append(name.upper() if path == volume.records else name)
    return found


def test_ten_nights(volume, made):
    # Changes: the folder becomes the first version.
    assert (volume.run("b"), list_names(volume, made)) == (0, ["a", "B"])
    assert (volume.home / "base").read_text() == f"--base={volume.data}/records\n"
    reader = darkroom.load(volume.data / "records", image_size=8, framework="numpy", training=False)
    pixel = next(iter(reader["train"]))[0].max()

    # Quiet: nothing moves, and what one could go back to stays.
    before = [path.stat(follow_symlinks=False).st_ino for path in volume.data.glob("[rv]*/*")]
    for _ in range(2):
        volume.wait()
        assert (volume.run("b"), list_names(volume, made)) == (0, ["a", "B"])
    assert [p.stat(follow_symlinks=False).st_ino for p in volume.data.glob("[rv]*/*")] == before
    assert volume.read_told() == []

    # A leak stays where it was made, and is told.
    volume.wait()
    assert (volume.run("leak"), list_names(volume, made)) == (1, ["a", "B"])
    assert (volume.data / "next/SHA256SUMS").read_bytes() == (made / "leak/SHA256SUMS").read_bytes()
    assert volume.read_told() == [("FAILED", "Exit code 1: see the log of this pod.")]

    # A training crosses three nights. It began with what is now the fourth dataset from the last.
    for source, kept in (
        ("c", ["a", "b", "C"]),
        ("d", ["b", "c", "D"]),
        ("e", ["b", "c", "d", "E"]),
    ):
        assert [batch[0].max() for batch in reader["train"]] == [pixel]
        volume.wait()
        assert (volume.run(source), list_names(volume, made)) == (0, kept)
    [(state, reason)] = volume.read_told()
    assert state == "MISSED"
    assert reason.startswith("No night has ended well since 20")
    assert [batch[0].max() for batch in reader["train"]] == [pixel]

    # The images have new times. It stays the dataset to go back to, with a newer index.
    volume.wait(3)
    assert (volume.run("again"), list_names(volume, made)) == (0, ["c", "d", "AGAIN"])
    assert volume.read_told()[0][0] == "MISSED"

    # Somebody goes back, by the lines of the guide. The next night begins there.
    guide = (FOLDER.parent / "docs/guides/kubernetes.md").read_text()
    [lines] = [block for block in guide.split("```") if "mv -T" in block]
    lines = lines.removeprefix("bash\n").replace("/data/", f"{volume.data}/")
    lines = lines.replace("2026-11-28T020007", "night-05")
    subprocess.run(["sh", "-ec", lines], check=True)
    assert list_names(volume, made) == ["C", "d", "again"]
    volume.wait(3)
    assert (volume.run("c"), list_names(volume, made)) == (0, ["C", "d", "again"])
    volume.wait(3)
    assert (volume.run("a", VERSIONS="1"), list_names(volume, made)) == (0, ["A"])


CHANGES = ("mv", "ln", "rm", "touch", "mkdir", "python")


def count_changes(volume: Volume, *names: str) -> None:
    for name in names:
        path = shutil.which(name) if name != "python" else f"{volume.home}/darkroom"
        volume.add_command(name, COUNTED.replace("{command}", str(path)))
    (volume.home / "darkroom").write_text(DARKROOM)
    (volume.home / "darkroom").chmod(0o755)


@pytest.mark.parametrize(
    ("nights", "source"),
    [
        ((), "b"),
        pytest.param(("b", "c", "d"), "e", marks=pytest.mark.long),
        (("b",), "b"),
    ],
)
def test_a_night_that_is_killed_before_any_step_is_made_up_for(made, tmp_path, nights, source):
    last = nights[-1] if nights else "a"
    killed = 0
    for step in range(1, 99):
        home = tmp_path / str(step)
        home.mkdir()
        (home / "made").symlink_to(made)
        volume = Volume(home, DARKROOM)
        shutil.copytree(made / "a", volume.data / "records")
        for each in nights:
            assert volume.run(each) == 0
        volume.wait(3)
        count_changes(volume, *CHANGES)
        code = volume.run(source, KILLED=str(step))
        # Once it is a link, it always leads to a dataset.
        if nights or (volume.data / "records").exists():
            found = volume.records / "SHA256SUMS"
            assert any(filecmp.cmp(found, made / each / found.name) for each in (last, source))
        volume.wait()
        assert volume.run(source, KILLED="0") == 0
        names = list_names(volume, made)
        assert names[-1] == source.upper()
        # What one can go back to is there, once.
        others = [*dict.fromkeys(("a", *nights, source))][-3:-1]
        assert [each for each in names[:-1] if each != source] == others
        killed += code != 0
        if code == 0:
            break
    assert killed >= 5


@pytest.mark.long
def test_nights_of_darkroom_itself(tmp_path, server):
    """With its own conversions and checks, and a webhook."""
    volume = Volume(tmp_path, f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    nights = Nights(tmp_path / "source")

    def run(**environment) -> tuple[int, list[str]]:
        volume.wait()
        code = volume.run(str(nights.list), DARKROOM_WEBHOOK=server.url, **environment)
        return code, sorted(path.name for path in (volume.data / "versions").iterdir())

    nights.first()
    assert run() == (0, ["night-01"])
    reader = darkroom.load(volume.data / "records", image_size=8, framework="numpy", seed=3)
    epochs = [[image.tolist() for image, _ in reader["train"]]]
    # Whoever reads an image of the first night now rejects it.
    nights.second()
    assert run() == (0, ["night-01", "night-02"])
    first, second = (read_shards(volume.data / f"versions/night-0{n}") for n in (1, 2))
    same = first.keys() & second.keys()
    assert {first[each] for each in same} == {second[each] for each in same}, "files are shared"
    assert run() == (0, ["night-01", "night-02"])
    assert server.told == []

    nights.restore()
    list_ = nights.list.read_text()
    # The same pixels in another file.
    with Image.open(nights.folder / "00.jpg") as image:
        image.save(nights.folder / "leak.png")
    nights.rows["leak.png"] = "cat", "TEST"
    nights.write()
    assert run() == (1, ["night-01", "night-02"])
    [(_, _, message)] = server.told
    assert message["text"].startswith("darkroom-nightly darkroom-nightly-1-a: FAILED\nExit code 1")
    assert "leakage" in (volume.data / "report/report.md").read_text()

    nights.list.write_text(list_)
    nights.third()
    count_changes(volume, "ln")
    assert run(KILLED="1")[0] < 0
    assert volume.records.name == "night-02"
    assert run(KILLED="0")[0] == 0
    assert volume.records.name == "night-06"
    assert [each[2]["state"] for each in server.told[1:]] == ["MISSED", "MISSED"]
    epochs += [[image.tolist() for image, _ in reader["train"]] for _ in range(2)]
    assert len(epochs[0]) == len(epochs[2])
    again = darkroom.load(
        volume.data / "versions/night-01", image_size=8, framework="numpy", seed=3
    )
    assert [[image.tolist() for image, _ in again["train"]] for _ in range(3)] == epochs
