"""Google's own client, offline: what it would send, and what it makes of answers."""

from __future__ import annotations

import dataclasses
import json
import logging
import sys
from typing import Any

import google.auth.exceptions
import pytest
from google.api_core import exceptions
from google.auth.credentials import AnonymousCredentials
from google.cloud import aiplatform
from google.cloud.aiplatform.utils import PipelineJobClientWithOverride, gcs_utils
from google.cloud.aiplatform_v1 import PipelineJob, PipelineTaskDetail
from google.protobuf import json_format

from darkroom.cli import main
from darkroom.components import file_state
from darkroom.errors import AccessError, DarkroomError, TransientStorageError, UsageError
from darkroom.options.targets import VertexOptions
from darkroom.pipelines.config import make_config
from darkroom.pipelines.submission import runs
from darkroom.pipelines.submission.runs import PreparedRun, read_documents, wait_for_end
from darkroom.pipelines.submission.vertex import build_job, check_arguments, submit

from ..compiled import format_pipeline

pytestmark = pytest.mark.tfx

ROOT = "gs://bucket/darkroom"
OPTIONS = VertexOptions(
    project="shop",
    region="europe-west4",
    run_name="first",
    service_account="trainer@shop.iam.gserviceaccount.com",
)
ARGUMENTS = {"network": "projects/1/global/networks/private", "labels": {"team": "cats"}}
NAME = "projects/1/locations/europe-west4/pipelineJobs/darkroom-1"


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("vertex") / "pipeline.json"
    values = {"data": "gs://bucket/images.csv", "root": ROOT, "image": "registry/darkroom:1"}
    path.write_text(format_pipeline(make_config(values), "vertex"))
    return str(path)


@pytest.fixture
def run(compiled: str) -> PreparedRun:
    return PreparedRun(read_documents(compiled), ROOT, {"epochs": 3, "learning_rate": 0.5})


class Service:
    """Takes the place of Google's service behind Google's client.

    Attributes:
        requests: Arguments of each request to make a job, the job as the dict of its JSON.
        states: States of the job, one at each look.
        errors: Messages of failed tasks by name.
        failure: Raised by every request, when set.
    """

    def __init__(self) -> None:
        self.requests: list[dict[str, Any]] = []
        self.states = ["RUNNING", "SUCCEEDED"]
        self.errors: dict[str, str] = {}
        self.failure: Exception | None = None

    def create(self, **request: Any) -> PipelineJob:
        if self.failure is not None:
            raise self.failure
        request["pipeline_job"] = json_format.MessageToDict(request["pipeline_job"]._pb)
        self.requests.append(request)
        return PipelineJob(name=NAME)

    def get(self, name: str, **_: Any) -> PipelineJob:
        assert name == NAME
        if self.failure is not None:
            raise self.failure
        job = PipelineJob(name=name, state=f"PIPELINE_STATE_{self.states.pop(0)}")
        for task, message in self.errors.items():
            detail = PipelineTaskDetail(task_name=task, state="FAILED")
            detail.error.message = message
            job.job_detail.task_details.append(detail)
        return job


@pytest.fixture
def service(monkeypatch: pytest.MonkeyPatch) -> Service:
    fake = Service()
    monkeypatch.setattr("google.auth.default", lambda *_, **__: (AnonymousCredentials(), None))
    monkeypatch.setattr(
        gcs_utils,
        "create_gcs_bucket_for_pipeline_artifacts_if_it_does_not_exist",
        lambda **_: None,
    )
    client = PipelineJobClientWithOverride
    monkeypatch.setattr(client, "create_pipeline_job", fake.create, raising=False)
    monkeypatch.setattr(client, "get_pipeline_job", fake.get, raising=False)
    monkeypatch.setattr(runs.time, "sleep", lambda _: None)
    return fake


def test_a_job_can_be_made_from_a_kubeflow_file(compiled):
    run = PreparedRun([read_documents(compiled)[0]["pipelineSpec"]], ROOT)
    job = build_job(run, OPTIONS, ARGUMENTS, AnonymousCredentials())
    assert job._gca_resource.runtime_config.gcs_output_directory == ROOT


def test_the_service_gets_the_job_with_all_options(run, service):
    submitted = submit(run, OPTIONS, ARGUMENTS)
    [request] = service.requests
    assert request["parent"] == "projects/shop/locations/europe-west4"
    assert request["pipeline_job_id"].startswith("darkroom-20")
    job = request["pipeline_job"]
    assert job["serviceAccount"] == OPTIONS.service_account
    assert job["network"] == ARGUMENTS["network"]
    assert job["runtimeConfig"]["parameterValues"] == {"epochs": 3.0, "learning_rate": 0.5}
    assert submitted.id == NAME
    assert submitted.url == (
        "https://console.cloud.google.com/vertex-ai/locations/europe-west4/pipelines/runs/"
        "darkroom-1?project=1"
    )
    assert wait_for_end(submitted).state == "SUCCEEDED"


KEY = "projects/shop/locations/europe-west4/keyRings/ring/cryptoKeys/key"


def test_the_service_gets_what_a_closed_network_and_keys_of_ones_own_need(run, service):
    more = {"encryption_spec_key_name": KEY, "failure_policy": "fast"}
    submit(run, OPTIONS, {**ARGUMENTS, **more, "reserved_ip_ranges": ["tasks"]})
    submit(run, OPTIONS, {"network_attachment": "inside"})
    first, second = [request["pipeline_job"] for request in service.requests]
    assert first["encryptionSpec"] == {"kmsKeyName": KEY}
    assert first["runtimeConfig"]["failurePolicy"] == "PIPELINE_FAILURE_POLICY_FAIL_FAST"
    assert first["reservedIpRanges"] == ["tasks"]
    assert "pscInterfaceConfig" not in first
    assert second["pscInterfaceConfig"] == {
        "networkAttachment": "projects/shop/regions/europe-west4/networkAttachments/inside"
    }
    assert "network" not in second


def test_a_run_is_put_into_its_experiment(run, service, monkeypatch):
    made, joined = [], []

    def make(**arguments: Any) -> Any:
        made.append({name: arguments[name] for name in ("experiment_name", "project", "location")})
        return arguments["experiment_name"]

    monkeypatch.setattr("google.cloud.aiplatform.Experiment.get_or_create", make)
    monkeypatch.setattr(aiplatform.PipelineJob, "_validate_experiment", lambda *_: None)
    monkeypatch.setattr(
        aiplatform.PipelineJob, "_associate_to_experiment", lambda _, name: joined.append(name)
    )
    submit(run, dataclasses.replace(OPTIONS, experiment="cats"), ARGUMENTS)
    assert made == [{"experiment_name": "cats", "project": "shop", "location": "europe-west4"}]
    assert joined == ["cats"]


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("netwrk", r"Did you mean network\?"),
        ("tpu", "encryption_spec_key_name, .*labels, .*network_attachment"),
        ("persistent_resource", "Give the compiled file to the beta API of Vertex"),
    ],
)
def test_a_name_that_is_not_one_of_googles_client_is_an_error(name, hint):
    with pytest.raises(UsageError, match=f"Google's client does not take {name!r}.*{hint}"):
        check_arguments({name: "x"})


def test_a_value_that_googles_client_rejects_is_an_error(run, service):
    arguments = {"failure_policy": "now"}
    with pytest.raises(UsageError, match="Google's client rejects this"):
        submit(run, OPTIONS, arguments)


@pytest.mark.parametrize("is_compiled", [True, False])
def test_the_table_of_a_file_reaches_the_service(compiled, service, tmp_path, is_compiled):
    path = tmp_path / "run.toml"
    values = {"data": "gs://bucket/images.csv", "root": ROOT, "image": "registry/darkroom:1"}
    lines = [] if is_compiled else [f'{name} = "{value}"' for name, value in values.items()]
    path.write_text("\n".join([*lines, "[vertex]", 'labels = { team = "dogs" }']))
    arguments = ["submit", "--target=vertex", "--project=shop", "--region=europe-west4"]
    arguments += [f"--config={path}", *[f"--pipeline={compiled}"] * is_compiled]
    assert main(arguments) == 0
    assert service.requests[0]["pipeline_job"]["labels"]["team"] == "dogs"
    path.write_text('[vertex]\nnetwrk = "x"')
    assert main([*arguments, f"--pipeline={compiled}"]) == 2
    kubeflow = ["submit", "--target=kubeflow", "--host=http://x", f"--config={path}"]
    assert main([*kubeflow, f"--pipeline={compiled}"]) == 2
    assert len(service.requests) == 1


def test_a_job_that_fails_names_its_tasks(run, service):
    state = "CANCELLED"
    service.states, service.errors = ["PENDING", "CANCELLING", state], {"Trainer": "no memory"}
    status = wait_for_end(submit(run, OPTIONS, ARGUMENTS))
    assert (status.state, status.errors) == (state, {"Trainer": "no memory"})


@pytest.mark.parametrize(
    ("failure", "kind", "message"),
    [
        (exceptions.Forbidden("no right"), AccessError, "Vertex denies access: no right"),
        (exceptions.NotFound("no project"), UsageError, "rejects this run: no project"),
        (exceptions.ResourceExhausted("quota"), TransientStorageError, "too many requests: quota"),
        (exceptions.ServiceUnavailable("away"), TransientStorageError, "answer: away"),
        (google.auth.exceptions.RefreshError("old"), AccessError, "no credentials"),
        (google.auth.exceptions.TransportError("dns"), TransientStorageError, "reached: dns"),
    ],
)
def test_an_error_of_the_service_becomes_ours(run, service, failure, kind, message):
    service.failure = failure
    with pytest.raises(DarkroomError) as error:
        submit(run, OPTIONS, ARGUMENTS)
    assert type(error.value) is kind
    assert message in error.value.message


def test_a_machine_without_credentials_is_an_error(run, monkeypatch):
    def fail(*_: Any, **__: Any) -> None:
        raise google.auth.exceptions.DefaultCredentialsError("none found")

    monkeypatch.setattr("google.auth.default", fail)
    with pytest.raises(AccessError, match=r"none found.*gcloud auth application-default login"):
        submit(run, OPTIONS, ARGUMENTS)


def test_the_state_of_the_source_is_sent_for_the_cache(compiled, service, monkeypatch, capsys):
    monkeypatch.setattr(file_state, "read_source_state", lambda *_: "first")
    arguments = ["submit", "--target=vertex", "--project=shop", "--region=europe-west4"]
    assert main([*arguments, f"--pipeline={compiled}"]) == 0
    [request] = service.requests
    tasks = request["pipeline_job"]["pipelineSpec"]["root"]["dag"]["tasks"]
    state = tasks["ManifestGen"]["inputs"]["parameters"]["source_fingerprint"]
    assert state["runtimeValue"]["constant"] == "first"
    assert "pipelines/runs/darkroom-1?project=1" in capsys.readouterr().out


def test_standard_output_is_one_json_object(compiled, service, capfd, monkeypatch):
    # The client's handler has kept the stream that it found when it was imported.
    for logger in ("google.cloud.aiplatform.pipeline_jobs", "google.cloud.aiplatform.base"):
        monkeypatch.setattr(
            logging.getLogger(logger), "handlers", [logging.StreamHandler(sys.stdout)]
        )
    arguments = ["submit", "--target=vertex", "--project=shop", "--region=europe-west4"]
    assert (
        main([*arguments, f"--pipeline={compiled}", "--set=cache=false", "--wait", "--json"]) == 0
    )
    told = json.loads(capfd.readouterr().out)
    assert (told["id"], told["state"]) == (NAME, "SUCCEEDED")
    assert told["notes"] == ["All tasks run again."]


def test_a_missing_region_is_an_error(compiled, capsys):
    command = ["submit", "--target=vertex", "--project=shop", f"--pipeline={compiled}"]
    assert main(command) == 2
    assert "--target vertex needs --region" in capsys.readouterr().err


def test_a_client_that_is_not_installed_is_a_missing_extra(compiled, monkeypatch, capsys):
    monkeypatch.delitem(sys.modules, "darkroom.pipelines.submission.vertex")
    monkeypatch.delattr("darkroom.pipelines.submission.vertex")
    monkeypatch.setitem(sys.modules, "google.cloud.aiplatform", None)
    arguments = ["submit", "--target=vertex", "--project=shop", "--region=europe-west4"]
    assert main([*arguments, f"--pipeline={compiled}"]) == 3
    assert "submit --target vertex needs the extra 'tfx'" in capsys.readouterr().err
