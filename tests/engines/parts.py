"""What a Flink cluster is made of: built and downloaded once, into a folder that is kept."""

from __future__ import annotations

import fcntl
import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

POM = Path(__file__).with_name("pom.xml")
# Of Flink, of Beam's runner for it, and of Beam's job service; and the line that the runner is for.
VERSIONS = "1.20.3 2.70.0 2.65.0 1.19"


@dataclass(frozen=True)
class Parts:
    """What was built.

    Attributes:
        flink: Version of Flink.
        beam: Version of Beam's runner, in Java.
        jar: Beam's job server.
        home: Folder of Flink, with `lib` and `plugins`.
    """

    flink: str
    beam: str
    jar: Path
    home: Path

    @property
    def line(self) -> str:
        """The version of Flink as Beam's option `flink_version` wants it."""
        return self.flink.rpartition(".")[0]


def find_missing() -> str:
    """Says what is missing to build a cluster; empty if nothing is."""
    missing = [name for name in ("java", "mvn") if not shutil.which(name)]
    return f"A Flink cluster needs Java 17 and Maven; missing: {missing}." if missing else ""


def make_parts() -> Parts:
    """Builds the job server and downloads Flink, unless an earlier run did."""
    folder = Path(os.environ.get("DARKROOM_ENGINES") or "~/.cache/darkroom-engines").expanduser()
    flink, beam, service, line = os.environ.get("DARKROOM_FLINK", VERSIONS).split()
    folder.mkdir(parents=True, exist_ok=True)
    with _locked(folder):
        jar = _build_job_server(folder, flink=flink, beam=beam, service=service, runner=line)
        return Parts(flink, beam, jar, _download_flink(folder, flink))


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    with (folder / "lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _build_job_server(folder: Path, **versions: str) -> Path:
    text = POM.read_text() + repr(sorted(versions.items()))
    jar = folder / f"job-server-{hashlib.sha256(text.encode()).hexdigest()[:12]}.jar"
    if not jar.exists():
        work = folder / "build"
        shutil.rmtree(work, ignore_errors=True)
        work.mkdir()
        shutil.copy(POM, work)
        given = [f"-D{name}={version}" for name, version in versions.items()]
        _run("mvn", "-B", "-q", "package", *given, cwd=work)
        (work / "target" / "job-server-1.jar").rename(jar)
        shutil.rmtree(work)
    return jar


def _download_flink(folder: Path, version: str) -> Path:
    """Returns the folder of Flink's jars. The package index has them, for PyFlink."""
    home = folder / f"flink-{version}"
    if not home.exists():
        work = folder / "download"
        shutil.rmtree(work, ignore_errors=True)
        package = f"apache-flink-libraries=={version}"
        install = ["uv", "pip", "install", "--python", sys.executable]
        if importlib.util.find_spec("pip"):
            install = [sys.executable, "-m", "pip", "install"]
        _run(*install, "-q", "--no-deps", "--target", str(work), package)
        (work / "pyflink").rename(home)
        shutil.rmtree(work)
    return home


def _run(*command: str, cwd: Path | None = None) -> None:
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=1_800)
    assert done.returncode == 0, (done.stdout + done.stderr)[-3_000:]
