"""Requests to services that speak HTTP: model registries and webhooks.

Those to stores are in `darkroom.storage.requests`. Both are tried again, and limited in time, by
`darkroom.storage.stores.retries`.
"""

from __future__ import annotations

import json
import socket
from collections.abc import Mapping
from http.client import HTTPException, IncompleteRead, InvalidURL
from typing import Any
from urllib.error import URLError
from urllib.request import HTTPErrorProcessor, Request, build_opener

from darkroom import storage
from darkroom.errors import UsageError
from darkroom.runtime.json_values import parse_object
from darkroom.storage.stores import READ_SECONDS, Problem, judge_status, retries

_MAX_BYTES = 1 << 20


class _AllAnswers(HTTPErrorProcessor):
    """Returns an answer of any status: no redirect is followed, and no secret sent on."""

    def http_response(self, request: Any, response: Any) -> Any:
        return response

    https_response = http_response


def ask(what: str, url: str, headers: Mapping[str, str], body: Any = None) -> tuple[int, bytes]:
    """Asks a service by HTTP, again and again while its errors may pass.

    Args:
        what: The request, for messages, which do not show the URL: it may be a secret.
        url: It has a host by `darkroom.storage.uris.find_host`.
        headers: Those that say who asks.
        body: Values that are sent as JSON, by POST; None for a GET.

    Returns:
        Status and text of the answer, up to a limit, and without the token of `headers`.

    Raises:
        UsageError: There is no such host, or it is not trusted.
        TransientStorageError: All attempts failed.
    """
    data = None if body is None else json.dumps(body).encode()
    token = headers.get("Authorization", "").rpartition(" ")[2].encode()

    def attempt() -> tuple[int, bytes]:
        # A proxy changes a request, so each attempt has its own.
        request = Request(url, data, {"Content-Type": "application/json", **headers})
        try:
            with build_opener(_AllAnswers).open(request, timeout=READ_SECONDS) as answer:
                said = answer.read(_MAX_BYTES)
                if answer.length and len(said) < _MAX_BYTES:
                    raise IncompleteRead(said)
        except (OSError, HTTPException, ValueError) as error:
            cause = error.reason if isinstance(error, URLError) else error
            raise _judge_silence(what, cause) from None
        if judge_status(answer.status) is Problem.TRANSIENT:
            raise retries.TransientError(f"HTTP status {answer.status}")
        return answer.status, said.replace(token, b"[token]") if token else said

    return retries.retry(what, attempt)


def _judge_silence(what: str, cause: Any) -> Exception:
    """Returns the error to raise for no answer; a `TransientError` if it may pass.

    It has the system's words alone, and no text of the URL or of a server.
    """
    text = str(cause) if isinstance(cause, OSError) else type(cause).__name__
    # Where the server of names is away, the name may be known.
    is_unknown = isinstance(cause, socket.gaierror) and cause.errno != socket.EAI_AGAIN
    # An untrusted certificate is a ValueError, too.
    if is_unknown or isinstance(cause, ValueError | InvalidURL):
        return UsageError(f"{what} failed: {text}.", "Check the address, SSL_CERT_FILE, proxies.")
    return retries.TransientError(text)


def find_message(data: bytes | str) -> str:
    """Returns the message of an answer, whose JSON may nest it; else the start of its text."""
    text = data if isinstance(data, str) else data.decode(errors="replace")
    values = parse_object(text)
    for found in (values.get("message"), values.get("error")):
        said = found.get("message") if isinstance(found, Mapping) else found
        if said and isinstance(said, str):
            return said
    return " ".join(text[:500].split())


def check_token(token: str, place: str) -> str:
    """Returns a token that was read somewhere, or no text.

    Raises:
        UsageError: It is more or else than a token. The message does not show it.
    """
    if not (token.isascii() and token.isprintable()) or " " in token:
        raise UsageError(f"{place} is not a token.", "Put only the token there, in one line.")
    return token


def read_token(path: str) -> dict[str, str]:
    """Returns the headers with the token in a file; none without a path.

    Raises:
        UsageError: The file has more or else than a token.
        OSError: It cannot be read.
    """
    token = check_token(storage.read_bytes(path).decode("latin-1").strip(), path) if path else ""
    return {"Authorization": f"Bearer {token}"} if token else {}
