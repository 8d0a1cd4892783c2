"""Tells a webhook about a run, by one POST of JSON. Of its URL, nothing shows but the host."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from darkroom.errors import StorageError, UsageError
from darkroom.steps.places import name_uris
from darkroom.steps.step import Given, Made, Parameter, Paths, Step
from darkroom.storage import services
from darkroom.storage.stores import retries
from darkroom.storage.uris import find_host

# Of a task, from a Secret: the URL of most webhooks is a credential.
WEBHOOK_VARIABLE = "DARKROOM_WEBHOOK"
# Of all tries together: a gate waits for them.
_TRIES, _LIMIT_SECONDS = 3, 45.0
WEBHOOK_PARAMETERS = (
    Parameter(
        "url",
        str,
        "URL of a webhook that is told; if empty, that in the environment variable "
        "DARKROOM_WEBHOOK of the task.",
        "",
    ),
    Parameter("pipeline", str, "Name of the pipeline, for the webhook.", ""),
    Parameter("run", str, "Name of the run, for the webhook.", ""),
    Parameter("run_id", str, "Id of the run, for the webhook.", ""),
)
# What Kubeflow calls the states; where a pod was lost, its records go on saying that a task runs.
_UNKNOWN = "UNKNOWN"
_STATES = {"COMPLETE": "SUCCEEDED", "RUNNING": _UNKNOWN}
_HINT = "The run itself ended as its other tasks say. Look at the URL, and at the way to it."


def find_url(parameters: Mapping[str, Any]) -> str:
    """Returns the URL of a task's webhook, or the empty text."""
    return str(parameters["url"] or os.environ.get(WEBHOOK_VARIABLE, ""))


def check_url(url: str = "") -> None:
    """Checks a URL, unless it is empty.

    Raises:
        UsageError: It is not one of a webhook.
    """
    if url and not find_host(url):
        raise UsageError(
            "The URL of the webhook is missing, or is not http://HOST or https://HOST.",
            f"Give the parameter url, or the environment variable {WEBHOOK_VARIABLE} from a "
            "Secret.",
        )


def tell(parameters: Mapping[str, Any], state: str, reason: str) -> None:
    """Tells the webhook of a task how a run ended.

    Args:
        parameters: Those of the task: `url`, `pipeline`, `run` and `run_id`.
        state: As in `FAILED`.
        reason: Why, in words, if that is known.

    Raises:
        UsageError: The URL is not one of a webhook.
        StorageError: The webhook did not take the message.
    """
    names = {name: parameters[name] for name in ("pipeline", "run", "run_id")}
    # The field that chats show.
    text = f"{' '.join(filter(None, names.values()))}: {state}\n{reason}".strip()
    message = {**names, "state": state, "reason": reason, "text": text}
    url = find_url(parameters)
    check_url(url or "none")
    host = find_host(url)
    with retries.limit(seconds=_LIMIT_SECONDS, attempts=_TRIES, hint=_HINT):
        status, _ = services.ask(f"Telling the webhook at {host}", url, {}, message)
    if not 200 <= status < 300:
        said = f"The webhook at {host} did not take the message: HTTP status {status}."
        raise StorageError(said, _HINT)


def run(paths: Paths, options: Given) -> Made:
    """Tells a webhook how a run ended. Only Vertex gives a reason."""
    status = options["status"]
    state, error = str(status.get("state") or ""), status.get("error")
    reason = str((error.get("message") if isinstance(error, dict) else error) or "")
    tell(options, _STATES.get(state, state or _UNKNOWN), name_uris(reason))
    return Made()


STEP = Step(
    "notify",
    "Tells a webhook how a run ended, as the exit task of dsl.ExitHandler.",
    run,
    (
        *WEBHOOK_PARAMETERS,
        Parameter(
            "status",
            dict,
            "How the tasks of the handler ended, as the service says.",
            {},
            is_status=True,
        ),
    ),
    checks=(check_url,),
)
