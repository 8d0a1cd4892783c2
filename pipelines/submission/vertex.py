"""Submits a run to Vertex AI Pipelines with Google's own client."""

from __future__ import annotations

import contextlib
import inspect
import logging
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import google.auth
import google.auth.exceptions
import google.cloud.aiplatform as aiplatform
from google.api_core import exceptions
from google.cloud import aiplatform_v1beta1

from darkroom.errors import AccessError, TransientStorageError, UsageError
from darkroom.options.targets import VertexOptions
from darkroom.pipelines.submission.runs import PreparedRun, RunStatus, Schedule

_SCOPE = "https://www.googleapis.com/auth/cloud-platform"
# Arguments of Google's client that have separate options, or that a run decides.
_OURS = (
    *("self", "display_name", "template_path", "pipeline_root", "parameter_values"),
    *("input_artifacts", "enable_caching", "credentials", "project", "location"),
    *("service_account", "experiment", "cron"),
)
# Options that it has no argument for.
_ATTACHMENT, _RESOURCE = "network_attachment", "persistent_resource"
_LOGIN_HINT = "Run `gcloud auth application-default login`, or set GOOGLE_APPLICATION_CREDENTIALS."


def submit(
    run: PreparedRun, options: VertexOptions, arguments: Mapping[str, Any]
) -> VertexRun | Schedule:
    """Submits a run or a schedule of runs, with Google's application default credentials.

    Args:
        run: The run.
        options: The options of the run.
        arguments: Further arguments of Google's client; see `check_arguments`.

    Raises:
        UsageError: Vertex rejects the run.
        AccessError: There are no credentials, or they do not allow it.
        TransientStorageError: Vertex does not answer.
    """
    with explain_errors():
        credentials, _ = google.auth.default(scopes=[_SCOPE])
        job = build_job(run, options, arguments, credentials)
        with _silence():
            if options.cron is not None:
                return _create_schedule(job, options, arguments)
            _submit_job(job, options, arguments, credentials)
    return VertexRun(job)


def check_arguments(arguments: Mapping[str, Any], options: VertexOptions) -> None:
    """Checks the names of arguments that are passed on to Google's client.

    Raises:
        UsageError: Neither its jobs nor `submit` takes one of the names.
    """
    known = [*_list_arguments(aiplatform.PipelineJob.__init__), _ATTACHMENT]
    known += _list_arguments(_find_start(options))
    known += [] if options.cron else [_RESOURCE]
    if unknown := sorted(set(arguments) - set(known)):
        how = " for a schedule" if options.cron else ""
        raise UsageError(
            f"vertex has {unknown[0]!r}, which Google's client does not take{how}.",
            f"It takes {', '.join(sorted(set(known)))}.",
        )


def _find_start(options: VertexOptions) -> Callable[..., Any]:
    start: Callable[..., Any] = aiplatform.PipelineJob.submit
    if options.cron:
        start = aiplatform.PipelineJobSchedule.create
    return start


def _list_arguments(function: Callable[..., Any]) -> list[str]:
    return [name for name in inspect.signature(function).parameters if name not in _OURS]


def _pick(arguments: Mapping[str, Any], function: Callable[..., Any]) -> dict[str, Any]:
    return {name: arguments[name] for name in _list_arguments(function) if name in arguments}


def build_job(
    run: PreparedRun, options: VertexOptions, arguments: Mapping[str, Any], credentials: Any
) -> Any:
    """Returns the `aiplatform.PipelineJob` of a run; sends no request."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "pipeline.yaml")
        run.write(path)
        job = aiplatform.PipelineJob(
            display_name=options.run_name or run.name,
            template_path=path,
            pipeline_root=run.root,
            parameter_values=dict(run.parameters),
            credentials=credentials,
            project=options.project,
            location=options.region,
            **_pick(arguments, aiplatform.PipelineJob.__init__),
        )
    if _ATTACHMENT in arguments:
        job._gca_resource.psc_interface_config.network_attachment = _complete(
            arguments[_ATTACHMENT], options, "regions", "networkAttachments"
        )
    return job


def _complete(name: str, options: VertexOptions, level: str, kind: str) -> str:
    """Returns the full name of a resource, which a user may give by its last part."""
    if "/" in name:
        return name
    return f"projects/{options.project}/{level}/{options.region}/{kind}/{name}"


def _submit_job(
    job: Any, options: VertexOptions, arguments: Mapping[str, Any], credentials: Any
) -> None:
    given = _pick(arguments, _find_start(options))
    if options.experiment is not None:
        given["experiment"] = aiplatform.Experiment.get_or_create(
            experiment_name=options.experiment,
            project=options.project,
            location=options.region,
            credentials=credentials,
        )
    if _RESOURCE in arguments:
        name = _complete(arguments[_RESOURCE], options, "locations", "persistentResources")
        job.api_client = _BetaClient(job.api_client, name)
    job.submit(service_account=options.service_account, **given)


class _BetaClient:
    """Makes jobs by the beta API of Vertex, which alone knows persistent resources."""

    def __init__(self, client: Any, resource: str) -> None:
        self._client = client
        self._resource = resource

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)

    def create_pipeline_job(self, *, pipeline_job: Any, **arguments: Any) -> Any:
        """Makes a job that runs on the persistent resource; returns it as the v1 API has it."""
        beta = aiplatform_v1beta1.PipelineJob.deserialize(
            type(pipeline_job).serialize(pipeline_job)
        )
        runtime = beta.runtime_config.default_runtime.persistent_resource_runtime_detail
        runtime.persistent_resource_name = self._resource
        client = self._client.select_version("v1beta1")
        made = client.create_pipeline_job(pipeline_job=beta, **arguments)
        return self._client.get_pipeline_job(name=made.name)


def _create_schedule(job: Any, options: VertexOptions, arguments: Mapping[str, Any]) -> Schedule:
    name = job._gca_resource.display_name
    schedule = aiplatform.PipelineJobSchedule(job, display_name=name)
    # Google's client copies neither.
    made = schedule._gca_resource.create_pipeline_job_request.pipeline_job
    made.display_name = name
    made.psc_interface_config = job._gca_resource.psc_interface_config
    schedule.create(
        cron=options.cron,
        service_account=options.service_account,
        **_pick(arguments, _find_start(options)),
    )
    _, project, _, region, _, number = schedule.resource_name.split("/")
    where = f"vertex-ai/pipelines/locations/{region}/schedules/{number}"
    return Schedule(
        schedule.resource_name, f"https://console.cloud.google.com/{where}?project={project}"
    )


class VertexRun:
    """A run that Vertex accepted; see `SubmittedRun`."""

    def __init__(self, job: Any) -> None:
        self._job = job
        self.id: str = job.resource_name

    @property
    def url(self) -> str:
        """Page that shows the run."""
        _, project, _, region, _, name = self.id.split("/")
        where = f"vertex-ai/locations/{region}/pipelines/runs/{name}"
        return f"https://console.cloud.google.com/{where}?project={project}"

    def read_status(self) -> RunStatus:
        """Asks for the state of the run; see `SubmittedRun`."""
        with explain_errors():
            state = self._job.state.name.removeprefix("PIPELINE_STATE_")
            details = self._job.gca_resource.job_detail.task_details
        errors = {t.task_name: t.error.message for t in details if t.state.name == "FAILED"}
        return RunStatus(state, errors)


@contextlib.contextmanager
def _silence() -> Iterator[None]:
    """Stops Google's client from logging, because it logs to standard output."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        yield
    finally:
        logging.disable(before)


@contextlib.contextmanager
def explain_errors() -> Iterator[None]:
    """Turns errors of Google's client into ours.

    Raises:
        DarkroomError: A call failed.
    """
    try:
        yield
    except google.auth.exceptions.TransportError as error:
        raise TransientStorageError(f"Google Cloud cannot be reached: {error}") from error
    except google.auth.exceptions.GoogleAuthError as error:
        raise AccessError(
            f"There are no credentials for Google Cloud: {error}", _LOGIN_HINT
        ) from error
    except exceptions.TooManyRequests as error:
        raise TransientStorageError(f"Vertex has too many requests: {error.message}") from error
    except (exceptions.Unauthenticated, exceptions.Forbidden) as error:
        hint = "Ask for roles/aiplatform.user, and for iam.serviceAccountUser on --service-account."
        raise AccessError(f"Vertex denies access: {error.message}", hint) from error
    except exceptions.ClientError as error:
        raise UsageError(f"Vertex rejects this run: {error.message}") from error
    except exceptions.GoogleAPICallError as error:
        raise TransientStorageError(
            f"Vertex does not answer: {error.message}", "Try again."
        ) from error
    except (TypeError, ValueError) as error:
        raise UsageError(f"Google's client rejects this: {error}") from error
