"""Checks the needs of a job on an engine before it is submitted."""

from __future__ import annotations

import os
import re
import shutil
import socket
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
    if jar and "://" not in jar and not os.path.isfile(jar):
        hint = "Leave the option out: then the job server of Beam is looked for."
        raise UsageError(f"{option} is {jar!r}, which is not a file.", hint)
    check_java(kind)


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
