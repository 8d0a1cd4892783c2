"""The API of Kubeflow Pipelines on loopback, as far as submitting needs it.

Every body must be exactly what the model of `kfp_server_api` holds: unknown fields, wrong types and
values outside of an enumeration are answered 400, as a server written from the same schema would.
"""

from __future__ import annotations

import json
import ssl
import threading
import urllib.parse
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import SimpleNamespace
from typing import Any, TypeVar

import kfp_server_api
from google.protobuf import json_format
from kfp.pipeline_spec import pipeline_spec_pb2

_API = "/apis/v2beta1"
_CLIENT = kfp_server_api.ApiClient()


@dataclass
class Server:
    """What the server is told to do, and what it saw.

    Attributes:
        token: The only one that it takes; None for any or none.
        failure: Status and body with which every request is answered, when set.
        states: States that a run goes through, one at each look; the last one stays.
        errors: Messages of the failed tasks of a run, by task.
        requests: Method, path and `Authorization` of each request.
        experiments: Made, by name.
        runs: Made, by id.
        namespaces: In which experiments were looked for.
    """

    url: str = ""
    token: str | None = None
    failure: tuple[int, str] | None = None
    states: list[str] = field(default_factory=lambda: ["PENDING", "RUNNING", "SUCCEEDED"])
    errors: dict[str, str] = field(default_factory=dict)
    requests: list[tuple[str, str, str | None]] = field(default_factory=list)
    experiments: dict[str, dict[str, Any]] = field(default_factory=dict)
    runs: dict[str, dict[str, Any]] = field(default_factory=dict)
    namespaces: list[str | None] = field(default_factory=list)

    def answer(self, method: str, path: str, query: dict[str, str], body: Any) -> Any:
        """Returns the answer to a request; raises ValueError for one that is wrong."""
        if (method, path) == ("GET", f"{_API}/experiments"):
            return self._list_experiments(query)
        if (method, path) == ("POST", f"{_API}/experiments"):
            return self._create_experiment(parse_model(body, "V2beta1Experiment"))
        if (method, path) == ("POST", f"{_API}/runs"):
            return self._create_run(parse_model(body, "V2beta1Run"))
        if method == "GET" and path.startswith(f"{_API}/runs/"):
            return self._get_run(path.rpartition("/")[2])
        raise LookupError(path)

    def _list_experiments(self, query: dict[str, str]) -> dict[str, Any]:
        assert set(query) <= {"filter", "namespace"}
        self.namespaces.append(query.get("namespace"))
        [predicate] = json.loads(query["filter"])["predicates"]
        assert (predicate["key"], predicate["operation"]) == ("display_name", 1)
        found = self.experiments.get(predicate["stringValue"])
        return {"experiments": [found]} if found else {}

    def _create_experiment(self, experiment: dict[str, Any]) -> dict[str, Any]:
        made = {**experiment, "experiment_id": f"experiment-{len(self.experiments) + 1}"}
        self.experiments[experiment["display_name"]] = made
        return made

    def _create_run(self, run: dict[str, Any]) -> dict[str, Any]:
        documents = run["pipeline_spec"]
        spec = documents.get("pipeline_spec", documents)
        json_format.ParseDict(spec, pipeline_spec_pb2.PipelineSpec())
        platform = documents.get("platform_spec", {})
        json_format.ParseDict(platform, pipeline_spec_pb2.PlatformSpec())
        if spec["schemaVersion"] != "2.1.0":
            raise ValueError("KFP only supports schema version 2.1.0")
        unknown = set(run["runtime_config"].get("parameters", {})) - set(
            spec["root"].get("inputDefinitions", {}).get("parameters", {})
        )
        if unknown or not run["display_name"]:
            raise ValueError(f"the run has no name, or unknown parameters {unknown}")
        known = {each["experiment_id"] for each in self.experiments.values()}
        if run["experiment_id"] not in known:
            raise ValueError("no such experiment")
        made = {**run, "run_id": f"run-{len(self.runs) + 1}"}
        self.runs[made["run_id"]] = made
        return made

    def _get_run(self, run_id: str) -> dict[str, Any]:
        state = self.states.pop(0) if len(self.states) > 1 else self.states[0]
        tasks = [
            {"display_name": task, "state": "FAILED", "error": {"code": 13, "message": message}}
            for task, message in self.errors.items()
        ]
        tasks.append({"display_name": "ManifestGen", "state": "SUCCEEDED"})
        return {**self.runs[run_id], "state": state, "run_details": {"task_details": tasks}}


_Server = TypeVar("_Server", bound=Server)


def parse_model(data: Any, model: str) -> dict[str, Any]:
    """Returns a body that is what a model of kfp_server_api holds; raises ValueError if not."""
    parsed = _CLIENT.deserialize(SimpleNamespace(data=json.dumps(data)), model)
    again = _CLIENT.sanitize_for_serialization(parsed)
    if again != data:
        raise ValueError(f"{model} does not hold {data}")
    return data


@contextmanager
def serve(certificate: str | None = None, kind: type[_Server] = Server) -> Iterator[_Server]:
    """Runs a server on loopback for as long as the block does.

    Args:
        certificate: PEM file of a certificate for `localhost` with its key, for https.
        kind: What answers.
    """
    state = kind()

    class Handler(BaseHTTPRequestHandler):
        def _handle(self) -> None:
            parts = urllib.parse.urlsplit(self.path)
            length = int(self.headers.get("Content-Length", 0))
            body = json.loads(self.rfile.read(length)) if length else None
            authorization = self.headers.get("Authorization")
            state.requests.append((self.command, parts.path, authorization))
            query = dict(urllib.parse.parse_qsl(parts.query))
            self._send(*self._answer(parts.path, query, body, authorization))

        def _answer(self, path: str, query: Any, body: Any, authorization: Any) -> tuple[int, str]:
            if state.failure is not None:
                status, text = state.failure
                return status, text.replace("{authorization}", authorization or "")
            if state.token is not None and authorization != f"Bearer {state.token}":
                return 401, json.dumps({"code": 16, "message": f"bad {authorization}"})
            try:
                return 200, json.dumps(state.answer(self.command, path, query, body))
            except FileExistsError:
                return 409, json.dumps({"code": "Conflict", "message": "already exists"})
            except LookupError:
                return 404, json.dumps({"code": 5, "message": "Not Found"})
            except (ValueError, AssertionError, json_format.ParseError) as error:
                return 400, json.dumps({"code": 3, "message": str(error)})

        def _send(self, status: int, text: str) -> None:
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            data = text.encode(errors="surrogateescape")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        do_GET = do_POST = _handle  # noqa: N815

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    state.url = f"http://127.0.0.1:{server.server_port}"
    if certificate is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate)
        server.socket = context.wrap_socket(server.socket, server_side=True)
        state.url = f"https://localhost:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield state
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
