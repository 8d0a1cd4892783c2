"""Submits a run to Kubeflow Pipelines with kfp's own client."""

from __future__ import annotations

import contextlib
import io
import os
import re
import tempfile
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any

import kfp.client
import kfp_server_api
import urllib3

from darkroom.errors import (
    AccessError,
    DarkroomError,
    StorageError,
    TransientStorageError,
    UsageError,
)
from darkroom.options.fields import document
from darkroom.options.targets import KubeflowFields
from darkroom.pipelines.submission.runs import PreparedRun, RunStatus
from darkroom.runtime.text import make_visible
from darkroom.storage import services
from darkroom.storage.uris import find_host

# Environment variables: the token itself, and kfp's own for a token file that Kubernetes renews.
TOKEN_VARIABLE = "KF_PIPELINES_TOKEN"
TOKEN_FILE_VARIABLE = "KF_PIPELINES_SA_TOKEN_PATH"

_MAX_MESSAGE = 500
# For the connection, and for the next bytes of an answer: a large pipeline keeps a backend busy.
_TIMEOUT_SECONDS = (20.0, 60.0)
# The start of urllib3's messages.
_OBJECT = re.compile(r"<\S+ object at 0x[0-9a-f]+>: ")
_EXPERIMENT = "Default"
# kfp's client treats Kubeflow's own namespace as none given.
_NO_NAMESPACE = "kubeflow"


@document
@dataclass(frozen=True, kw_only=True)
class KubeflowOptions(KubeflowFields):
    """The options of a run on Kubeflow Pipelines; checked when created."""

    def __post_init__(self) -> None:
        """Checks the URL.

        Raises:
            UsageError: It is not a URL, or contains a user, a password or a query.
        """
        if not find_host(self.host) or "?" in self.host:
            raise UsageError(
                f"--host is {self.host!r}, expected a URL without user and password.",
                "Give the URL of Kubeflow Pipelines, as in https://kubeflow.example.com/pipeline, "
                f"and a token in {TOKEN_VARIABLE}.",
            )
        if self.ca_file is not None and not os.path.isfile(self.ca_file):
            raise UsageError(f"--ca-file {self.ca_file} is not a file.", "Give a PEM file.")


def submit(run: PreparedRun, options: KubeflowOptions) -> KubeflowRun:
    """Submits a run, with its pipeline spec, to the experiment.

    The token comes from the environment; see `TOKEN_VARIABLE` and `TOKEN_FILE_VARIABLE`.

    Raises:
        UsageError: The server rejects the run, or is not Kubeflow Pipelines.
        AccessError: The token is missing, wrong, or not allowed to submit runs.
        TransientStorageError: The server does not answer.
    """
    connection = _Connection(options)
    name = options.run_name or f"{run.name} {datetime.now(timezone.utc):%Y-%m-%d %H:%M:%S}"
    with connection.talk() as client, tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "pipeline.yaml")
        run.write(path)
        experiment = client.create_experiment(
            options.experiment or _EXPERIMENT, namespace=options.namespace
        )
        if not experiment.experiment_id:
            raise AccessError(
                f"{connection.host} does not answer like Kubeflow Pipelines.",
                f"It may be a login page: put a token into {TOKEN_VARIABLE}.",
            )
        created = client.run_pipeline(
            experiment_id=experiment.experiment_id,
            job_name=name,
            pipeline_package_path=path,
            params=dict(run.parameters),
            # Only Kubeflow's pages read the root in the file; its API server and driver do not.
            pipeline_root=run.root or run.spec.get("defaultPipelineRoot"),
            service_account=options.service_account,
        )
    return KubeflowRun(connection, created.run_id)


class KubeflowRun:
    """A run that Kubeflow Pipelines accepted; see `SubmittedRun`."""

    def __init__(self, connection: _Connection, run_id: str) -> None:
        self.id = run_id
        self._connection = connection

    @property
    def url(self) -> str:
        """Page that shows the run."""
        return f"{self._connection.host}/#/runs/details/{self.id}"

    def read_status(self) -> RunStatus:
        """Asks for the state of the run; see `SubmittedRun`."""
        with self._connection.talk() as client:
            found = client.get_run(self.id)
        details = found.run_details.task_details if found.run_details else None
        errors = {
            task.display_name: self._connection.clean(getattr(task.error, "message", "") or "")
            for task in details or ()
            if task.state == "FAILED"
        }
        return RunStatus(found.state or "PENDING", errors)


class _Client(kfp.client.Client):
    """A client without kfp's health check, which asks the server five times first."""

    def get_kfp_healthz(self, sleep_duration: int = 5) -> Any:
        return kfp_server_api.V2beta1GetHealthzResponse(multi_user=False)


def _limit_time(api: kfp_server_api.ApiClient) -> None:
    """Adds a time limit to each request, for a server that never answers."""
    request = api.request

    def request_in_time(*arguments: Any, **options: Any) -> Any:
        return request(*arguments, **{**options, "_request_timeout": _TIMEOUT_SECONDS})

    api.request = request_in_time


class _Connection:
    """A client that raises our errors."""

    def __init__(self, options: KubeflowOptions) -> None:
        self.host = options.host.partition("#")[0].rstrip("/")
        # The HTTP client would reject what is not a token, too, and show it in its message.
        token = services.check_token(os.environ.get(TOKEN_VARIABLE, "").strip(), TOKEN_VARIABLE)
        path = "" if token else os.environ.get(TOKEN_FILE_VARIABLE, "")
        services.read_token(path)
        credentials = kfp.client.ServiceAccountTokenVolumeCredentials(path) if path else None
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self._client = _Client(
                self.host,
                namespace=options.namespace or _NO_NAMESPACE,
                existing_token=token or None,
                credentials=credentials,
                ssl_ca_cert=options.ca_file,
            )
        _limit_time(self._client._run_api.api_client)
        self._configuration = self._client._run_api.api_client.configuration

    @contextlib.contextmanager
    def talk(self) -> Iterator[kfp.client.Client]:
        """Gives the client for calls, and turns their errors into ours.

        Raises:
            DarkroomError: A call failed.
        """
        try:
            with contextlib.redirect_stdout(io.StringIO()):  # the client prints links
                yield self._client
        except kfp_server_api.ApiException as error:
            # Not as its cause: a traceback could show the token.
            raise self._explain(error) from None
        except urllib3.exceptions.HTTPError as error:
            raise self._explain_silence(str(getattr(error, "reason", error))) from None
        except UnicodeError:
            raise self._explain_silence("its answer is not UTF-8 text") from None
        except ValueError as error:
            raise UsageError(self.clean(f"kfp's client rejects this: {error}.")) from None

    def clean(self, text: str) -> str:
        """Returns a server's message: short, safe to show, and without the token."""
        # That of the last request: kfp reads a file again for each.
        if token := self._configuration.api_key.get("authorization"):
            text = text.replace(token, "[token]")
        return make_visible(" ".join(_OBJECT.sub("", text).split()), _MAX_MESSAGE)

    def _explain(self, error: kfp_server_api.ApiException) -> DarkroomError:
        """Returns our error for an answer of the server; without a status there was no answer."""
        said = self.clean(services.find_message(error.body or str(error.reason or "")))
        if not error.status:
            return self._explain_silence(said)
        message = f"Kubeflow Pipelines at {self.host} answers {error.status}: {said}"
        kind, hint = _MEANINGS.get(error.status, (UsageError, "The server rejects this run."))
        return (
            TransientStorageError(message, "Try again.")
            if error.status >= 500
            else kind(message, hint)
        )

    def _explain_silence(self, reason: str) -> StorageError:
        message = f"Kubeflow Pipelines at {self.host} cannot be reached: {self.clean(reason)}"
        if "certificate" in reason.lower():
            return AccessError(message, "Give the certificate of its authority with --ca-file.")
        hint = "Check --host; outside the cluster, run kubectl port-forward and give its address."
        return TransientStorageError(message, hint)


# By the status of the answer.
_MEANINGS: Mapping[int, tuple[type[DarkroomError], str]] = {
    401: (AccessError, f"Put a valid token into {TOKEN_VARIABLE}."),
    403: (AccessError, "Ask for permission to run pipelines in this namespace; see --namespace."),
    404: (
        UsageError,
        "Check --host: the whole URL of Kubeflow Pipelines 2.5 or newer.",
    ),
    429: (TransientStorageError, "Try again later."),
}
