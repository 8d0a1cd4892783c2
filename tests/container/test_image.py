"""The image, built or named by DARKROOM_IMAGE, and run."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
from PIL import Image

import darkroom

from .conftest import ENGINE, call, find_image, run_image

ROOT = Path(__file__).resolve().parents[2]
SITE = "/opt/darkroom/lib/python3.11/site-packages"
Run = Callable[..., subprocess.CompletedProcess[str]]

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def image() -> str:
    return find_image("DARKROOM_IMAGE", "darkroom:test")


@pytest.fixture(scope="module")
def run(image: str) -> Run:
    """Runs the program of the image, or `python`, with the given arguments and few rights."""

    def run(
        *arguments: str, python: bool = False, options: tuple[str, ...] = (), **given: str
    ) -> subprocess.CompletedProcess[str]:
        start = ("--entrypoint=python",) if python else ()
        return run_image(image, *arguments, options=(*start, *options), **given)

    return run


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """A folder that any user may write to, with a list of two images."""
    tmp_path.chmod(0o777)
    for name, color in (("a", (250, 10, 10)), ("b", (10, 10, 250))):
        Image.new("RGB", (9, 7), color).save(tmp_path / f"{name}.png")
    (tmp_path / "images.csv").write_text("TRAIN,a.png,red\nTRAIN,b.png,blue\n")
    return tmp_path


def mount(folder: Path) -> tuple[str, ...]:
    return (f"--volume={folder}:/work",)


# What it is


@pytest.fixture(scope="module")
def description(image: str) -> dict[str, Any]:
    return json.loads(call(ENGINE, "image", "inspect", image).stdout)[0]


def test_it_starts_darkroom_as_a_user_without_rights(description: dict[str, Any]) -> None:
    config = description["Config"]
    assert config["User"] == "65532:65532"
    assert (config["Entrypoint"], config["Cmd"]) == (["darkroom"], ["--help"])
    assert not config.get("Volumes")
    assert config["Labels"]["org.opencontainers.image.title"] == "darkroom"
    assert re.fullmatch(r"[0-9a-f]{40}", config["Labels"]["org.opencontainers.image.revision"])


def test_its_history_names_no_index_of_packages(image: str) -> None:
    history = call(ENGINE, "history", "--no-trunc", "--format={{.CreatedBy}}", image).stdout
    assert "darkroom" in history
    assert re.findall(r"PIP_INDEX_URL|_proxy|https?://", history) == []


def test_it_contains_the_packages_of_the_lock_and_darkroom(run: Run) -> None:
    code = (
        "from importlib.metadata import distributions\n"
        "print(*(each.name + '==' + each.version for each in distributions()))"
    )
    found = run("-c", code, python=True)
    lock = (ROOT / "constraints/image.txt").read_text()
    pins = dict(re.findall(r"^([a-z0-9-]+)(?:\[\S*\])?==(\S+)", lock, re.MULTILINE))
    installed = {
        re.sub(r"[-_.]+", "-", name).lower(): version
        for name, version in (each.split("==") for each in found.stdout.split())
    }
    assert installed.pop("darkroom-data") == darkroom.__version__
    assert installed == pins


def test_its_packages_are_compatible(run: Run) -> None:
    checked = run("-m", "pip", "check", python=True)
    assert (checked.returncode, checked.stdout.strip()) == (0, "No broken requirements found.")


def test_it_has_a_list_of_its_packages(run: Run) -> None:
    code = "print(open('/opt/darkroom/sbom.cdx.json').read())"
    document = json.loads(run("-c", code, python=True).stdout)
    purls = {each["purl"].partition("?")[0] for each in document["components"]}
    assert "pkg:pypi/tfx@1.21.0" in purls
    assert any(purl.startswith("pkg:deb/debian/libc6@2.41") for purl in purls)
    # Those of the image, and not what was there only to build it.
    installed = (
        "import re; print(*re.findall('^Package: (.*)', open('/var/lib/dpkg/status').read(), 8))"
    )
    listed = {unquote(purl[15:].partition("@")[0]) for purl in purls if "pkg:deb/debian/" in purl}
    assert listed == {*run("-c", installed, python=True).stdout.split()}


def test_its_bytecode_is_there_and_does_not_depend_on_times(run: Run) -> None:
    code = (
        "import importlib.util as u\n"
        "for file in ('tensorflow/__init__.py', 'tfx/__init__.py', 'darkroom/cli/program.py'):\n"
        f"    print(open(u.cache_from_source('{SITE}/' + file), 'rb').read()[4])"
    )
    assert run("-c", code, python=True).stdout.split() == ["1", "1", "1"]


# How it is confined


def test_only_temporary_folders_are_writable(run: Run) -> None:
    code = (
        "import os\n"
        "for folder, names, _ in os.walk('/'):\n"
        "    names[:] = [n for n in names if folder != '/' or n not in ('proc', 'sys')]\n"
        "    if os.access(folder, os.W_OK): print(folder)"
    )
    written = run("-c", code, python=True).stdout.split()
    assert set(written) <= {"/tmp", "/dev/shm", "/dev/mqueue"}
    assert "/tmp" in written


@pytest.mark.parametrize("user", ["65532:65532", "41234:0"])
def test_any_user_may_run_it(run: Run, work: Path, user: str) -> None:
    code = "import getpass, os, pathlib; print(os.getuid(), pathlib.Path.home(), getpass.getuser())"
    assert run("-c", code, python=True, user=user).stdout.split() == [
        user.partition(":")[0], "/tmp", "darkroom"
    ]  # fmt: skip
    done = run("convert", "images.csv", "--output-dir", "records", user=user, options=mount(work))
    assert done.returncode == 0, done.stderr
    assert (work / "records/dataset.json").stat().st_uid == int(user.partition(":")[0])


# What it does


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["--help"], 0),
        (["convert"], 2),
        (["convert", "images.csv", "--output-dir", "/opt/records"], 3),
    ],
)
def test_it_exits_as_the_command_does(
    run: Run, work: Path, arguments: list[str], code: int
) -> None:
    done = run(*arguments, options=mount(work))
    assert done.returncode == code, done.stderr


def test_it_writes_the_same_bytes_as_this_machine_and_finds_damage(run: Run, work: Path) -> None:
    done = run("convert", "images.csv", "--output-dir", "records", options=mount(work))
    assert done.returncode == 0, done.stderr
    darkroom.convert(work / "images.csv", work / "here")
    for path in ("Split-train/data_tfrecord-00000-of-00001", "labels.txt"):
        assert (work / "records" / path).read_bytes() == (work / "here" / path).read_bytes()
    assert run("verify", "records", options=mount(work)).returncode == 0
    (work / "records/labels.txt").unlink()  # the folder belongs to the user of the container
    damaged = run("verify", "records", options=mount(work))
    assert damaged.returncode == 1
    assert "labels.txt" in damaged.stdout + damaged.stderr


def test_the_whole_pipeline_runs_without_a_network_or_a_shell(run: Run, work: Path) -> None:
    shells = tuple(f"--volume=/dev/null:/usr/bin/{name}:ro" for name in ("dash", "bash"))
    code = "import os; os.execv('/bin/sh', ['sh', '-c', 'echo a shell'])"
    assert "Permission denied" in run("-c", code, python=True, options=shells).stderr
    done = run("demo", "--root", "demo", options=(*shells, *mount(work)))
    assert done.returncode == 0, done.stderr
    assert re.search(r"Gate +Passed with [0-9] warnings\.", done.stdout)
    assert [*work.glob("demo/**/saved_model.pb")]
