"""uv is fetched from a package index by any pip, and gets the settings of pip."""

from __future__ import annotations

import base64
import hashlib
import http.server
import importlib.metadata
import io
import os
import platform
import shutil
import subprocess
import sys
import threading
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
WHEEL = "uv-9.9.9-py3-none-manylinux_2_17_x86_64.manylinux2014_x86_64.whl"
HOW_PYTHONS_LACK_PIP = {
    "nothing": "",
    # Debian's python3, until python3-pip or python3-venv is installed.
    "pip and ensurepip": "for name in ('pip', 'ensurepip'): sys.modules[name] = None",
    "pip": "sys.modules['pip'] = None",
}

pytestmark = [
    pytest.mark.heavy,
    pytest.mark.skipif(
        (platform.system(), platform.machine()) != ("Linux", "x86_64"),
        reason="the wheel on the index is one for x86-64 Linux",
    ),
]

# Replaces the tools of Debian: a package with the pip of this environment.
APT_GET = """
case "$*" in
  *" update")
    if [ -n "${APT_IS_DOWN:-}" ]; then echo W: No DNS; echo E: Some files failed; exit 100; fi ;;
  *" download python3-pip-whl") touch python3-pip-whl_1.deb ;;
esac
"""
DPKG_DEB = """
[ "$1" = -x ] && [ -e "$2" ] || exit 2
mkdir -p "$3/usr/share/python-wheels"
cp "$PIP_WHEEL_OF_THE_TEST" "$3/usr/share/python-wheels/pip-1-py3-none-any.whl"
"""


def make_wheel() -> bytes:
    """A wheel like that of uv: a program, and the metadata that pip needs."""
    content = io.BytesIO()
    info = "uv-9.9.9.dist-info"
    with zipfile.ZipFile(content, "w") as files:
        files.writestr("uv-9.9.9.data/scripts/uv", "#!/bin/sh\necho uv 9.9.9\n")
        files.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: uv\nVersion: 9.9.9\n")
        files.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-manylinux_2_17_x86_64\n")
        files.writestr(f"{info}/RECORD", "")
    return content.getvalue()


class Index(http.server.ThreadingHTTPServer):
    """A package index on loopback, which may ask for a user and a password."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.wheel = make_wheel()
        self.user = ""
        self.asked: list[str] = []

    def name(self, user: str = "") -> str:
        return f"http://{user and user + '@'}127.0.0.1:{self.server_port}/simple"


class _Handler(http.server.BaseHTTPRequestHandler):
    server: Index

    def do_GET(self) -> None:
        self.server.asked.append(self.path)
        expected = "Basic " + base64.b64encode(self.server.user.encode()).decode()
        if self.server.user and self.headers.get("Authorization") != expected:
            self.send_error(401)
            return
        wheels = [WHEEL, "uv-9.9.9-py3-none-macosx_11_0_arm64.whl", WHEEL.replace("9.9.9", "9.9.8")]
        links = "".join(f'<a href="../../files/{name}#sha256=0">{name}</a>' for name in wheels)
        page = {"/simple/uv/": links.encode(), f"/files/{WHEEL}": self.server.wheel}.get(self.path)
        self.send_response(404 if page is None else 200)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(page or b"")))
        self.end_headers()
        self.wfile.write(page or b"")

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def index() -> Iterator[Index]:
    server = Index()
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture(scope="module")
def pip_wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The package of pip as Debian builds it, with bytecode: compiling takes a second each time."""
    # Whoever looks for pip as a module makes setuptools stay away from distutils, in all tests.
    source = importlib.metadata.distribution("pip").locate_file("pip")
    folder = tmp_path_factory.mktemp("pip")
    shutil.copytree(str(source), folder / "pip")
    for path in folder.rglob("*.pyc"):
        # Unpacking changes the times of the sources, so Python must not compare them (PEP 552).
        code = path.read_bytes()
        path.write_bytes(code[:4] + (1).to_bytes(4, "little") + bytes(8) + code[16:])
    return Path(shutil.make_archive(str(folder / "wheel"), "zip", folder, "pip"))


@pytest.fixture
def checkout(tmp_path: Path, pip_wheel: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the tools, Debian's programs, and a lock that has the hash of our wheel."""
    (tmp_path / "bin").mkdir()
    for program, script in (("apt-get", APT_GET), ("dpkg-deb", DPKG_DEB)):
        path = tmp_path / "bin" / program
        path.write_text(f"#!/bin/sh\n{script}")
        path.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"), prepend=os.pathsep)
    monkeypatch.setenv("PIP_WHEEL_OF_THE_TEST", str(pip_wheel))
    (tmp_path / "tools").mkdir()
    for name in ("get_uv.py", "pip_settings.py"):
        shutil.copy(ROOT / "tools" / name, tmp_path / "tools" / name)
    (tmp_path / "constraints").mkdir()
    digest = hashlib.sha256(make_wheel()).hexdigest()
    lock = f"uv==9.9.9 \\\n    --hash=sha256:{'0' * 64} \\\n    --hash=sha256:{digest}\n"
    (tmp_path / "constraints" / "uv.txt").write_text(lock)
    return tmp_path


def get_uv(checkout: Path, lack: str, **env: str) -> tuple[int, str, str]:
    """Runs tools/get_uv.py by a Python that lacks what is said; returns code, output, error."""
    script = (
        f"import runpy, sys\n{HOW_PYTHONS_LACK_PIP[lack]}\n"
        "sys.path.insert(0, 'tools')\nsys.argv = ['get_uv.py', '.venv/uv']\n"
        "runpy.run_path('tools/get_uv.py', run_name='__main__')"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=checkout,
        env={
            "HOME": str(checkout),
            "PATH": os.environ["PATH"],
            "PIP_WHEEL_OF_THE_TEST": os.environ["PIP_WHEEL_OF_THE_TEST"],
            **env,
        },
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize(
    "lack", ["nothing", "pip and ensurepip", pytest.param("pip", marks=pytest.mark.long)]
)
def test_uv_comes_from_the_index_that_pip_uses(checkout: Path, index: Index, lack: str) -> None:
    assert get_uv(checkout, lack, PIP_INDEX_URL=index.name()) == (0, "", "")
    program = checkout / ".venv" / "uv" / "bin" / "uv"
    assert subprocess.check_output([program], text=True) == "uv 9.9.9\n"
    assert os.listdir(checkout / ".venv") == ["uv"]
    assert set(index.asked) >= {"/simple/uv/", f"/files/{WHEEL}"}


def test_user_and_password_are_sent_to_the_index(checkout: Path, index: Index) -> None:
    index.user = "me:p@ss"
    config = checkout / ".config" / "pip" / "pip.conf"
    config.parent.mkdir(parents=True)
    config.write_text(f"[global]\nindex-url = {index.name('me:p%40ss')}\n")
    assert get_uv(checkout, "nothing") == (0, "", "")


# After pip has failed, the Debian package of pip is tried: its error is the one that is told.
def test_a_wheel_with_another_hash_is_not_installed(checkout: Path, index: Index) -> None:
    index.wheel += b"more"
    code, out, error = get_uv(checkout, "nothing", PIP_INDEX_URL=index.name())
    assert (code, out) == (1, "")
    assert "DO NOT MATCH THE HASHES" in error
    assert os.listdir(checkout / ".venv") == []


def test_an_apt_without_a_network_fails_with_one_sentence(checkout: Path, index: Index) -> None:
    code, out, error = get_uv(checkout, "pip and ensurepip", APT_IS_DOWN="1")
    assert (code, out, error) == (1, "", "apt-get: Some files failed\n")
    assert index.asked == []


def test_a_python_without_any_pip_says_so(checkout: Path) -> None:
    (checkout / "bin" / "apt-get").unlink()
    code, out, error = get_uv(checkout, "pip and ensurepip", PATH=str(checkout / "bin"))
    assert (code, out, error) == (1, "", "this Python has neither pip nor ensurepip\n")


def test_a_broken_uv_is_replaced_and_a_working_one_is_kept(checkout: Path, index: Index) -> None:
    folder = checkout / ".venv" / "uv"
    (folder / "bin").mkdir(parents=True)
    assert get_uv(checkout, "nothing", PIP_INDEX_URL=index.name())[0] == 0
    assert (folder / "bin" / "uv").exists()
    (folder / "mine").touch()
    assert get_uv(checkout, "nothing", PIP_INDEX_URL=index.name())[0] == 0
    assert (folder / "mine").exists()


def read_settings(tmp_path: Path, **env: str) -> list[str]:
    """What tools/pip_settings.py tells uv, without what the system's certificates add."""
    out = subprocess.check_output(
        [sys.executable, ROOT / "tools" / "pip_settings.py"],
        env={"HOME": str(tmp_path), "SSL_CERT_FILE": "/c", "PIP_CONFIG_FILE": "own.conf", **env},
        cwd=tmp_path,
        text=True,
    )
    return out.splitlines()


def test_uv_gets_the_settings_of_pip_in_the_same_precedence(tmp_path: Path) -> None:
    (tmp_path / ".pip").mkdir()
    (tmp_path / ".pip" / "pip.conf").write_text("[global]\nindex-url = weak\nproxy = http://p:1\n")
    (tmp_path / "own.conf").write_text(
        "[global]\nindex_url = middle\n[install]\ntrusted-host = a b\n[list]\nproxy = no\n"
    )
    assert read_settings(tmp_path) == [
        "export UV_DEFAULT_INDEX=middle",
        "export ALL_PROXY=http://p:1",
        "export UV_INSECURE_HOST='a b'",
    ]
    strong = read_settings(tmp_path, PIP_INDEX_URL="it's strong")
    assert strong[0] == """export UV_DEFAULT_INDEX='it'"'"'s strong'"""


def test_existing_settings_of_uv_are_kept(tmp_path: Path) -> None:
    told = {"UV_INDEX_URL": "mine", "HTTPS_PROXY": "mine", "UV_SYSTEM_CERTS": "false"}
    (tmp_path / "own.conf").write_text("[global]\nindex-url = i\nproxy = p\ncert = c\n")
    assert read_settings(tmp_path, **told) == []


def test_uv_trusts_the_certificates_of_the_system_as_this_python_does(tmp_path: Path) -> None:
    (tmp_path / "company.pem").touch()
    no_file = {"SSL_CERT_FILE": "", "PIP_CONFIG_FILE": os.devnull}
    told = read_settings(tmp_path, SSL_CERT_DIR=str(tmp_path), **no_file)
    assert told == ["export UV_SYSTEM_CERTS=true"]


def test_a_damaged_file_is_skipped(tmp_path: Path) -> None:
    (tmp_path / "own.conf").write_text("index-url = no section\n")
    assert read_settings(tmp_path, PIP_PROXY="http://p:1") == ["export ALL_PROXY=http://p:1"]
