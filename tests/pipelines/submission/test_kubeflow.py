"""kfp's own client against a server on loopback; needs kfp, but neither TFX nor TensorFlow."""

from __future__ import annotations

import dataclasses
import datetime
import json
import logging
import socket
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("kfp")

from darkroom.errors import AccessError, DarkroomError, TransientStorageError, UsageError
from darkroom.pipelines.submission import runs
from darkroom.pipelines.submission.kubeflow import (
    TOKEN_FILE_VARIABLE,
    TOKEN_VARIABLE,
    KubeflowOptions,
    submit,
)
from darkroom.pipelines.submission.runs import PreparedRun, wait_for_end

from ..kubeflow_server import serve

pytestmark = pytest.mark.tfx

TOKEN = "eyJhbGciOiJub25lIn0.c2VjcmV0LXRva2Vu.c2lnbmF0dXJl"
SPEC: dict[str, Any] = {
    "pipelineInfo": {"name": "darkroom"},
    "schemaVersion": "2.1.0",
    "deploymentSpec": {
        "executors": {"ManifestGen_executor": {"container": {"image": "darkroom:1"}}}
    },
    "components": {
        "ManifestGen": {
            "executorLabel": "ManifestGen_executor",
            "inputDefinitions": {"parameters": {"source": {"parameterType": "STRING"}}},
        }
    },
    "root": {
        "inputDefinitions": {
            "parameters": {
                "data": {"parameterType": "STRING", "defaultValue": "s3://b/images.csv"},
                "epochs": {"parameterType": "NUMBER_INTEGER", "defaultValue": 10},
            }
        },
        "dag": {
            "tasks": {
                "ManifestGen": {
                    "taskInfo": {"name": "ManifestGen"},
                    "componentRef": {"name": "ManifestGen"},
                    "cachingOptions": {"enableCache": True},
                    "inputs": {"parameters": {"source": {"componentInputParameter": "data"}}},
                }
            }
        },
    },
}


def _run(**changes: Any) -> PreparedRun:
    run = PreparedRun([SPEC], "minio://mlpipeline/darkroom", {"epochs": 3})
    return dataclasses.replace(run, **changes)


def test_the_server_gets_the_run_with_all_options(server):
    options = KubeflowOptions(
        host=server.url,
        namespace="ann",
        experiment="Cats",
        run_name="first",
        service_account="trainer",
    )
    submitted = submit(_run(), options)
    assert (submitted.id, submitted.url) == ("run-1", f"{server.url}/#/runs/details/run-1")
    assert server.namespaces == ["ann"]
    assert server.experiments["Cats"] == {
        "display_name": "Cats",
        "namespace": "ann",
        "experiment_id": "experiment-1",
    }
    assert server.runs["run-1"] == {
        "run_id": "run-1",
        "display_name": "first",
        "experiment_id": "experiment-1",
        "pipeline_spec": SPEC,
        "runtime_config": {
            "parameters": {"epochs": 3},
            "pipeline_root": "minio://mlpipeline/darkroom",
        },
        "service_account": "trainer",
    }
    assert [request[:2] for request in server.requests] == [
        ("GET", "/apis/v2beta1/experiments"),
        ("POST", "/apis/v2beta1/experiments"),
        ("POST", "/apis/v2beta1/runs"),
    ]


def test_an_experiment_is_created_once_and_without_a_namespace(server):
    for _ in range(2):
        submit(_run(), KubeflowOptions(host=f"{server.url}/"))
    assert list(server.experiments) == ["Default"]
    assert server.experiments["Default"].get("namespace", "") == ""
    assert {run["experiment_id"] for run in server.runs.values()} == {"experiment-1"}
    names = [run["display_name"] for run in server.runs.values()]
    assert all(name.startswith("darkroom 20") for name in names)


def test_the_token_from_the_environment_is_sent_and_never_stored_or_printed(
    server, monkeypatch, capsys, caplog
):
    caplog.set_level(logging.DEBUG)
    monkeypatch.setenv(TOKEN_VARIABLE, f"{TOKEN}\n")
    server.token = TOKEN
    wait_for_end(submit(_run(), KubeflowOptions(host=server.url)), poll_seconds=0)
    assert {request[2] for request in server.requests} == {f"Bearer {TOKEN}"}
    printed = capsys.readouterr()
    assert TOKEN not in json.dumps([server.runs, server.experiments]) + caplog.text
    assert printed.out + printed.err == ""


def test_a_token_in_a_file_is_read_again_for_each_request(server, monkeypatch, tmp_path):
    path = tmp_path / "token"
    path.write_text("first\n")
    monkeypatch.setenv(TOKEN_FILE_VARIABLE, str(path))
    server.token = "first"
    submitted = submit(_run(), KubeflowOptions(host=server.url))
    path.write_text("second\n")
    server.token = "second"
    assert submitted.read_status().state == "PENDING"


@pytest.mark.parametrize(
    ("failure", "kind", "message", "hint"),
    [
        ((401, '{"message": "who is {authorization}?"}'), AccessError, "401: who is", "token"),
        ((403, '{"error": "not yours"}'), AccessError, "403: not yours", "--namespace"),
        ((404, "<html>nothing here</html>"), UsageError, "404: <html>nothing", "--host"),
        ((400, "[" * 100_000), UsageError, "answers 400: [[[", "rejects"),
        ((400, '{"message": "bad spec"}'), UsageError, "400: bad spec", "rejects"),
        ((500, '{"message": "down {authorization}"}'), TransientStorageError, "500: down", "again"),
        ((200, "<html>Log in, {authorization}</html>"), AccessError, "does not answer", "login"),
        # A page of a proxy in Latin-1.
        ((502, "d\udce9sol\udce9"), TransientStorageError, "its answer is not UTF-8 text", ""),
        ((400, "no\x1b[2J \u202e"), UsageError, "400: no<U+001B>[2J <U+202E>", ""),
    ],
)
def test_an_error_of_the_server_is_reported_without_the_token(
    server, monkeypatch, failure, kind, message, hint
):
    monkeypatch.setenv(TOKEN_VARIABLE, TOKEN)
    server.failure = failure
    with pytest.raises(DarkroomError) as error:
        submit(_run(), KubeflowOptions(host=server.url))
    assert type(error.value) is kind
    assert message in error.value.message
    assert hint in error.value.hint
    assert server.url in error.value.message
    _check_nothing_holds(error.value, TOKEN)


def _check_nothing_holds(error: BaseException, token: str) -> None:
    """Checks all that a traceback shows."""
    assert token not in str(error)
    assert error.__cause__ is None
    assert error.__suppress_context__ or error.__context__ is None


@pytest.mark.parametrize(
    "token", ["geheim\nX-Header: a", "geheim geheim", "geheim\u2019", "geheim\udcff"]
)
@pytest.mark.parametrize("variable", [TOKEN_VARIABLE, TOKEN_FILE_VARIABLE])
def test_a_malformed_token_is_an_error_that_does_not_show_it(
    server, monkeypatch, tmp_path, variable, token
):
    (tmp_path / "token").write_text(token, "utf-8", "surrogateescape")
    is_file = variable == TOKEN_FILE_VARIABLE
    monkeypatch.setenv(variable, str(tmp_path / "token") if is_file else token)
    with pytest.raises(UsageError, match="is not a token") as error:
        submit(_run(), KubeflowOptions(host=server.url))
    assert "geheim" not in str(error.value)
    assert server.requests == []


def test_a_server_that_cannot_be_reached_is_an_error(server):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}"
    with pytest.raises(TransientStorageError, match=r"cannot be reached.*refused") as error:
        submit(_run(), KubeflowOptions(host=url))
    assert " object at 0x" not in str(error.value)


def _make_certificate(path: Path) -> str:
    """Writes a certificate for localhost, signed by itself, and its key."""
    x509 = pytest.importorskip("cryptography.x509")
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    now = datetime.datetime.now(datetime.timezone.utc)
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .sign(key, hashes.SHA256())
    )
    encoding = serialization.Encoding.PEM
    form, secrecy = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    path.write_bytes(
        certificate.public_bytes(encoding) + key.private_bytes(encoding, form, secrecy)
    )
    return str(path)


def test_a_private_certificate_authority_must_be_given(server, tmp_path):
    certificate = _make_certificate(tmp_path / "server.pem")
    with serve(certificate) as secure:
        with pytest.raises(AccessError, match=r"certificate.*--ca-file"):
            submit(_run(), KubeflowOptions(host=secure.url))
        assert secure.requests == []
        assert submit(_run(), KubeflowOptions(host=secure.url, ca_file=certificate)).id == "run-1"


def test_a_run_that_fails_names_its_tasks(server, monkeypatch):
    monkeypatch.setenv(TOKEN_VARIABLE, TOKEN)
    server.states = ["RUNNING", "CANCELING", "CANCELED"]
    server.errors = {"ValidationGate": f"leakage\n {TOKEN}", "Trainer": "x" * 5000}
    submitted = submit(_run(), KubeflowOptions(host=server.url))
    status = wait_for_end(submitted, poll_seconds=0)
    assert status.state == "CANCELED"
    assert status.errors["ValidationGate"] == "leakage [token]"
    assert len(status.errors["Trainer"]) < 600
    assert set(status.errors) == {"ValidationGate", "Trainer"}


def test_waiting_survives_a_server_that_is_away_for_a_while(server, monkeypatch):
    submitted = submit(_run(), KubeflowOptions(host=server.url))
    answers = iter([(503, "")] * 29 + [None] * 3)
    monkeypatch.setattr(runs.time, "sleep", lambda _: setattr(server, "failure", next(answers)))
    assert wait_for_end(submitted).state == "SUCCEEDED"


def test_waiting_ends_when_the_server_stays_away(server, monkeypatch):
    submitted = submit(_run(), KubeflowOptions(host=server.url))
    server.failure = (502, "gone")
    server.requests.clear()
    with pytest.raises(TransientStorageError, match="502: gone"):
        wait_for_end(submitted, poll_seconds=0)
    assert len(server.requests) == 30


def test_waiting_ends_when_the_token_is_rejected(server, monkeypatch):
    monkeypatch.setenv(TOKEN_VARIABLE, TOKEN)
    submitted = submit(_run(), KubeflowOptions(host=server.url))
    server.token = "another"
    with pytest.raises(AccessError, match=r"401: bad Bearer \[token\]"):
        wait_for_end(submitted, poll_seconds=0)


@pytest.mark.parametrize(
    ("host", "message"),
    [
        ("kubeflow.example.com", "expected a URL"),
        ("https://[1", "expected a URL"),
        ("https://kubeflow:99999", "expected a URL"),
        ("https://kubeflow/?a=1", "expected a URL"),
        ("https://ann:geheim@kubeflow", "expected a URL without user and password"),
    ],
)
def test_a_wrong_host_is_an_error(host, message):
    with pytest.raises(UsageError, match=message) as error:
        KubeflowOptions(host=host)
    assert "geheim" not in str(error.value)


def test_a_missing_certificate_file_is_an_error(tmp_path):
    with pytest.raises(UsageError, match=r"ca\.pem is not a file"):
        KubeflowOptions(host="https://kubeflow", ca_file=str(tmp_path / "ca.pem"))


def test_an_unknown_parameter_of_the_pipeline_is_an_error():
    with pytest.raises(UsageError, match=r"epoch is not a run-time.*epoch,data,epochs:"):
        PreparedRun([SPEC], None, {"epoch": 3})


@pytest.mark.parametrize(
    "documents",
    [
        *([], [{"pipelineSpec": 3}]),
        [{**SPEC, "pipelineInfo": {"name": 3}}],
        [{**SPEC, "root": {"dag": {"tasks": {"ManifestGen": None}}}}],
    ],
)
def test_documents_that_are_not_a_pipeline_are_an_error(documents):
    with pytest.raises(UsageError, match="is not a compiled pipeline"):
        PreparedRun(documents)
