"""The worker that an engine starts as a process, against a provision service on loopback."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import grpc
import pytest
from apache_beam.portability.api import beam_provision_api_pb2 as api
from apache_beam.portability.api import beam_provision_api_pb2_grpc as services

from darkroom.engines import worker


class Engine(services.ProvisionServiceServicer):
    """Says where the engine's other services are, and notes which worker asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.info = api.ProvisionInfo(runner_capabilities=["one", "two"])
        self.info.pipeline_options.update({"beam:option:job_name:v1": "records"})
        self.info.logging_endpoint.url = "localhost:1"
        self.info.control_endpoint.url = "localhost:2"

    def GetProvisionInfo(self, request, context):  # noqa: N802  the name in Beam's protocol
        self.asked += [value for key, value in context.invocation_metadata() if key == "worker_id"]
        return api.GetProvisionInfoResponse(info=self.info)


@pytest.fixture
def engine() -> Iterator[tuple[Engine, str]]:
    """An engine, and the address of its provision service."""
    server, servicer = grpc.server(ThreadPoolExecutor(2)), Engine()
    services.add_ProvisionServiceServicer_to_server(servicer, server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    yield servicer, f"127.0.0.1:{port}"
    server.stop(None).wait()


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, str]]:
    """What each worker of Beam found in its environment, in the place of a real one."""
    from apache_beam.runners.worker import sdk_worker_main

    environments: list[dict[str, str]] = []
    before = {**os.environ}
    monkeypatch.setattr(os, "environ", {**os.environ})

    def start(_: list[str]) -> None:
        new = os.environ.items() - before.items()
        environments.append({key: value for key, value in new if not key.startswith("PYTEST")})

    monkeypatch.setattr(sdk_worker_main, "main", start)
    return environments


def test_a_worker_asks_the_engine_for_all_but_its_name(engine, started):
    servicer, address = engine
    worker.main(["--id=1-7", f"--provision_endpoint={address}", "--semi_persist_dir=/tmp"])
    assert servicer.asked == ["1-7"]
    (environment,) = started
    options = json.loads(environment.pop("PIPELINE_OPTIONS"))
    assert options == {"beam:option:job_name:v1": "records"}
    assert environment == {
        "WORKER_ID": "1-7",
        "RUNNER_CAPABILITIES": "one two",
        "LOGGING_API_SERVICE_DESCRIPTOR": 'url: "localhost:1"\n',
        "CONTROL_API_SERVICE_DESCRIPTOR": 'url: "localhost:2"\n',
    }


def test_an_endpoint_for_the_state_of_the_worker_is_passed_on(engine, started):
    servicer, address = engine
    servicer.info.status_endpoint.url = "localhost:3"
    worker.main(["--id=1-1", f"--provision_endpoint={address}"])
    assert started[0]["STATUS_API_SERVICE_DESCRIPTOR"] == 'url: "localhost:3"\n'


def test_an_engine_that_does_not_answer_ends_the_worker(monkeypatch, started):
    monkeypatch.setattr(worker, "_ANSWER_SECONDS", 0.2)
    with pytest.raises(grpc.RpcError):
        worker.main(["--id=1-1", "--provision_endpoint=127.0.0.1:9"])
    assert started == []


def test_a_worker_without_a_name_says_what_is_missing(capsys):
    with pytest.raises(SystemExit) as ended:
        worker.main([])
    assert ended.value.code == 2
    assert "--id, --provision_endpoint" in capsys.readouterr().err
