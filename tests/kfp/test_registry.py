"""The task that registers a model, against registries on loopback."""

import json
import math
import os
import subprocess
import sys

import pytest

from darkroom.errors import UsageError
from darkroom.options.pipeline import check_registry

pytest.importorskip("kfp_server_api", reason="needs the extra [kfp]")
pytest.importorskip("google.auth", reason="needs the extra [gcp]")

import google.auth
from google.auth.credentials import AnonymousCredentials

from darkroom.steps import registry as registering
from darkroom.storage import services
from darkroom.storage.stores import retries

from ..pipelines.kubeflow_server import serve
from .registries import FACTS, VERSION, Registry, write_evaluation
from .tasks import Artifact

# Of JSON and not an object, or an object without what every registry says.
NOT_OBJECTS = [
    "null", "5", "true", "[1]", "NaN", '"id"', '{"id": NaN}', '{"id": null}', '{"id": {}}',
    "\udcff{}", "[" * 100_000 + "]" * 100_000, '{"id":' * 100_000 + "1" + "}" * 100_000,
]  # fmt: skip


@pytest.fixture
def registry(monkeypatch):
    # So large that the next attempt would begin after any deadline.
    monkeypatch.setattr(retries, "FIRST_PAUSE_SECONDS", 1e6)
    monkeypatch.setattr(retries, "MAX_PAUSE_SECONDS", 1e6)
    monkeypatch.setattr(registering, "_POLL_SECONDS", 0.0)
    with serve(kind=Registry) as server:
        yield server


@pytest.fixture
def run(cluster):
    given = {key: Artifact(f"minio://mlpipeline/run-1/{key}") for key in ("model", "page")}
    write_evaluation(cluster.find(given["model"]))
    cluster.find(given["page"]).write_text("page")
    values = {"model_name": "pets", "run": "7"}
    return lambda address: cluster.run("register_model", given, registry=address, **values)


def check_facts(facts):
    assert facts.items() >= {**FACTS, "page": "s3://mlpipeline/run-1/page", "run": "7"}.items()


@pytest.mark.parametrize("interface", ["v1alpha3", "v1"])
def test_a_version_in_kubeflow_names_what_it_was_made_from(registry, run, interface):
    registry.interface = interface
    assert run(registry.url).parameters == {"version": VERSION}
    made = dict(registry.made)
    model, version, artifact = made
    assert (model, version) == (("model", "", "pets"), ("version", "1", VERSION))
    kinds = {"MetadataStringValue": "string_value", "MetadataDoubleValue": "double_value"}
    stored = made[version]["customProperties"].items()
    check_facts({name: each[kinds[each["metadataType"]]] for name, each in stored})
    assert made[artifact]["uri"] == "s3://mlpipeline/run-1/model"
    # A retry finds it, and makes what an ended attempt did not.
    del registry.made[artifact]
    assert run(registry.url + "/").code == 0
    assert registry.made == made
    assert [method for method, _, _ in registry.requests].count("POST") == 4


def test_a_version_in_vertex_names_what_it_was_made_from(registry, run, monkeypatch):
    monkeypatch.setattr(google.auth, "default", lambda **_: (AnonymousCredentials(), None))
    monkeypatch.setattr(registering, "_VERTEX", f"{registry.url}/vertex")
    address = "vertex://shop/europe-west4"
    assert run(address).parameters == run(address).parameters == {"version": VERSION}
    [first] = registry.uploads
    assert first["modelId"] == "pets"
    check_facts(json.loads(first["model"]["versionDescription"]))
    # Another version of a model that is there.
    registry.known = {each for each in registry.known if "@" not in each}
    run(address)
    assert registry.uploads[1]["parentModel"] == "projects/shop/locations/europe-west4/models/pets"


@pytest.mark.parametrize(
    ("failure", "code", "said"),
    [
        ((403, "RBAC: access denied"), "access", "answers 403: RBAC: access denied."),
        ((401, '{"error": {"message": "No."}}'), "access", "answers 401: No."),
        ((422, '{"message": "too odd"}'), "usage", "answers 422: too odd."),
        ((200, "<html>Log in</html>"), "usage", "answers 200: <html>Log in</html>."),
        ((200, '{"items": []}'), "usage", "is not a model registry."),
        ((404, "page not found"), "usage", "There is no model registry at http://"),
        ((302, "moved"), "usage", "answers 302: moved."),
        ((400, "[" * 100_000), "usage", "answers 400: [[["),
        *(((200, text), "usage", "not a model registry.") for text in NOT_OBJECTS),
    ],
)
def test_an_error_is_one_sentence(registry, run, failure, code, said):
    registry.failure = failure
    found = run(registry.url).error
    assert (found["code"], said in found["message"]) == (code, True), found


@pytest.mark.parametrize(
    ("started", "said"),
    [
        ({"name": 5}, "What answers at http://127.0.0.1:"),
        ({"done": True, "error": "full"}, "Vertex does not take the model: full"),
        ({"done": True, "error": {"message": ["full"]}}, 'the model: {"done": true, "error": {"me'),
        ({"name": "operations/../1 ?\n"}, 'the model: {"name": "operations/../1 ?\\n"}'),
    ],
)
def test_an_odd_answer_of_vertex_is_one_sentence(run, monkeypatch, started, said):
    class Odd(Registry):
        def _answer_as_vertex(self, path, body):
            if body is None and "operations/" not in path:
                raise LookupError
            return started

    monkeypatch.setattr(google.auth, "default", lambda **_: (AnonymousCredentials(), None))
    monkeypatch.setattr(registering, "_POLL_SECONDS", 0.0)
    monkeypatch.setattr(registering, "_MAX_POLLS", 3)
    with serve(kind=Odd) as odd:
        monkeypatch.setattr(registering, "_VERTEX", f"{odd.url}/vertex")
        found = run("vertex://shop/europe-west4").error
    assert (found["code"], said in found["message"]) == ("usage", True), found


def test_a_token_is_sent_and_is_not_shown(registry, run, monkeypatch, tmp_path):
    registry.token = "geheim"
    (tmp_path / "token").write_text("geheim\n")
    monkeypatch.setenv("KF_PIPELINES_SA_TOKEN_PATH", str(tmp_path / "token"))
    assert run(registry.url).code == 0
    registry.failure = 403, "{authorization} may not"
    assert "answers 403: Bearer [token] may not." in run(registry.url).error["message"]
    (tmp_path / "token").write_bytes(b"geh\xffeim")
    found = run(registry.url)
    assert (found.error["code"], "geh" in "".join(found.printed)) == ("usage", False)
    assert found.error["message"].endswith("/token is not a token.")


def test_a_registry_that_is_down_does_not_fail_the_task(registry, run, monkeypatch):
    registry.failure = 503, "busy"
    attempts, ask = [], services.ask

    def ask_with_limits(*arguments):
        attempts.append(retries._own.get().attempts)
        return ask(*arguments)

    monkeypatch.setattr(services, "ask", ask_with_limits)
    done = run(registry.url)
    # Until the deadline.
    assert attempts == [math.inf]
    assert (done.code, done.parameters) == (0, {"version": ""})
    [told, command] = done.printed
    assert told.startswith(f"WARNING: the model is not registered. The request to {registry.url}/")
    assert "failed once in" in told
    assert "HTTP status 503. This is the model registry or the way to it, not the model." in told
    assert "store" not in told
    place = "s3://mlpipeline/run-1"
    given = f'"pets", "{place}/model", uri="{place}/model", page="{place}/page", run="7"'
    assert f'print(register_version("{registry.url}", {given}))' in command


def test_the_command_that_is_said_registers_later(registry, tmp_path, caplog):
    folder = tmp_path / 'it\'s a "model" \u00e9\U0001f600'
    write_evaluation(folder)
    given = {"uri": "s3://b/m", "page": "s3://b/$HOME", "run": "7"}
    registry.failure = 500, ""
    assert registering.register_version(registry.url, "pets", str(folder), **given) == ""
    registry.failure = None
    # Its `python` is this one, as in the image.
    path = f"{os.path.dirname(sys.executable)}:{os.environ['PATH']}"
    done = subprocess.run(
        caplog.messages[-1],
        shell=True,
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stdout) == (0, f"{VERSION}\n"), done.stderr
    made = {kind: each for (kind, _, _), each in registry.made.items()}
    assert made["artifact"]["uri"] == "s3://b/m"
    assert made["version"]["customProperties"]["page"]["string_value"] == "s3://b/$HOME"


@pytest.mark.parametrize(
    "address",
    [
        "", "registry:8080", "vertex://shop", "s3://registry", "http://registry?a", "http://a..b",
        "http://ann:geheim@registry", "vertex://shop/geheim@evil", "vertex://shop/geheim#",
    ],
)  # fmt: skip
def test_a_wrong_address_is_refused_before_anything_runs(address):
    with pytest.raises(UsageError, match="expected the address of a model registry"):
        check_registry(address)
