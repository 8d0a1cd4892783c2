"""Explains why a path cannot be used, and which one may be meant instead."""

from __future__ import annotations

import difflib
import functools
import os
from collections.abc import Callable, Collection
from itertools import islice
from typing import ParamSpec, TypeVar

from darkroom.errors import (
    STORAGE_HINT,
    DarkroomError,
    DeniedPathError,
    MissingPathError,
    StorageError,
    choose_os_hint,
    describe_os_error,
)
from darkroom.runtime.process import begin_at_call
from darkroom.runtime.text import find_similar
from darkroom.storage.files import NotAFileError
from darkroom.storage.uris import absolute, is_remote

_P = ParamSpec("_P")
_R = TypeVar("_R")

# A folder may have millions of names, and comparing one takes as long as reading it.
_MOST_NAMES = 10_000
_MOST_SIMILAR = 10


def find_near(path: str) -> str | None:
    """Returns the existing local path that a missing one may stand for; None without a similar one.

    Of the first name of the path that does not exist, the nearest one in its folder counts.
    """
    if is_remote(path):
        return None
    folder, name = os.path.split(absolute(path))
    rest: list[str] = []
    while not os.path.isdir(folder) and folder != "/":
        rest.insert(0, name)
        folder, name = os.path.split(folder)
    try:
        with os.scandir(folder) as entries:
            names = {entry.name.lower(): entry.name for entry in islice(entries, _MOST_NAMES)}
    except OSError:
        return None
    near = _find_similar(name.lower(), names)
    if near is None:
        return None
    found = os.path.join(folder, names[near])
    whole = os.path.join(found, *rest)
    return whole if os.path.lexists(whole) else found


def _find_similar(name: str, names: Collection[str]) -> str | None:
    """Returns the most similar name; None when nothing but the endings is similar."""
    stem = os.path.splitext(name)[0]

    def has_similar_stem(other: str) -> bool:
        return find_similar(stem, [os.path.splitext(other)[0]]) is not None

    near = difflib.get_close_matches(name, names, n=_MOST_SIMILAR)
    return next(filter(has_similar_stem, near), None)


def suggest_near(path: str) -> str:
    """Returns what to do about a path that does not exist, as a sentence."""
    near = find_near(path)
    return f"Did you mean {near}?" if near else "Check the path."


def build_missing_error(path: str, what: str = "") -> MissingPathError:
    """Returns the error for a path that does not exist.

    Args:
        path: The path.
        what: The missing thing, to begin the message with, as in "The source".
    """
    return MissingPathError(f"{what} {path} does not exist.".lstrip(), suggest_near(path))


def convert_os_error(error: OSError) -> DarkroomError:
    """Returns any error of the system as darkroom's; `except FileNotFoundError` still takes it."""
    if isinstance(error, DarkroomError):
        return error
    said = describe_os_error(error)
    if isinstance(error, NotAFileError):
        return StorageError(said, "Give a regular file: pipes, sockets and devices are not read.")
    if isinstance(error, FileNotFoundError):
        is_source = isinstance(error.filename, str) and error.filename2 is None
        return MissingPathError(said, suggest_near(error.filename) if is_source else STORAGE_HINT)
    if isinstance(error, PermissionError):
        return DeniedPathError(said, STORAGE_HINT)
    return StorageError(said, choose_os_hint(error))


def report_failures(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """Makes a public function raise our errors instead of the system's; a decorator.

    Their tracebacks begin at the call.
    """

    @functools.wraps(function)
    def call(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        try:
            return function(*args, **kwargs)
        except OSError as error:
            raise convert_os_error(error) from None

    return begin_at_call(call)
