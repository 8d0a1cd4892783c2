"""Registers a model in the model registry of Kubeflow or Vertex, with what it was made from.

It speaks their REST interfaces; google-auth, which each image has, signs for Vertex. The client of
Vertex has 135 MB. That of Kubeflow has 19 MB, and each of its versions knows one interface only.
"""

from __future__ import annotations

import json
import math
import os
import shlex
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any
from urllib.parse import quote, urlencode

from darkroom.dataset.splits import TRAIN
from darkroom.errors import (
    AccessError,
    CredentialsError,
    TransientStorageError,
    UsageError,
    build_missing_extra_error,
)
from darkroom.evaluation.report.facts import read_evaluation, read_facts
from darkroom.options.pipeline import VERTEX_REGISTRY
from darkroom.runtime import progress
from darkroom.runtime.json_values import parse_object
from darkroom.runtime.lazy_names import is_installed
from darkroom.runtime.text import make_visible
from darkroom.steps.places import name_place
from darkroom.storage import services
from darkroom.storage.stores import CREDENTIALS_HINT, retries

# Of Kubeflow's interface, the newest first; what we need is the same in both.
_VERSIONS = ("v1", "v1alpha3")
_VERTEX = "https://{}-aiplatform.googleapis.com/v1"
_SCOPE = "https://www.googleapis.com/auth/cloud-platform"
# Vertex wants to know who would serve the model. This is its newest container for TensorFlow.
_CONTAINER = "us-docker.pkg.dev/vertex-ai/prediction/tf2-cpu.2-15:latest"
# Vertex takes a model within half an hour.
_POLL_SECONDS, _MAX_POLLS = 2.0, 900
# Where Kubeflow's own client looks for a token; and where Kubernetes puts that of a pod.
_TOKEN_VARIABLE = "KF_PIPELINES_SA_TOKEN_PATH"
_POD_TOKEN = "/var/run/secrets/kubernetes.io/serviceaccount/token"
_LATER = (
    "from darkroom.steps.registry import register_version; "
    "print(register_version({}, {}, {}, uri={}, page={}, run={}))"
)
_ADDRESS_HINT = "Check the address."
_DOWN_HINT = "This is the model registry or the way to it, not the model."
_HINT = (
    "On Vertex, give the account of the tasks roles/aiplatform.user. On Kubeflow, allow their "
    f"namespace in Istio, or name the file of a token in {_TOKEN_VARIABLE}."
)


def register_version(
    registry: str, model: str, folder: str, *, uri: str, page: str, run: str
) -> str:
    """Registers a model, unless the registry has it.

    The model is trained and passed: a registry that is down is a warning, with the command that
    registers it later.

    Args:
        registry: As `check_registry` takes it.
        model: The name of the model.
        folder: The folder of its `evaluation.json`.
        uri: The folder of the SavedModel.
        page: Where the page of the model is.
        run: The run that registers it.

    Returns:
        The name of the version, from the hash of the model: whoever tries again finds it. The empty
        text where the registry is down.

    Raises:
        DarkroomError: There is no such registry, or it does not let us in, or take the model.
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
    put = _register_in_vertex if registry.startswith(VERTEX_REGISTRY) else _register_in_kubeflow
    try:
        # It holds out until the deadline, as a conversion does: nobody runs a green task again.
        with retries.limit(attempts=math.inf, hint=_DOWN_HINT):
            put(registry, model, version, uri, properties)
    except TransientStorageError as error:
        given = (registry, model, name_place(folder), uri, page, run)
        # In a shell, these quotes stay as they are.
        code = _LATER.format(*(json.dumps(each, ensure_ascii=False) for each in given))
        progress.warn(f"WARNING: the model is not registered. {error} To register it later, run:")
        progress.warn(shlex.join(["python", "-c", code]))
        return ""
    return version


def _register_in_kubeflow(
    registry: str, model: str, version: str, uri: str, properties: Mapping[str, str | float]
) -> None:
    # A pod's own token is not for a connection that others can read.
    pod = _POD_TOKEN if registry.startswith("https:") and os.path.exists(_POD_TOKEN) else ""
    sign = partial(services.read_token, os.environ.get(_TOKEN_VARIABLE, pod))
    places = [f"{registry.rstrip('/')}/api/model_registry/{each}" for each in _VERSIONS]
    asks = [partial(_ask, sign, place) for place in places]
    ask = next((each for each in asks if each("registered_models", {"pageSize": "1"})), None)
    if ask is None:
        raise UsageError(f"There is no model registry at {registry}.", _ADDRESS_HINT)

    def find_or_make(one: str, many: str, parent: str, name: str, **values: Any) -> str:
        find = partial(ask, one, {"name": name, "parentResourceId": parent})
        # Another run may make it meanwhile.
        found = find() or ask(many, body={"name": name, **values}) or find()
        return _find_text(found, "id", registry)

    top = find_or_make("registered_model", "registered_models", "", model)
    values = {"registeredModelId": top, "customProperties": _name_types(properties)}
    made = find_or_make("model_version", "model_versions", top, version, **values)
    many, kind = f"model_versions/{made}/artifacts", "model-artifact"
    form = {"modelFormatName": "tensorflow", "modelFormatVersion": "2"}
    find_or_make("model_artifact", many, made, model, artifactType=kind, uri=uri, **form)


def _find_text(answer: Mapping[str, Any], name: str, registry: str) -> str:
    """Returns a text of an answer, which any registry would give."""
    if not isinstance(answer.get(name), str):
        raise UsageError(f"What answers at {registry} is not a model registry.", _ADDRESS_HINT)
    return str(answer[name])


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
    from google.auth.transport.requests import Request

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
        credentials = google.auth.default(scopes=[_SCOPE])[0]
        address = _VERTEX.format(region)

        def sign() -> dict[str, str]:
            headers: dict[str, str] = {}
            credentials.before_request(Request(), "POST", address, headers)
            return headers

        ask = partial(_ask, sign, address)
        if ask(f"{place}/{model}@{version}"):
            return
        is_known = ask(f"{place}/{model}")
        named = {"parentModel": f"{place}/{model}"} if is_known else {"modelId": model}
        started = ask(f"{place}:upload", body={"model": described, **named})
        for _ in range(_MAX_POLLS):
            if not started.get("done"):
                time.sleep(_POLL_SECONDS)
                started = ask(_find_text(started, "name", address))
    except GoogleAuthError as error:
        raise CredentialsError(f"{error}", CREDENTIALS_HINT.format("Google")) from error
    if "error" in started or not started.get("done"):
        said = services.find_message(json.dumps(started).encode())
        raise UsageError(f"Vertex does not take the model: {said}")


def _ask(
    sign: Callable[[], dict[str, str]], address: str, path: str, query: Any = None, body: Any = None
) -> Mapping[str, Any]:
    """Returns an answer; empty if what is looked for is not there, or what is made is."""
    url = f"{address}/{quote(path, safe='/:@')}" + (f"?{urlencode(query)}" if query else "")
    status, data = services.ask(f"The request to {address}/{path}", url, sign(), body)
    if status == (404 if body is None else 409):
        return {}
    answers = f"{status}: {services.find_message(data).rstrip('.')}"
    said = f"The model registry {address} answers {make_visible(answers)}."
    if status in (401, 403):
        raise AccessError(said, _HINT)
    if 200 <= status < 300:
        if found := parse_object(data):
            return found
        said = f"This is not a model registry. {said}"
    raise UsageError(said, "Check registry and model_name.")
