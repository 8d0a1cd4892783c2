"""Decoding without another process, for tests of what is around it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest


def _decode_here(process: Any, data: bytes, granted_bytes: int) -> tuple[dict[str, Any], bytes]:
    from darkroom.images.sandbox_child import _answer

    text, encoded = _answer(data, process._options, granted_bytes)
    return json.loads(text), encoded


@pytest.fixture(scope="session", autouse=True)
def quick_decoding() -> Iterator[pytest.MonkeyPatch]:
    """Decodes in the process of the test what takes a process with limits, which gives the same.

    Its start takes longer than all else of a small conversion. Commands in a process have it, and
    files of tests that take `decoder_process`.
    """
    with pytest.MonkeyPatch.context() as patch:
        _make_quick(patch)
        yield patch


def _make_quick(patch: pytest.MonkeyPatch) -> None:
    patch.setattr("darkroom.images.sandbox.DecoderProcess._exchange", _decode_here)


@pytest.fixture(scope="module")
def decoder_process(quick_decoding: pytest.MonkeyPatch) -> Iterator[None]:
    """Decodes in a process with limits, in a file of tests."""
    quick_decoding.undo()
    yield
    _make_quick(quick_decoding)
