"""Registers a model in the model registry of Kubeflow or Vertex, with what it was made from.

It speaks their REST interfaces, by `requests` and google-auth, which each image has. The client of
Vertex has 135 MB. That of Kubeflow has 19 MB, and each of its versions knows one interface only.
"""

from __future__ import annotations

import json
import math
import os
import time
from collections.abc import Mapping
from functools import partial
from typing import Any

import requests

from darkroom import storage
from darkroom.dataset.splits import TRAIN
from darkroom.errors import AccessError, CredentialsError, UsageError, build_missing_extra_error
from darkroom.evaluation.report.facts import read_evaluation, read_facts
from darkroom.options.pipeline import VERTEX_REGISTRY
from darkroom.runtime.lazy_names import is_installed
from darkroom.runtime.text import make_visible
from darkroom.storage.stores import (
    CONNECT_SECONDS,
    CREDENTIALS_HINT,
    READ_SECONDS,
    Problem,
    judge_status,
    retries,
)

# Of Kubeflow's interface, the newest first; what we need is the same in both.
_VERSIONS = ("v1", "v1alpha3")
_VERTEX = "https://{}-aiplatform.googleapis.com/v1"
_SCOPE = "https://www.googleapis.com/auth/cloud-platform"
# Vertex wants to know who would serve the model. This is its newest container for TensorFlow.
_CONTAINER = "us-docker.pkg.dev/vertex-ai/prediction/tf2-cpu.2-15:latest"
_POLL_SECONDS = 2.0
# Where Kubeflow's own client looks for a token; and where Kubernetes puts that of a pod.
_TOKEN_VARIABLE = "KF_PIPELINES_SA_TOKEN_PATH"
_POD_TOKEN = "/var/run/secrets/kubernetes.io/serviceaccount/token"
_ADDRESS_HINT = "Check the address."
_HINT = (
    "On Vertex, give the account of the tasks roles/aiplatform.user. On Kubeflow, allow their "
    f"namespace in Istio, or name the file of a token in {_TOKEN_VARIABLE}."
)


def register(registry: str, model: str, folder: str, *, uri: str, page: str, run: str) -> str:
    """Registers a model, unless the registry has it.

    Args:
        registry: As `check_registry` takes it.
        model: The name of the model.
        folder: The folder of its `evaluation.json`.
        uri: The folder of the SavedModel.
        page: Where the page of the model is.
        run: The run that registers it.

    Returns:
        The name of the version, from the hash of the model: whoever tries again finds it.

    Raises:
        DarkroomError: The registry does not answer, let us in, or take the model.
    """
    found, trained = read_evaluation(folder), read_facts(folder).data.get(TRAIN, ())
    version = f"sha256-{found.model_sha256[:12]}"
    numbers = {"score": found.score, **found.list_scalars()}
    properties: dict[str, str | float] = {
        **{name: value for name, value in numbers.items() if math.isfinite(value)},
        "dataset_fingerprint": ", ".join(part["fingerprint"] for part in trained),
        "sha256": found.model_sha256,
        "split": found.split,
        "page": page,
        "run": run,
    }
    if registry.startswith(VERTEX_REGISTRY):
        _register_in_vertex(registry, model, version, uri, properties)
    else:
        _register_in_kubeflow(registry, model, version, uri, properties)
    return version


def _register_in_kubeflow(
    registry: str, model: str, version: str, uri: str, properties: Mapping[str, str | float]
) -> None:
    session = requests.Session()
    # A pod's own token is not for a connection that others can read.
    pod = _POD_TOKEN if registry.startswith("https:") and os.path.exists(_POD_TOKEN) else ""
    if path := os.environ.get(_TOKEN_VARIABLE, pod):
        session.headers["Authorization"] = f"Bearer {storage.read_bytes(path).decode().strip()}"
    places = [f"{registry.rstrip('/')}/api/model_registry/{each}" for each in _VERSIONS]
    asks = [partial(_ask, session, place) for place in places]
    ask = next((each for each in asks if each("registered_models", {"pageSize": "1"})), None)
    if ask is None:
        raise UsageError(f"There is no model registry at {registry}.", _ADDRESS_HINT)

    def find_or_make(one: str, many: str, parent: str, name: str, **values: Any) -> str:
        find = partial(ask, one, {"name": name, "parentResourceId": parent})
        # Another run may make it meanwhile.
        found = find() or ask(many, body={"name": name, **values}) or find()
        if "id" not in found:
            raise UsageError(f"What answers at {registry} is not a model registry.", _ADDRESS_HINT)
        return str(found["id"])

    top = find_or_make("registered_model", "registered_models", "", model)
    values = {"registeredModelId": top, "customProperties": _name_types(properties)}
    made = find_or_make("model_version", "model_versions", top, version, **values)
    many, kind = f"model_versions/{made}/artifacts", "model-artifact"
    form = {"modelFormatName": "tensorflow", "modelFormatVersion": "2"}
    find_or_make("model_artifact", many, made, model, artifactType=kind, uri=uri, **form)


def _name_types(properties: Mapping[str, str | float]) -> dict[str, dict[str, str | float]]:
    return {
        name: {"metadataType": "MetadataStringValue", "string_value": value}
        if isinstance(value, str)
        else {"metadataType": "MetadataDoubleValue", "double_value": value}
        for name, value in properties.items()
    }


def _register_in_vertex(
    registry: str, model: str, version: str, uri: str, properties: Mapping[str, str | float]
) -> None:
    if not is_installed("google.auth"):
        raise build_missing_extra_error("The model registry of Vertex", "gcp")
    import google.auth
    from google.auth.exceptions import GoogleAuthError
    from google.auth.transport.requests import AuthorizedSession

    project, region = registry.removeprefix(VERTEX_REGISTRY).strip("/").split("/")
    place = f"projects/{project}/locations/{region}/models"
    described = {
        "displayName": model,
        "artifactUri": uri,
        "containerSpec": {"imageUri": _CONTAINER},
        "versionAliases": [version],
        # Its labels have at most 63 characters, too few for a fingerprint.
        "versionDescription": json.dumps(properties, indent=1),
    }
    try:
        session = AuthorizedSession(google.auth.default(scopes=[_SCOPE])[0])
        ask = partial(_ask, session, _VERTEX.format(region))
        if ask(f"{place}/{model}@{version}"):
            return
        is_known = ask(f"{place}/{model}")
        named = {"parentModel": f"{place}/{model}"} if is_known else {"modelId": model}
        started = ask(f"{place}:upload", body={"model": described, **named})
        while not started.get("done"):
            time.sleep(_POLL_SECONDS)
            started = ask(started["name"])
    except GoogleAuthError as error:
        raise CredentialsError(f"{error}", CREDENTIALS_HINT.format("Google")) from error
    if "error" in started:
        raise UsageError(f"Vertex does not take the model: {started['error']['message']}")


def _ask(
    session: requests.Session, address: str, path: str, query: Any = None, body: Any = None
) -> dict[str, Any]:
    """Returns an answer; empty if what is looked for is not there, or what is made is."""
    method = "GET" if body is None else "POST"

    def attempt() -> requests.Response:
        try:
            answer = session.request(
                method,
                f"{address}/{path}",
                params=query,
                json=body,
                timeout=(CONNECT_SECONDS, READ_SECONDS),
            )
        except requests.RequestException as error:
            # Without what requests and urllib3 say of their own objects.
            cause = getattr(error.args[0] if error.args else None, "reason", error)
            raise retries.TransientError(f"{cause}".rpartition(">: ")[2]) from error
        if judge_status(answer.status_code) is Problem.TRANSIENT:
            raise retries.TransientError(_describe(answer))
        return answer

    answer = retries.retry(f"The request to {address}/{path}", attempt)
    if answer.status_code == (404 if body is None else 409):
        return {}
    said = f"The model registry {address} answers {_describe(answer)}."
    if answer.status_code in (401, 403):
        raise AccessError(said, _HINT)
    try:
        answer.raise_for_status()
        return dict(answer.json())
    except (requests.RequestException, ValueError) as error:
        raise UsageError(said, "Check registry and model_name.") from error


def _describe(answer: requests.Response) -> str:
    """Returns status and message of an answer: Google nests it."""
    try:
        values = answer.json()
        text = str(values.get("error", values)["message"]).rstrip(".")
    except (ValueError, LookupError, AttributeError, TypeError):
        text = " ".join(answer.text[:100].split())
    return make_visible(f"{answer.status_code}: {text}")
