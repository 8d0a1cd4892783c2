"""Submits a compiled pipeline to Vertex AI Pipelines, by Google's own client."""

from __future__ import annotations

import contextlib
import logging
import os
import tempfile
from collections.abc import Iterator
from typing import Any

import google.auth
import google.auth.exceptions
from google.api_core import exceptions
from google.cloud import aiplatform

from darkroom.errors import AccessError, TransientStorageError, UsageError
from darkroom.options.targets import VertexOptions
from darkroom.pipelines.submission.prepared_run import PreparedRun
from darkroom.pipelines.submission.submitted_run import RunStatus

_SCOPE = "https://www.googleapis.com/auth/cloud-platform"
_LOGIN_HINT = "Run `gcloud auth application-default login`, or set GOOGLE_APPLICATION_CREDENTIALS."


def submit(run: PreparedRun, options: VertexOptions) -> VertexRun:
    """Submits a run, with Google's application default credentials.

    Raises:
        UsageError: Vertex does not take the run.
        AccessError: There are no credentials, or they do not suffice.
        TransientStorageError: Vertex does not answer.
    """
    with explain_errors():
        credentials, _ = google.auth.default(scopes=[_SCOPE])
        job = build_job(run, options, credentials)
        with _silence():
            job.submit(service_account=options.service_account, network=options.network)
    return VertexRun(job)


def build_job(run: PreparedRun, options: VertexOptions, credentials: Any) -> Any:
    """Returns the `aiplatform.PipelineJob` of a run; asks nobody."""
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
    """A run that Vertex has taken; see `SubmittedRun`."""

    def __init__(self, job: Any) -> None:
        self._job = job
        self.id: str = job.resource_name

    @property
    def url(self) -> str:
        """Page that shows it."""
        _, project, _, region, _, name = self.id.split("/")
        where = f"vertex-ai/locations/{region}/pipelines/runs/{name}"
        return f"https://console.cloud.google.com/{where}?project={project}"

    def read_status(self) -> RunStatus:
        """Asks how it goes; see `SubmittedRun`."""
        with explain_errors():
            state = self._job.state.name.removeprefix("PIPELINE_STATE_")
            details = self._job.gca_resource.job_detail.task_details
        errors = {t.task_name: t.error.message for t in details if t.state.name == "FAILED"}
        return RunStatus(state, errors)


@contextlib.contextmanager
def _silence() -> Iterator[None]:
    """Keeps Google's client, which logs to standard output, from it."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        yield
    finally:
        logging.disable(before)


@contextlib.contextmanager
def explain_errors() -> Iterator[None]:
    """Makes errors of Google's client ours.

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
        raise TransientStorageError(f"Vertex asks for patience: {error.message}") from error
    except (exceptions.Unauthenticated, exceptions.Forbidden) as error:
        hint = "Ask for roles/aiplatform.user, and for iam.serviceAccountUser on --service-account."
        raise AccessError(f"Vertex refuses: {error.message}", hint) from error
    except exceptions.ClientError as error:
        raise UsageError(f"Vertex does not take this run: {error.message}") from error
    except exceptions.GoogleAPICallError as error:
        raise TransientStorageError(
            f"Vertex does not answer: {error.message}", "Try again."
        ) from error
    except ValueError as error:
        raise UsageError(f"Google's client refuses this: {error}") from error
