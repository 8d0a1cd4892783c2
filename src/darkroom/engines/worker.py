"""A worker that an engine starts as a process: the command `darkroom-worker`.

It takes the place of Beam's program `boot`, which also installs the packages of a job. Nothing
is installed or downloaded here: this Python has darkroom. Flink and Spark start it with
`environment_type=PROCESS`, and a pool of workers with `--container_executable`.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from typing import Any

_ANSWER_SECONDS = 60


def main(arguments: Sequence[str] | None = None) -> None:
    """Works for an engine until that closes the connection.

    Args:
        arguments: `--id` and `--provision_endpoint`, as Beam gives them; others are ignored, for
            the provision service tells the same.
    """
    parser = argparse.ArgumentParser(prog="darkroom-worker", description=__doc__.partition("\n")[0])
    # Prism passes it in quotes.
    parser.add_argument(
        "--id",
        required=True,
        type=lambda text: text.strip("'"),
        help="name of the worker, from the engine",
    )
    parser.add_argument(
        "--provision_endpoint", required=True, help="where the engine says the rest: HOST:PORT"
    )
    given, _ = parser.parse_known_args(arguments)
    # Before Beam's own modules, which would warn.
    import darkroom.runtime.plain_beam  # noqa: F401, I001
    from apache_beam.runners.worker import sdk_worker_main

    info = _ask_engine(given.provision_endpoint, given.id)
    os.environ.update(_describe_job(info, given.id))
    sdk_worker_main.main([])


def _ask_engine(endpoint: str, worker_id: str) -> Any:
    """Returns the answer of the engine's provision service about the job."""
    from apache_beam.portability.api import beam_provision_api_pb2 as messages
    from apache_beam.portability.api import beam_provision_api_pb2_grpc as services
    from apache_beam.runners.worker.channel_factory import GRPCChannelFactory

    with GRPCChannelFactory.insecure_channel(endpoint) as channel:
        answer = services.ProvisionServiceStub(channel).GetProvisionInfo(
            messages.GetProvisionInfoRequest(),
            metadata=[("worker_id", worker_id)],
            timeout=_ANSWER_SECONDS,
            wait_for_ready=True,
        )
    return answer.info


def _describe_job(info: Any, worker_id: str) -> dict[str, str]:
    """Returns the environment variables from which Beam's worker reads the same."""
    from google.protobuf import json_format, text_format

    variables = {
        "WORKER_ID": worker_id,
        "PIPELINE_OPTIONS": json_format.MessageToJson(info.pipeline_options),
        "RUNNER_CAPABILITIES": " ".join(info.runner_capabilities),
    }
    for name in ("logging", "control", "status"):
        endpoint = getattr(info, f"{name}_endpoint")
        if endpoint.url:
            text = text_format.MessageToString(endpoint)
            variables[f"{name.upper()}_API_SERVICE_DESCRIPTOR"] = text
    return variables


if __name__ == "__main__":
    main()
