"""Set-up on bare Debian systems that have git, make and python3 (make test-setup).

Needs root, Debian's debootstrap and minutes. The systems are kept in build/systems, or in the
folder that DARKROOM_SYSTEMS names; each test gets a copy. Packages come from the package index.
The Python that uv fetches is packed from one that this machine has, and uv gets a list that names
it, so that the tests do not need the place where the real ones are. Where this machine has none,
uv fetches the real one.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import re
import shutil
import subprocess
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SYSTEMS = Path(os.environ.get("DARKROOM_SYSTEMS", ROOT / "build" / "systems"))
# The Python of these systems is 3.11 with glibc 2.36, and 3.13 with glibc 2.41.
LINES = {"bookworm": ("3.10", "tfx-1.16"), "trixie": ("3.11", "tfx-1.21")}
PRINT_VERSION = "import platform; print(platform.python_version())"
PACKAGES = "ca-certificates,git,make,python3"
# How this machine reaches the package index.
NETWORK_FILES = (
    "/etc/hosts", "/etc/pip.conf", "/etc/resolv.conf", "/etc/ssl/certs/ca-certificates.crt",
)  # fmt: skip
NETWORK_VARIABLES = re.compile("PIP_.*|SSL_CERT_FILE|.*_proxy", re.IGNORECASE)
USER = 1000

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(
        platform.machine() != "x86_64" or os.geteuid() != 0 or not shutil.which("debootstrap"),
        reason="needs x86-64, root and debootstrap",
    ),
]


# Runs the command $3 as the user $2 in the root $1; the mounts go with the process.
ENTER = """
mount -t proc proc "$1/proc"
mount --rbind /dev "$1/dev"
exec chroot --userspec="$2" "$1" sh -c "cd ~/darkroom && $3"
"""


class System:
    """A copy of a bare system, with a user who has a home and a checkout of this project."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.checkout = root / "home" / "user" / "darkroom"

    def run(self, command: str, *, online: bool = True, **env: str) -> tuple[int, str, str]:
        """Runs a shell command in the checkout as the user; returns exit code, output, error."""
        network = {k: v for k, v in os.environ.items() if NETWORK_VARIABLES.fullmatch(k)}
        if (self.root / "python.json").exists():
            network["UV_PYTHON_DOWNLOADS_JSON_URL"] = "file:///python.json"
        done = subprocess.run(
            [
                "unshare", "--mount", "--propagation", "private", *([] if online else ["--net"]),
                "sh", "-euc", ENTER, "sh", str(self.root), f"{USER}:{USER}", command,
            ],
            env={
                "HOME": "/home/user", "LANG": "C.UTF-8", "PATH": "/usr/bin:/bin:/usr/sbin:/sbin",
                **network, **env,
            },
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        return done.returncode, done.stdout, done.stderr


@pytest.fixture(scope="module", params=LINES)
def suite(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def bare_system(suite: str) -> Path:
    """The system without a checkout; it is made once."""
    root = SYSTEMS / suite
    if not root.exists():
        part = SYSTEMS / f"{suite}.part"
        if part.exists():
            shutil.rmtree(part)
        SYSTEMS.mkdir(parents=True, exist_ok=True)
        command = ["debootstrap", "--variant=minbase", f"--include={PACKAGES}", suite, str(part)]
        done = subprocess.run(
            [*command, *find_mirror()], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout[-2000:] + done.stderr
        subprocess.run(["chroot", part, "useradd", "-m", "-u", str(USER), "user"], check=True)
        add_download(part, LINES[suite][0])
        part.rename(root)
    return root


def find_mirror() -> list[str]:
    """The archive that this machine's apt uses, if it is a Debian; else debootstrap's own."""
    sites: list[str] = []
    if shutil.which("apt-get"):
        answer = subprocess.run(
            ["apt-get", "indextargets", "--format", "$(REPO_URI)", "Created-By: Packages"],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        sites = re.findall(r"^\S+/debian/?$", answer.stdout, re.MULTILINE)
    return sites[:1]


@pytest.fixture
def system(suite: str, bare_system: Path, tmp_path: Path) -> Iterator[System]:
    root = tmp_path / suite
    subprocess.run(["cp", "-a", "--reflink=auto", bare_system, root], check=True)
    for name in NETWORK_FILES:
        if Path(name).exists():
            shutil.copyfile(name, root / name[1:])
    system = System(root)
    copy_checkout(system.checkout)
    yield system
    shutil.rmtree(root)


def copy_checkout(target: Path) -> None:
    """Copies the files that a clone would have, and files that are not committed yet."""
    files = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    for name in filter(None, files.split("\0")):
        if (ROOT / name).exists():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, target / name)
    subprocess.run(["chown", "-R", f"{USER}:{USER}", target], check=True)


def add_download(root: Path, version: str) -> None:
    """Adds uv's list of downloads and the archive that it names, of a Python of this machine."""
    home = find_home_of_python(version)
    if home is None:
        return
    program = home / "bin" / f"python{version}"
    full = subprocess.check_output([program, "-c", PRINT_VERSION], text=True).strip()
    _, minor, patch = full.split(".")
    archive = root / f"cpython-{full}.tar.gz"
    pack_python(home, version, archive)
    entry = {
        "name": "cpython", "arch": {"family": "x86_64", "variant": None}, "os": "linux",
        "libc": "gnu", "major": 3, "minor": int(minor), "patch": int(patch),
        "prerelease": "", "url": f"file:///{archive.name}",
        "sha256": hashlib.sha256(archive.read_bytes()).hexdigest(), "variant": None, "build": None,
    }  # fmt: skip
    downloads = {f"cpython-{full}-linux-x86_64-gnu": entry}
    (root / "python.json").write_text(json.dumps(downloads), encoding="utf-8")


def find_home_of_python(version: str) -> Path | None:
    """A folder of pyenv's or uv's: those can be moved, a system's cannot."""
    for folder in ("~/.pyenv/versions", "~/.local/share/uv/python"):
        for home in sorted(Path(folder).expanduser().glob(f"*{version}.*")):
            if (home / "bin" / f"python{version}").exists():
                return home.resolve()
    return None


def pack_python(home: Path, version: str, archive: Path) -> None:
    """Packs an interpreter as python-build-standalone does: below `python/`, to run anywhere.

    The libraries that it needs beside its own are those of Debian's python3.
    """
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder, "python")
        unneeded = shutil.ignore_patterns(
            "__pycache__",
            "test",
            "tests",
            "site-packages",
            "share",
            "config-3*",
            "*.a",
            "uv*",
            "pip*",
        )
        shutil.copytree(home, copy, symlinks=True, ignore=unneeded)
        program = copy / "bin" / f"python{version}"
        fixed = str(home / "lib").encode() + b"\0"
        relative = b"$ORIGIN/../lib\0".ljust(len(fixed), b"\0")
        program.write_bytes(program.read_bytes().replace(fixed, relative))
        with tarfile.open(archive, "w:gz", compresslevel=1) as files:
            files.add(copy, "python")


def read_sentences(error: str) -> list[str]:
    """What set-up says, without make's own last line."""
    return [line for line in error.splitlines() if not line.startswith("make: ***")]


def test_one_command_does_everything(system: System, suite: str) -> None:
    version, name = LINES[suite]
    code, out, error = system.run("make demo")
    assert code == 0, error[-3000:]
    assert "\nWritten    407" in out
    said = [line.replace("/home/user/darkroom/", "") for line in read_sentences(error)]
    assert said[:2] == [
        "Fetching uv into .venv/uv, once",
        f"Found no Python {version}, which TFX {name[4:]} needs: "
        "uv fetches it into .venv/python, once",
    ]
    assert said[2].startswith(f"Setting up .venv/{name} (.venv/python/cpython-{version}.")
    imports = f".venv/{name}/bin/python -c 'import darkroom, tfx, sys; print(sys.version[:4])'"
    assert system.run(imports)[:2] == (0, f"{version}\n")
    made = {path.name for path in (system.checkout / ".venv").iterdir()}
    assert made == {name, f"{name}.lock", "python", "uv"}
    # There is nothing left to do, so it prints nothing and needs no network.
    ready = f"Ready: source .venv/{name}/bin/activate\n"
    assert system.run("make setup", online=False) == (0, ready, "")


def test_without_downloads_the_demo_goes_without_tfx(system: System, suite: str) -> None:
    code, out, error = system.run("make demo", UV_PYTHON_DOWNLOADS="never")
    assert code == 0, error[-3000:]
    assert "\nWritten    407" in out
    assert "\nPushed to  /home/user/darkroom/darkroom-demo/run-without-tfx/pushed/" in out
    assert out.splitlines()[-1].startswith("With TFX   ")
    said = read_sentences(error)
    assert said[0] == "Fetching uv into .venv/uv, once"
    without = "The demo runs without TFX, which cannot be had here: found no Python "
    assert said[1].startswith(f"{without}{LINES[suite][0]}, which TFX 1.")


def test_without_a_network_one_sentence_says_what_to_do(system: System, suite: str) -> None:
    code, out, error = system.run("make demo", online=False)
    assert (code, out) == (2, "")
    assert "] Error 3" in error.splitlines()[-1]
    said = read_sentences(error)
    assert said[0] == "Fetching uv into .venv/uv, once"
    assert len(said) == 2
    assert "no uv that could fetch it (apt-get: " in said[1]
    check_ways_out(said[1], LINES[suite][0])


def check_ways_out(sentence: str, version: str) -> None:
    assert sentence.startswith(f"error: found no Python {version}, which TFX 1.")
    for way in (
        "UV_PYTHON_DOWNLOADS",
        f"install Python {version}",
        f"pyenv install {version}",
        "PYTHON=",
    ):
        assert way in sentence
