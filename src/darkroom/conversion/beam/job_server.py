"""Whether a job server of Beam fits: where it does not, a job fails with a trace of Java alone."""

from __future__ import annotations

import json
import os
import re
from http.client import HTTPException
from typing import TYPE_CHECKING
from urllib.request import ProxyHandler, build_opener

from darkroom.errors import StorageError, UsageError
from darkroom.runtime import progress

if TYPE_CHECKING:
    from apache_beam.options.pipeline_options import PipelineOptions

_SECONDS = 10
_MAX_BYTES = 1 << 20
# The names of Maven: the line of Flink, and the version of Beam.
_JAR = re.compile(r"beam-runners-(?:flink-([\d.]+)|spark-[\d.]+)-job-server-([\d.]+)\.jar")


def check_job_server(options: PipelineOptions) -> None:
    """Checks that the job server that Beam starts is of its own version, and of Flink's.

    Args:
        options: Those of the job.

    Raises:
        UsageError: It is of another line of Flink than the cluster.
        StorageError: The cluster does not answer.
    """
    from apache_beam.options.pipeline_options import (
        FlinkRunnerOptions,
        PortableOptions,
        SparkRunnerOptions,
        StandardOptions,
    )
    from apache_beam.version import __version__ as beam_version

    from darkroom.conversion.beam.runners import FLINK_RUNNER, SPARK_RUNNER

    runner = options.view_as(StandardOptions).runner
    flink = options.view_as(FlinkRunnerOptions)
    jars = {
        FLINK_RUNNER: flink.flink_job_server_jar,
        SPARK_RUNNER: options.view_as(SparkRunnerOptions).spark_job_server_jar,
    }
    if runner not in jars or options.view_as(PortableOptions).job_endpoint:
        return
    jar = os.path.basename(jars[runner] or "")
    named = _JAR.fullmatch(jar)
    if named and named[2] != beam_version:
        progress.warn(f"{jar} is for Beam {named[2]}, and Beam {beam_version} is installed.")
    # `[local]` and `[auto]` are clusters inside the job server.
    if runner == FLINK_RUNNER and not flink.flink_master.startswith("[") and (named or not jar):
        _check_flink(flink.flink_master, named[1] if named else flink.flink_version)


def _check_flink(master: str, line: str) -> None:
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
            version = str(json.loads(answer.read(_MAX_BYTES))["flink-version"])
    except (OSError, ValueError, KeyError, TypeError, HTTPException) as error:
        raise StorageError(
            f"No Flink answers at {url}: {error}.",
            "Check flink_master: it is the address of the job manager's web page.",
        ) from error
    if not version.startswith(f"{line}."):
        raise UsageError(
            f"Flink at {url} is {version}, but the job server is for {line}.",
            "Give flink_version, as --beam-option flink_version=1.20, and the jar for it.",
        )
