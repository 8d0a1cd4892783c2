"""Checks the needs of a job on an engine before it is submitted."""

from __future__ import annotations

import os
import re
import shutil
import socket
import zipfile
from contextlib import suppress
from typing import TYPE_CHECKING

from darkroom.errors import StorageError, UsageError

if TYPE_CHECKING:
    from apache_beam.options.pipeline_options import PipelineOptions

FLINK_RUNNER, SPARK_RUNNER = "FlinkRunner", "SparkRunner"
PORTABLE_RUNNER, PRISM_RUNNER = "PortableRunner", "PrismRunner"

_CONNECT_SECONDS = 10
# Beam would wait for minutes, and say nothing meanwhile.
_JOB_SERVER_SECONDS = 30
# A master that runs inside the job server.
_INSIDE = re.compile(r"\[.*\]|local(\[.*\])?")
# A cluster that is named by its host alone.
_DEFAULT_PORTS = {"http": 80, "https": 443, "spark": 7077}


def check_engine(runner: str, options: PipelineOptions) -> None:
    """Checks that an engine answers, and that its job server can be started here.

    Raises:
        StorageError: It does not answer, or Java is missing.
        UsageError: An address or a jar of the options cannot be used.
    """
    values = options.get_all_options(retain_unknown_options=True)
    if endpoint := values.get("job_endpoint"):
        if endpoint != "embed":
            _connect("job_endpoint", endpoint, "the job server of Beam")
            _ask_job_server(endpoint)
        return
    if runner == PORTABLE_RUNNER:
        raise UsageError(
            "PortableRunner needs the address of a job server.",
            "Give job_endpoint=HOST:PORT (--beam-option), or take FlinkRunner or SparkRunner.",
        )
    if runner not in (FLINK_RUNNER, SPARK_RUNNER):
        return
    kind = runner.removesuffix("Runner")
    master = "flink_master" if runner == FLINK_RUNNER else "spark_master_url"
    if (address := str(values.get(master) or "")) and not _INSIDE.fullmatch(address):
        _connect(master, address, kind)
    if values.get(f"{kind.lower()}_submit_uber_jar"):
        return
    jar = values.get(option := f"{kind.lower()}_job_server_jar")
    if jar and "://" not in jar:
        _check_jar(jar, option, kind, str(values.get("flink_version")))
    check_java(kind)


def _check_jar(path: str, option: str, kind: str, flink: str) -> None:
    """Checks that a file is a program of Java, and by its name Beam's job server of an engine.

    Raises:
        UsageError: It is not.
    """
    from apache_beam.version import __version__ as version

    engine = {"Flink": f"flink-{flink}", "Spark": "spark-3"}[kind]
    name = f"beam-runners-{engine}-job-server-{version}.jar"
    hint = f"Give the path of {name}, or leave the option out: then it is looked for."
    if not os.path.isfile(path):
        what = "is a folder" if os.path.isdir(path) else "does not exist"
        raise UsageError(f"{option} is {path!r}, which {what}.", hint)
    if not zipfile.is_zipfile(path):
        raise UsageError(f"{option} is {path!r}, which is not a whole jar.", hint)
    program = ""
    with suppress(OSError, KeyError, ValueError, zipfile.BadZipFile), zipfile.ZipFile(path) as jar:
        # Lines end as on Windows, and those of more than 72 bytes continue in the next one.
        text = jar.read("META-INF/MANIFEST.MF").decode().replace("\r\n ", "")
        program = "".join(re.findall(r"^Main-Class:\s*(\S+)", text, re.MULTILINE))
    if not program.endswith(f"{kind}JobServerDriver"):
        says = f"its program is {program}" if program else "it has no program"
        what = f"{option} is {path!r}, which is not a job server of {kind}"
        raise UsageError(f"{what}: {says}.", hint)


def check_java(kind: str) -> None:
    """Checks that there is a Java that can run a job server.

    Args:
        kind: Whose job server, as Flink.

    Raises:
        StorageError: There is none.
    """
    home = os.environ.get("JAVA_HOME")
    if not shutil.which(os.path.join(home, "bin", "java") if home else "java"):
        raise StorageError(
            f"The job server of {kind} needs Java, which is not installed.",
            "Install Java 17, or give job_endpoint=HOST:PORT of a job server that runs.",
        )


def _connect(option: str, address: str, what: str) -> None:
    scheme, _, place = address.strip().rpartition("://")
    host, _, port = place.split("/")[0].rpartition(":")
    if not host and scheme in _DEFAULT_PORTS:
        host, port = port, str(_DEFAULT_PORTS[scheme])
    if not host or not port.isdigit() or int(port) >= 1 << 16:
        raise UsageError(f"{option} is {address!r}, expected HOST:PORT.")
    try:
        socket.create_connection((host.strip("[]"), int(port)), _CONNECT_SECONDS).close()
    except OSError as error:
        reason = "no answer" if isinstance(error, TimeoutError) else error.strerror or error
        raise StorageError(
            f"{what[:1].upper()}{what[1:]} cannot be reached at {address}: {reason}.",
            f"Check that it runs, and the address in {option}.",
        ) from error


def _ask_job_server(endpoint: str) -> None:
    """Checks that the server speaks as a job server does: an engine's web page listens, too."""
    import grpc

    with grpc.insecure_channel(endpoint) as channel:
        try:
            grpc.channel_ready_future(channel).result(_JOB_SERVER_SECONDS)
        except grpc.FutureTimeoutError as error:
            raise StorageError(
                f"The server at {endpoint} did not answer as a job server of Beam in "
                f"{_JOB_SERVER_SECONDS} s.",
                "Check the port in job_endpoint: the engine and its worker pools have others.",
            ) from error
