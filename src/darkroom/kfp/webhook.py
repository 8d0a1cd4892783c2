"""Tells a webhook about a run, by one POST of JSON. Of its URL, nothing shows but the host."""

from __future__ import annotations

import json
import os
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from http.client import HTTPException
from typing import Any
from urllib.parse import urlsplit

from darkroom.errors import TransientStorageError, UsageError

# Of a task, from a Secret: the URL of most webhooks is a credential.
VARIABLE = "DARKROOM_WEBHOOK"
_TRIES, _WAIT_SECONDS, _LIMIT_SECONDS = 3, 2.0, 15.0


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """A redirect would be followed by a GET, which tells nobody anything."""

    def redirect_request(self, *_: Any) -> None:
        """Follows none, so that it is an error."""


def find_url(parameters: Mapping[str, Any]) -> str:
    """Returns the URL of a task's webhook, or the empty text."""
    return str(parameters["url"] or os.environ.get(VARIABLE, ""))


def check_url(url: str = "") -> None:
    """Checks a URL, unless it is empty.

    Raises:
        UsageError: It is not one of a webhook.
    """
    if url:
        _find_host(url)


def tell(parameters: Mapping[str, Any], state: str, reason: str) -> None:
    """Tells the webhook of a task how a run ended.

    Args:
        parameters: Those of the task: `url`, `pipeline`, `run` and `run_id`.
        state: As in `FAILED`.
        reason: Why, in words, if that is known.

    Raises:
        UsageError: The URL is not one of a webhook.
        TransientStorageError: The webhook did not take the message.
    """
    names = {name: parameters[name] for name in ("pipeline", "run", "run_id")}
    # The field that chats show.
    text = f"{' '.join(filter(None, names.values()))}: {state}\n{reason}".strip()
    message = {**names, "state": state, "reason": reason, "text": text}
    _post(find_url(parameters), json.dumps(message).encode())


def _post(url: str, body: bytes) -> None:
    host = _find_host(url)
    kind = {"Content-Type": "application/json"}
    request = urllib.request.Request(url, body, kind, method="POST")
    opener = urllib.request.build_opener(_NoRedirects)
    said = ""
    for attempt in range(_TRIES):
        time.sleep(_WAIT_SECONDS * attempt)
        try:
            opener.open(request, timeout=_LIMIT_SECONDS).close()
            return
        except urllib.error.HTTPError as error:
            said = f"HTTP status {error.code}"
        except (OSError, HTTPException) as error:
            said = type(getattr(error, "reason", error)).__name__
    raise TransientStorageError(
        f"The webhook at {host} did not take the message in {_TRIES} tries: {said}.",
        "The run itself ended as its other tasks say. Look at the URL, and at the way to it.",
    )


def _find_host(url: str) -> str:
    try:
        parts = urlsplit(url)
        is_plain = (
            url.isascii() and url.isprintable() and " " not in url and "@" not in parts.netloc
        )
        if is_plain and parts.scheme in ("http", "https") and parts.hostname and parts.port != 0:
            return parts.hostname
    except ValueError:
        pass
    raise UsageError(
        "The URL of the webhook is missing, or is not http://HOST or https://HOST.",
        f"Give the parameter url, or the environment variable {VARIABLE} from a Secret.",
    )
