"""The options of Beam for an engine, found out from its name and its address."""

from __future__ import annotations

import re
import shutil
import socket
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from darkroom.conversion.beam.runners import list_choices
from darkroom.engines import flink
from darkroom.engines.checks import check_java
from darkroom.engines.jars import find_jar
from darkroom.errors import StorageError, UsageError
from darkroom.options.targets import COMMAND, FLINK, IMAGE, POOL, EngineOptions
from darkroom.runtime import progress
from darkroom.runtime.text import format_count

_ENVIRONMENTS = {IMAGE: "DOCKER", POOL: "EXTERNAL"}
# A master of Spark that runs inside the job server.
_INSIDE = re.compile(r"local(\[.*\])?")
# Spark uses a package that Java 17 hides. It tells its executors so itself, but not the job server.
_SPARK_JAVA = {"job_server_jvm_properties": ["--add-exports=java.base/sun.nio.ch=ALL-UNNAMED"]}


def find_flink(engine: EngineOptions, given: Mapping[str, Any]) -> dict[str, Any]:
    """Returns Beam's options for Flink that were not given; see `Engine.find_options`."""
    url = _get_url(engine, given, "flink_master", "http://jobmanager:8081")
    where = f"Flink at {url}"
    cluster = flink.read_cluster(url)
    if not cluster.task_managers or cluster.slots < 1:
        raise StorageError(
            f"{where} has no task manager, and so no slot for a job.",
            "Start a task manager, and see that it finds the job manager.",
        )
    version = str(given.get("flink_version") or ".".join(cluster.version.split(".")[:2]))
    if version not in (known := list_choices("flink_version")):
        raise UsageError(
            f"{where} is {cluster.version}, for which this version of Beam has no job server.",
            f"Use Flink {', '.join(known)}, or another version of apache-beam.",
        )
    given_slots = given.get("parallelism")
    if str(given_slots).isdigit() and int(str(given_slots)) > cluster.slots:
        progress.warn(
            f"parallelism is {given_slots}, and {where} has {format_count(cluster.slots, 'slot')}: "
            "the job waits until there are as many. Leave parallelism out to take all."
        )
    # A job server beside the cluster is not enough: the workers must reach this process, too.
    is_here = all(map(_is_here, (_find_host(url), *cluster.task_managers)))
    return {
        "flink_master": url,
        "flink_version": version,
        "parallelism": cluster.slots,
        **_choose_workers(engine, given, where, is_here=is_here, hosts=cluster.task_managers),
        **_find_server(f"beam-runners-flink-{version}-job-server", "Flink", given),
    }


def find_spark(engine: EngineOptions, given: Mapping[str, Any]) -> dict[str, Any]:
    """Returns Beam's options for Spark that were not given; see `Engine.find_options`."""
    url = _get_url(engine, given, "spark_master_url", "spark://master:7077")
    is_here = bool(_INSIDE.fullmatch(url)) or _is_here(_find_host(url))
    starts_java = not any(map(given.get, ("job_endpoint", "spark_submit_uber_jar")))
    return {
        "spark_master_url": url,
        **_choose_workers(engine, given, f"Spark at {url}", is_here=is_here),
        **_find_server("beam-runners-spark-3-job-server", "Spark", given),
        **(_SPARK_JAVA if starts_java else {}),
    }


def find_prism(engine: EngineOptions, given: Mapping[str, Any]) -> dict[str, Any]:
    """Returns Beam's options for Prism that were not given; see `Engine.find_options`."""
    if engine.engine_url is None:  # Beam starts a Prism here, or downloads one first
        program = shutil.which("prism")
        return {"prism_location": program} if program else {}
    address = engine.engine_url.rpartition("://")[2].rstrip("/")
    is_here = _is_here(_find_host(address))
    return {
        "job_endpoint": address,
        **_choose_workers(engine, given, f"Prism at {address}", is_here=is_here),
    }


def _get_url(engine: EngineOptions, given: Mapping[str, Any], option: str, example: str) -> str:
    url = str(given.get(option) or engine.engine_url or "")
    if not url:
        raise UsageError(
            f"The address of {engine.engine} is missing: engine_url (--engine-url).",
            f"Give its address, as {example}.",
        )
    if engine.engine != FLINK:
        return url
    flink.check_url(url)
    return flink.format_url(url)


def _choose_workers(
    engine: EngineOptions,
    given: Mapping[str, Any],
    where: str,
    *,
    is_here: bool,
    hosts: Sequence[str] = (),
) -> dict[str, Any]:
    """Returns the options that say how darkroom runs on the machines of an engine.

    Raises:
        UsageError: Nobody said it, or several machines would share one worker pool.
    """
    if given.get("environment_type"):
        return {}
    if engine.workers is None and not is_here:
        raise UsageError(
            f"{where} is not on this machine alone, and its machines need darkroom.",
            "Give engine_workers (--engine-workers): image=NAME for a container that the engine "
            "starts, pool=HOST:PORT for a worker pool beside each worker of the engine, or "
            "command=PATH for a program on its machines.",
        )
    if engine.workers is None:
        return {"environment_type": "LOOPBACK"}
    kind, value = engine.workers
    if kind == POOL and len(set(hosts)) < len(hosts):
        raise UsageError(
            f"{where} has several task managers on one machine: sharing a worker pool, they would "
            "wait for ever.",
            "Start one task manager with more slots, or give command=PATH.",
        )
    return make_environment(kind, value)


def make_environment(kind: str, value: str) -> dict[str, Any]:
    """Returns Beam's options for the workers of darkroom on the machines of an engine."""
    if kind == COMMAND:
        return {"environment_type": "PROCESS", "environment_config": {"command": value}}
    return {"environment_type": _ENVIRONMENTS[kind], "environment_config": value}


def _find_server(artifact: str, kind: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the option for the job server, unless one is given or not needed.

    Raises:
        UsageError: One is given by a wrong name, which Beam would pass on to the engine.
    """
    option = f"{kind.lower()}_job_server_jar"
    if "job_server_jar" in given:
        raise UsageError("Beam has no option 'job_server_jar'.", f"Did you mean {option}?")
    if any(map(given.get, ("job_endpoint", f"{kind.lower()}_submit_uber_jar", option))):
        return {}
    check_java(kind)
    return {option: find_jar(artifact, option)}


def _find_host(address: str) -> str:
    return urlsplit(address if "://" in address else f"//{address}").hostname or ""


def _is_here(host: str) -> bool:
    """Whether a host is this machine: one can listen only at addresses of this machine."""
    try:
        for family, kind, _, _, address in socket.getaddrinfo(host or "-", 0):
            with socket.socket(family, kind) as tried:
                tried.bind(address)
            return True
    except (OSError, UnicodeError):
        return False
    return False
