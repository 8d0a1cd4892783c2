"""Flink's REST interface: which cluster answers at an address, and the state of a job there."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from http.client import HTTPException
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.request import ProxyHandler, Request, build_opener

from darkroom.conversion.beam.engine import EngineJob
from darkroom.errors import StorageError, UsageError
from darkroom.runtime.text import make_visible

CANCELED = "CANCELED"
# States that a job does not leave.
_ENDED = ("FINISHED", CANCELED, "FAILED")

_SECONDS = 10
_POLL_SECONDS = 0.2
_MAX_BYTES = 64 << 20
_ID = re.compile(r"[0-9a-f]{32}")
_STATE = re.compile(r"[A-Z]{1,20}")
_EXAMPLE = "Give the address of the job manager's web page, as http://jobmanager:8081."
# A master inside the job server, which ends with the client and has no address.
_INSIDE = re.compile(r"\[.*\]|")
# The job server goes to Flink directly, too, whatever proxy the environment names.
_OPENER = build_opener(ProxyHandler({}))


@dataclass(frozen=True)
class FlinkCluster:
    """The facts about a cluster.

    Attributes:
        version: Version of Flink, as 1.19.3.
        slots: Slots of all its task managers.
        task_managers: Host of each task manager; empty for one that is not known.
    """

    version: str
    slots: int
    task_managers: tuple[str, ...]


def find_address(options: Mapping[str, Any]) -> str:
    """Returns the URL of the cluster that Beam's options name; empty if none of them does."""
    master = str(options.get("flink_master") or "")
    return "" if _INSIDE.fullmatch(master) else format_url(master)


def format_url(address: str) -> str:
    """Returns the URL of the REST interface for an address, with or without `http://`."""
    address = address.strip().rstrip("/")
    return address if "://" in address else f"http://{address}"


def check_url(url: str) -> None:
    """Checks the form of an address.

    Raises:
        UsageError: It has no host, or its port is not a number.
    """
    try:
        parts = urlsplit(format_url(url))
        is_whole = bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_whole = False
    if not is_whole:
        raise UsageError(f"{url!r} is not an address of Flink.", _EXAMPLE)


def read_cluster(url: str) -> FlinkCluster:
    """Asks a cluster for its version, slots and task managers.

    Raises:
        StorageError: It does not answer, or is not Flink.
    """
    overview = _ask(url, "/overview")
    version, slots = overview.get("flink-version"), overview.get("slots-total")
    managers = _ask(url, "/taskmanagers").get("taskmanagers")
    if not isinstance(version, str) or not isinstance(slots, int) or not isinstance(managers, list):
        raise _not_flink(url)
    hosts = tuple(_find_host(each.get("path")) for each in managers if isinstance(each, dict))
    return FlinkCluster(make_visible(version, max_characters=40), slots, hosts)


def find_job(url: str, name: str) -> EngineJob | None:
    """Returns the newest job whose name contains `name`; None when Flink has, or knows, none.

    Raises:
        StorageError: Flink does not answer.
    """
    jobs = _ask(url, "/jobs/overview").get("jobs")
    if not isinstance(jobs, list):
        raise _not_flink(url)
    found = [each for each in jobs if isinstance(each, dict) and name in str(each.get("name"))]
    newest = max(found, key=_read_start, default=None)
    return None if newest is None else _read_job(url, newest)


def cancel_job(url: str, job_id: str, seconds: float = _SECONDS) -> EngineJob:
    """Cancels a job, and waits a moment for its end.

    Args:
        url: Address of the REST interface.
        job_id: 32 hexadecimal digits.
        seconds: How long to wait.

    Returns:
        The job with its last state. It may have ended by itself, or still be CANCELLING.

    Raises:
        StorageError: Flink does not answer, or does not know the job.
    """
    if not _ID.fullmatch(job_id):
        raise StorageError(f"{job_id!r} is not the id of a job of Flink.")
    refused: StorageError | None = None
    try:
        _ask(url, f"/jobs/{job_id}", "PATCH")
    except StorageError as error:
        # Flink refuses to cancel a job that has ended: its state says more.
        refused = error
    end = time.monotonic() + seconds
    job = _read_job(url, _ask(url, f"/jobs/{job_id}"))
    if refused and not job.has_ended:
        raise refused
    while not job.has_ended and time.monotonic() < end:
        time.sleep(_POLL_SECONDS)
        job = _read_job(url, _ask(url, f"/jobs/{job_id}"))
    return job


def _ask(url: str, path: str, method: str = "GET") -> dict[str, Any]:
    base = format_url(url)
    try:
        with _OPENER.open(Request(f"{base}{path}", method=method), timeout=_SECONDS) as answer:
            said = json.loads(answer.read(_MAX_BYTES))
    except HTTPError as error:
        error.close()
        if error.code == HTTPStatus.NOT_FOUND and path == "/overview":
            raise _not_flink(base) from error
        raise StorageError(
            f"Flink at {base} answered {error.code} to {method} {path}.", "See Flink's own log."
        ) from error
    except (ValueError, HTTPException) as error:
        raise _not_flink(base) from error
    except OSError as error:
        cause = getattr(error, "reason", error)
        what = getattr(cause, "strerror", None) or cause
        reason = "no answer" if isinstance(cause, TimeoutError) else what
        raise StorageError(
            f"Flink cannot be reached at {base}: {reason}.",
            "Check that its job manager runs, and the address of its REST interface.",
        ) from error
    if not isinstance(said, dict):
        raise _not_flink(base)
    return said


def _not_flink(url: str) -> StorageError:
    what = f"The server at {format_url(url)} is not the REST interface of Flink."
    return StorageError(what, _EXAMPLE)


def _read_job(url: str, said: dict[str, Any]) -> EngineJob:
    """Returns the job that an answer describes; its words go to the terminal."""
    job_id, state = str(said.get("jid")), str(said.get("state"))
    if not _ID.fullmatch(job_id) or not _STATE.fullmatch(state):
        raise _not_flink(url)
    stop = f"curl -X PATCH {format_url(url)}/jobs/{job_id}"
    return EngineJob(job_id, state, state in _ENDED, stop)


def _read_start(job: dict[str, Any]) -> int:
    value = job.get("start-time")
    return value if isinstance(value, int) else 0


def _find_host(path: object) -> str:
    """Returns the host in the address of an actor, as pekko.tcp://flink@HOST:PORT/user/rpc/x."""
    try:
        return urlsplit(str(path)).hostname or ""
    except ValueError:
        return ""
