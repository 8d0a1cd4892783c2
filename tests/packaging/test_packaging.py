"""The distribution: its packages, its imports, and a wheel that works outside the checkout."""

from __future__ import annotations

import importlib
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from darkroom.steps.known import STEPS

from .test_layers import FOLDERS

pytestmark = pytest.mark.heavy

ROOT = Path(__file__).resolve().parents[2]


def run_python(*args: str, cwd: Path = ROOT, **env: str) -> str:
    """Runs this interpreter with nothing but the given variables, and returns its output."""
    done = subprocess.run(
        [sys.executable, *args], cwd=cwd, env=env, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def is_within(name: str, packages: tuple[str, ...]) -> bool:
    """Whether a dotted name is one of the packages, or is in one."""
    return any(name == package or name.startswith(package + ".") for package in packages)


# Folders


@pytest.mark.parametrize("folder", FOLDERS)
def test_each_folder_with_code_is_a_package(folder: str) -> None:
    with_code = {path.parent for path in (ROOT / folder).rglob("*.py")}
    assert [str(path) for path in sorted(with_code) if not (path / "__init__.py").exists()] == []


@pytest.mark.parametrize("lock", sorted((ROOT / "constraints").glob("*.txt")), ids=lambda p: p.stem)
def test_locks_contain_pins_and_hashes_only(lock: Path) -> None:
    lines = lock.read_text(encoding="utf-8").splitlines()
    pin = re.compile(
        r"[a-z0-9._-]+(\[[a-z0-9,._-]+\])?==\S+( ; [^/]+)? \\"  # name==1.2.3 ; markers
        r"|    --hash=sha256:[0-9a-f]{64}( \\)?"
    )
    assert [line for line in lines if not pin.fullmatch(line)] == []
    # An environment builds this project; a tool of set-up is locked alone. The small image is
    # built by the tools of the whole one.
    builds = any(line.startswith(("setuptools==", f"{lock.stem}==")) for line in lines)
    assert builds != (lock.stem == "image-core")


# What is loaded


def test_import_darkroom_is_light() -> None:
    heavy = ("tensorflow", "tfx", "apache_beam", "pandas")
    code = "import sys, darkroom; print(*sys.modules)"
    assert [name for name in run_python("-c", code).split() if is_within(name, heavy)] == []


# The wheel


@pytest.fixture(scope="module")
def export(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of what git would hand to a clone."""
    if not (ROOT / ".git").exists() or not shutil.which("git"):
        pytest.skip("needs a git checkout")
    copy = tmp_path_factory.mktemp("export")
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    for name in filter(None, listed.stdout.split("\0")):
        if (ROOT / name).is_file():
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, copy / name)
    return copy


@pytest.fixture(scope="module")
def wheel(export: Path) -> Path:
    """A wheel built by way of an sdist, by the calls of `build`; make release-check runs that."""
    build = "import sys; from setuptools import build_meta; build_meta.build_{}(sys.argv[1])"
    dist = export / "dist"
    run_python("-c", build.format("sdist"), str(dist), cwd=export)
    [sdist] = dist.iterdir()
    shutil.unpack_archive(sdist, dist)
    unpacked = dist / sdist.name.removesuffix(".tar.gz")
    run_python("-c", build.format("wheel"), str(dist), cwd=unpacked)
    return next(dist.glob("*.whl"))


@pytest.fixture(scope="module")
def site(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with what an installer takes from the wheel, and nothing else."""
    target = tmp_path_factory.mktemp("site")
    shutil.unpack_archive(wheel, target, "zip")
    return target


def test_the_sdist_carries_no_tests(wheel: Path) -> None:
    [sdist] = wheel.parent.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        names = [name.split("/")[1:2] for name in archive.getnames()]
    assert ["pyproject.toml"] in names
    assert ["tests"] not in names


def test_wheel_contains_every_module_once(wheel: Path, export: Path) -> None:
    expected = {"darkroom/py.typed"}
    for folder, package in FOLDERS.items():
        base = export / folder
        prefix = package.replace(".", "/")
        expected |= {f"{prefix}/{p.relative_to(base).as_posix()}" for p in base.rglob("*.py")}
    expected |= {f"darkroom/kfp/yaml/{name}.yaml" for name in STEPS}
    script = "validation/gallery/script"
    expected |= {
        f"darkroom/{script}/{p.name}" for p in (export / f"src/darkroom/{script}").iterdir()
    }
    with zipfile.ZipFile(wheel) as archive:
        held = [name for name in archive.namelist() if ".dist-info/" not in name]
    assert sorted(held) == sorted(expected)


def test_wheel_describes_itself_and_names_its_licence_and_authors(
    wheel: Path, export: Path
) -> None:
    with zipfile.ZipFile(wheel) as archive:
        [name] = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
        headers, _, description = archive.read(name).decode().partition("\n\n")
        licence = archive.read(name.replace("METADATA", "licenses/LICENSE")).decode()
    assert licence == (ROOT / "LICENSE").read_text(encoding="utf-8")
    assert "License-Expression: Apache-2.0" in headers
    assert "Author: The darkroom developers" in headers
    assert "Description-Content-Type: text/markdown" in headers
    assert "Classifier: Typing :: Typed" in headers
    assert "Keywords: " in headers
    # No address of the project exists, and an index has none of the repository's files.
    assert "Project-URL" not in headers
    assert [link for link in re.findall(r"\]\(([^)]*)\)", description) if "://" not in link] == []
    readme = (export / "README.md").read_text(encoding="utf-8")
    assert len(description) > 0.8 * len(readme)


def test_versions_agree() -> None:
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    version = re.findall(r'^version = "(.*)"', text, re.MULTILINE)
    assert version == [importlib.import_module("darkroom").__version__]
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    sections = re.findall(r"^## (.*)", changelog, re.MULTILINE)
    assert sections[0] == "Unreleased"
    assert re.fullmatch(r"\d+\.\d+\.\d+ - \d{4}-\d\d-\d\d", sections[1])
    # Between two releases the newest section is not that of the version.
    assert ".dev" in version[0] or sections[1].startswith(f"{version[0]} ")


def test_wheel_runs_outside_the_checkout(site: Path, tmp_path: Path) -> None:
    (tmp_path / "list.csv").write_text("image_uri,label\n1.jpg,cat\n")
    (tmp_path / "images").mkdir()
    (tmp_path / "images/1.jpg").touch()
    (tmp_path / "images/1.txt").write_text("0 0.5 0.5 0.2 0.2\n")
    (tmp_path / "images/classes.txt").write_text("dog\n")
    code = (
        "import darkroom; print(darkroom.convert.__code__.co_filename)\n"
        "from darkroom.runtime import by_name\n"
        "write_manifest = by_name.find('write_manifest')\n"
        "print(*(write_manifest(place, 'm', 'm').labels for place in ('list.csv', 'images')))\n"
        "from importlib.metadata import distribution\n"
        "scripts = distribution('darkroom-data').entry_points\n"
        "[script] = scripts.select(group='console_scripts', name='darkroom')\n"
        "script.load()(['--help'])"
    )
    file, opened, *told = run_python("-c", code, cwd=tmp_path, PYTHONPATH=str(site)).splitlines()
    assert file.startswith(f"{site}/")
    assert opened == "['cat'] ['dog']"
    assert any("convert" in line for line in told)
