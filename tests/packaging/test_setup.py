"""The targets of make, and the search for an interpreter."""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

NOBODY = 65534  # root may write everywhere, so what nobody may is tried as nobody
ROOT = Path(__file__).resolve().parents[2]

needs_tfx_machine = pytest.mark.skipif(
    (platform.system(), platform.machine(), platform.libc_ver()[0]) != ("Linux", "x86_64", "glibc"),
    reason="TFX installs on x86-64 Linux with glibc only",
)


def add_program(path: Path, script: str) -> None:
    """Writes an executable shell script."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    path.chmod(0o755)


def run_setup(home: Path, *args: str) -> str:
    """Runs the set-up, which must fail with the code for the environment; returns its message."""
    done = subprocess.run(
        ["sh", str(home / "tools" / "setup_env.sh"), *args],
        env={"HOME": str(home), "PATH": str(home / "bin")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (3, ""), done.stderr
    return done.stderr


def test_help_lists_every_target() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    phony = re.search(r"^\.PHONY: (.*)$", makefile, re.MULTILINE)
    assert phony is not None
    assert re.findall(r"^([a-z-]+):.* ## ", makefile, re.MULTILINE) == phony[1].split()


@needs_tfx_machine
def test_a_python_that_does_not_run_is_skipped(bare_machine: Path) -> None:
    for name in ("python3", "python3.10", "python3.11"):
        add_program(bare_machine / "bin" / name, "echo 'command not found' >&2; exit 127")
    assert re.fullmatch(
        r"error: found no Python 3\.1\d, which TFX 1\.\d\d needs, and no uv that could fetch it "
        r"\(no Python from 3\.8 on runs here\): .*, or install Python 3\.1\d with its venv .*\n",
        run_setup(bare_machine, "tfx"),
    )


def test_the_requested_python_must_run(bare_machine: Path) -> None:
    message = run_setup(bare_machine, "core", "3.12")
    assert message.startswith(
        "error: found no Python 3.12, which this environment needs, and no uv"
    )
    message = run_setup(bare_machine, "core", "no-such-python")
    assert message.startswith("error: PYTHON=no-such-python does not run")


@needs_tfx_machine
def test_the_requested_python_must_have_a_version_that_tfx_supports(bare_machine: Path) -> None:
    add_program(bare_machine / ".pyenv" / "versions" / "3.12.1" / "bin" / "python3", "echo 3.12")
    message = run_setup(bare_machine, "tfx", "3.12")
    assert message.startswith("error: TFX needs Python 3.11 (with glibc 2.39) or 3.10")


def test_an_unsupported_machine_gets_one_line(bare_machine: Path) -> None:
    (bare_machine / "bin" / "uname").unlink()
    add_program(bare_machine / "bin" / "uname", "echo Darwin")
    message = run_setup(bare_machine, "tfx")
    assert re.fullmatch(r"error: TFX installs on x86-64 Linux with glibc only, and .*\n", message)


@pytest.fixture
def checkout() -> Iterator[Path]:
    """A checkout in the form that set-up needs, with a Python and a uv that record calls."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        scripts = ("tools/setup_env.sh", "tools/find_uv.sh", "tools/find_python.sh")
        for name in (*scripts, "constraints/core.txt", "setup.py", "pyproject.toml"):
            (root / name).parent.mkdir(exist_ok=True)
            shutil.copy(ROOT / name, root / name)
        add_program(root / "bin" / "python3.12", "echo 3.12 /usr/bin/python3.12")
        add_program(
            root / "bin" / "uv",
            f"""[ "$1" != --version ] || {{ echo "uv 0.13.9"; exit; }}
            echo "$1 cache:${{UV_NO_CACHE:-kept}}" >>{root}/uv.txt
            if [ "$1" = venv ]; then
              mkdir -p .venv/core-3.12/bin .venv/core-3.12/lib/python3.12/site-packages
              cp bin/python3.12 .venv/core-3.12/bin/python
            fi""",
        )
        (root / "uv.txt").touch()
        _let_others_read(root)
        yield root


def _let_others_read(root: Path) -> None:
    for path in (root, *root.rglob("*")):
        path.chmod(0o755 if path.is_dir() or os.access(path, os.X_OK) else 0o644)


def set_up(checkout: Path, user: int | None = None, **env: str) -> tuple[int, str, str]:
    """Sets the core up; returns exit code, output and error."""
    done = subprocess.run(
        ["sh", "tools/setup_env.sh", "core", "3.12"],
        cwd=checkout,
        env={"PATH": f"{checkout}/bin:/usr/bin:/bin", **env},
        user=user,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout, done.stderr


def set_up_without_rights(checkout: Path) -> tuple[int, str, str]:
    """Sets the core up as a user who may only read the checkout."""
    if os.geteuid() == 0:
        return set_up(checkout, NOBODY, HOME="/nonexistent")
    folders = [checkout, *(path for path in checkout.rglob("*") if path.is_dir())]
    for folder in folders:
        folder.chmod(0o555)
    try:
        return set_up(checkout)
    finally:
        for folder in folders:
            folder.chmod(0o755)


def test_without_a_home_folder_no_cache_is_kept(checkout: Path) -> None:
    environment = f"{checkout}/.venv/core-3.12\n"
    assert set_up(checkout)[:2] == (0, environment)
    assert set(re.findall(r"cache:.*", (checkout / "uv.txt").read_text())) == {"cache:1"}
    shutil.rmtree(checkout / ".venv")
    (checkout / "uv.txt").write_text("")
    for cache in ({"HOME": str(checkout)}, {"UV_CACHE_DIR": "/c"}, {"XDG_CACHE_HOME": "/c"}):
        assert set_up(checkout, **cache)[:2] == (0, environment)
    assert set(re.findall(r"cache:.*", (checkout / "uv.txt").read_text())) == {"cache:kept"}


def test_a_complete_environment_may_be_read_only(checkout: Path) -> None:
    assert set_up(checkout)[0] == 0
    (checkout / ".venv" / "core-3.12.lock").unlink(missing_ok=True)
    _let_others_read(checkout)
    assert set_up_without_rights(checkout) == (0, f"{checkout}/.venv/core-3.12\n", "")
    assert os.listdir(checkout / ".venv") == ["core-3.12"]


def test_an_incomplete_environment_must_be_writable(checkout: Path) -> None:
    for _ in range(2):  # before there is any, and when the lock file has changed since
        code, out, error = set_up_without_rights(checkout)
        assert (code, out) == (3, "")
        assert re.fullmatch(r"error: .* may not write to .*: make the checkout writable.*\n", error)
        assert set_up(checkout)[0] == 0
        (checkout / "constraints" / "core.txt").write_text("")
        _let_others_read(checkout)


def test_the_newest_packages_need_a_recent_python(bare_machine: Path) -> None:
    add_program(bare_machine / "bin" / "python3.11", "echo 3.11")
    message = run_setup(bare_machine, "newest", "3.11")
    assert message.startswith("error: the newest packages are tried on Python 3.12 and 3.13, and ")


def set_newest_up(checkout: Path, **env: str) -> subprocess.CompletedProcess[str]:
    """Sets the bare environment up, with a uv that fails to install if OFFLINE is set."""
    add_program(
        checkout / "bin" / "uv",
        f"""[ "$1" != --version ] || {{ echo "uv 0.13.9"; exit; }}
        echo "$*" >>{checkout}/uv.txt
        [ "$1" != pip ] || [ -z "$OFFLINE" ] || {{ echo "no index" >&2; exit 2; }}
        [ "$1" != venv ] || {{ mkdir -p .venv/bare-3.12/bin &&
          cp bin/python3.12 .venv/bare-3.12/bin/python; }}""",
    )
    return subprocess.run(
        ["sh", "tools/setup_env.sh", "bare", "3.12"],
        cwd=checkout,
        env={"PATH": f"{checkout}/bin:/usr/bin:/bin", **env},
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_newest_packages_are_installed_again_when_the_project_changes(checkout: Path) -> None:
    environment = f"{checkout}/.venv/bare-3.12\n"
    for name in ("setup.py", "pyproject.toml"):
        (checkout / "uv.txt").write_text("")
        with (checkout / name).open("a", encoding="utf-8") as file:
            file.write("# changed\n")
        for _ in range(2):
            done = set_newest_up(checkout)
            assert (done.returncode, done.stdout) == (0, environment), done.stderr
        command = r"^pip install .* -e \.\[beam\] ipykernel$"
        assert len(re.findall(command, _read_calls(checkout), re.M)) == 1
        assert "constraint" not in _read_calls(checkout)


def test_without_an_index_the_newest_packages_fail_with_one_sentence(checkout: Path) -> None:
    done = set_newest_up(checkout, OFFLINE="1")
    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr.splitlines()[-1] == (
        "error: the packages could not be installed, see above: run this again where the package "
        "index can be reached (a mirror is set by UV_DEFAULT_INDEX for uv, PIP_INDEX_URL for pip)"
    )
    assert set_newest_up(checkout).returncode == 0  # nothing half done is taken for complete


def _read_calls(checkout: Path) -> str:
    return (checkout / "uv.txt").read_text(encoding="utf-8")


def test_the_source_is_on_the_path_of_the_environment(checkout: Path) -> None:
    assert set_up(checkout)[0] == 0
    [path] = (checkout / ".venv/core-3.12").rglob("darkroom-source.pth")
    assert path.read_text() == f"{checkout}/src\n"


_NAMED = "import darkroom, darkroom.pipelines; print(darkroom.load.__module__)"
_IN_CHILD = (
    f"import subprocess, sys; subprocess.run([sys.executable, '-c', {_NAMED!r}], check=True)"
)


@pytest.mark.parametrize("arguments", [["-c", _NAMED], ["-c", _IN_CHILD], ["-m", "named"], ["-"]])
def test_a_clone_in_the_current_folder_is_not_the_package(
    tmp_path: Path, arguments: list[str]
) -> None:
    """Python has the current folder before all others with -c, -m, and in a notebook."""
    (tmp_path / "darkroom" / "src" / "darkroom").mkdir(parents=True)
    (tmp_path / "named.py").write_text(_NAMED, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, *arguments],
        input=_NAMED,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "darkroom.input.loading\n"), done.stderr
