"""Submits a run to Vertex AI Pipelines with Google's own client."""

from __future__ import annotations

import contextlib
import logging
import os
import tempfile
from collections.abc import Iterator
from typing import Any

import google.auth
import google.auth.exceptions
import google.cloud.aiplatform as aiplatform
from google.api_core import exceptions

from darkroom.errors import AccessError, TransientStorageError, UsageError
from darkroom.options.targets import VertexOptions
from darkroom.pipelines.submission.prepared_run import PreparedRun
from darkroom.pipelines.submission.submitted_run import RunStatus

_SCOPE = "https://www.googleapis.com/auth/cloud-platform"
_LOGIN_HINT = "Run `gcloud auth application-default login`, or set GOOGLE_APPLICATION_CREDENTIALS."


def submit(run: PreparedRun, options: VertexOptions) -> VertexRun:
    """Submits a run, with Google's application default credentials.

    Raises:
        UsageError: Vertex rejects the run.
        AccessError: There are no credentials, or they do not allow it.
        TransientStorageError: Vertex does not answer.
    """
    with explain_errors():
        credentials, _ = google.auth.default(scopes=[_SCOPE])
        job = build_job(run, options, credentials)
        with _silence():
            job.submit(service_account=options.service_account, network=options.network)
    return VertexRun(job)


def build_job(run: PreparedRun, options: VertexOptions, credentials: Any) -> Any:
    """Returns the `aiplatform.PipelineJob` of a run; sends no request."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "pipeline.yaml")
        run.write(path)
        return aiplatform.PipelineJob(
            display_name=options.run_name or run.name,
            template_path=path,
            pipeline_root=run.root,
            parameter_values=dict(run.parameters),
            labels=dict(options.labels) or None,
            credentials=credentials,
            project=options.project,
            location=options.region,
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
    except ValueError as error:
        raise UsageError(f"Google's client rejects this: {error}") from error
