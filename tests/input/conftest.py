"""Fixtures for the tests of input."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ..commit_reads import count_commits  # noqa: F401


@pytest.fixture(scope="module")
def simple_decoder() -> Iterator[None]:
    """Decodes all images of a module simply: see `decode_simply`."""
    from .simple_decoder import decode_simply  # needs TensorFlow

    with decode_simply():
        yield
