"""Whether what a job elsewhere needs is there: else it fails late, with a trace of Java alone."""

from __future__ import annotations

import os
import re
import socket
from http.client import HTTPException
from typing import TYPE_CHECKING
from urllib.request import ProxyHandler, build_opener

from darkroom.errors import StorageError, UsageError
from darkroom.options.runners import (
    FLINK_RUNNER,
    JOB_SERVER_RUNNERS,
    PRISM_RUNNER,
    SPARK_RUNNER,
)
from darkroom.runtime import progress
from darkroom.runtime.json_values import parse_object

if TYPE_CHECKING:
    from apache_beam.options.pipeline_options import PipelineOptions, PortableOptions

# For a connection, and for an answer.
_SECONDS = 4
_MAX_BYTES = 1 << 20
# The names of Maven: the line of Flink, and the version of Beam.
_JAR = re.compile(r"beam-runners-(?:flink-([\d.]+)|spark-[\d.]+)-job-server-([\d.]+)\.jar")
_LOCALHOST = ("localhost", "127.0.0.1", "[::1]")


def check_job_server(options: PipelineOptions) -> None:
    """Checks that a job finds its engine, a job server that fits it, and its pool of workers.

    Args:
        options: Those of the job.

    Raises:
        UsageError: The job server is of another line of Flink than the cluster.
        StorageError: Nothing answers at an address.
    """
    from apache_beam.options import pipeline_options as views

    runner = options.view_as(views.StandardOptions).runner
    if runner not in JOB_SERVER_RUNNERS:
        return
    portable = options.view_as(views.PortableOptions)
    is_here = runner == PRISM_RUNNER
    if endpoint := portable.job_endpoint:
        is_here = endpoint == "embed"
        if not is_here:
            _check_open("job_endpoint", endpoint, "It is HOST:PORT of a job server.")
    elif runner == FLINK_RUNNER:
        flink = options.view_as(views.FlinkRunnerOptions)
        line = _check_jar(flink.flink_job_server_jar)
        is_here = flink.flink_master.startswith("[")  # `[local]` and `[auto]`
        if not is_here:
            _check_version(flink.flink_master, line or flink.flink_version)
    elif runner == SPARK_RUNNER:
        spark = options.view_as(views.SparkRunnerOptions)
        _check_jar(spark.spark_job_server_jar)
        scheme, _, masters = spark.spark_master_url.partition("://")
        is_here = scheme.startswith("local")
        if scheme == "spark":  # Yarn and Kubernetes have other ways
            _check_open("spark_master_url", masters, "The master's page names its address.")
    if portable.environment_type == "EXTERNAL":
        _check_pool(find_pool(portable), is_here)


def _check_jar(path: str | None) -> str | None:
    """Warns of a job server for another Beam; returns its line of Flink, if its name has one."""
    from apache_beam.version import __version__ as beam_version

    jar = os.path.basename(path or "")
    named = _JAR.fullmatch(jar)
    if named and named[2] != beam_version:
        progress.warn(f"{jar} is for Beam {named[2]}, and Beam {beam_version} is installed.")
    return named and named[1]


def _check_version(master: str, line: str) -> None:
    """Asks a cluster for its version, and checks that it is of the line of the job server.

    Args:
        master: The address of its web page, with or without `http://`.
        line: The first two numbers of a version, as 1.20.
    """
    url = master if "://" in master else f"http://{master}"
    try:
        # The job server goes to Flink directly, too, whatever proxy the environment names.
        opener = build_opener(ProxyHandler({}))
        with opener.open(f"{url.rstrip('/')}/config", timeout=_SECONDS) as answer:
            version = str(parse_object(answer.read(_MAX_BYTES))["flink-version"])
    except (OSError, ValueError, KeyError, HTTPException) as error:
        raise StorageError(
            f"No Flink answers at {url}: {error}.",
            "Check flink_master: it is the address of the job manager's web page.",
        ) from error
    if not version.startswith(f"{line}."):
        raise UsageError(
            f"Flink at {url} is {version}, but the job server is for {line}.",
            "Give flink_version, as --beam-option flink_version=1.20, and the jar for it.",
        )


def find_pool(portable: PortableOptions) -> str:
    """Returns the address of the pool of workers, as the machines of the engine know it."""
    config = portable.environment_config or ""
    in_json = re.search(r'"url"\s*:\s*"([^"]*)"', config)
    return in_json[1] if in_json else config


def _check_pool(address: str, is_here: bool) -> None:
    """Checks that there is a pool, as far as this machine, which may be the engine, can tell."""
    if is_here or address.rpartition(":")[0] not in _LOCALHOST:
        # Elsewhere, a name may be known to the engine alone; but what refuses is not a pool.
        counts = Exception if is_here else ConnectionRefusedError
        _check_open("environment_config", address, "Start a pool of workers there.", counts)


def _check_open(
    option: str, addresses: str, advice: str, counts: type[Exception] = Exception
) -> None:
    """Checks that something listens at one of some addresses, `HOST:PORT,HOST:PORT`."""
    obstacles = [_find_obstacle(address) for address in addresses.split(",")]
    if all(isinstance(obstacle, counts) for obstacle in obstacles):
        raise StorageError(f"Nothing answers at {addresses} ({option}): {obstacles[0]}.", advice)


def _find_obstacle(address: str) -> Exception | None:
    """Returns why there is no connection to an address; None if there is one."""
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), _SECONDS).close()
    except (OSError, ValueError, OverflowError) as error:
        return error
    return None
