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

from darkroom.errors import AccessError, TransientStorageError, UsageError
from darkroom.options.checks import check_known
from darkroom.options.targets import VertexOptions
from darkroom.pipelines.submission.runs import PreparedRun, RunStatus

_SCOPE = "https://www.googleapis.com/auth/cloud-platform"
# Arguments of Google's client that have separate options, or that a run decides.
_OURS = (
    *("self", "display_name", "template_path", "pipeline_root", "parameter_values"),
    *("input_artifacts", "enable_caching", "credentials", "project", "location"),
    *("service_account", "experiment"),
)
# An option that it has no argument for.
_ATTACHMENT = "network_attachment"
_LOGIN_HINT = "Run `gcloud auth application-default login`, or set GOOGLE_APPLICATION_CREDENTIALS."


def submit(run: PreparedRun, options: VertexOptions, arguments: Mapping[str, Any]) -> VertexRun:
    """Submits a run, with Google's application default credentials.

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
            _submit_job(job, options, arguments, credentials)
    return VertexRun(job)


def check_arguments(arguments: Mapping[str, Any]) -> None:
    """Checks the names of arguments that are passed on to Google's client.

    Raises:
        UsageError: Neither its jobs nor `submit` takes one of the names.
    """
    job = aiplatform.PipelineJob
    known = {*_list_arguments(job.__init__), *_list_arguments(job.submit), _ATTACHMENT}
    check_known(arguments, sorted(known), "In vertex, Google's client does not take")


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
    if name := arguments.get(_ATTACHMENT):
        # A user may give the last part of the full name.
        place = f"projects/{options.project}/regions/{options.region}/networkAttachments"
        full = name if "/" in name else f"{place}/{name}"
        job._gca_resource.psc_interface_config.network_attachment = full
    return job


def _submit_job(
    job: Any, options: VertexOptions, arguments: Mapping[str, Any], credentials: Any
) -> None:
    given = _pick(arguments, aiplatform.PipelineJob.submit)
    if options.experiment is not None:
        # Of a name, the client makes it as well, but its error would be a RuntimeError, which
        # `explain_errors` does not know.
        given["experiment"] = aiplatform.Experiment.get_or_create(
            experiment_name=options.experiment,
            project=options.project,
            location=options.region,
            credentials=credentials,
        )
    job.submit(service_account=options.service_account, **given)


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
