"""Fixtures for the tests of input."""

from ..commit_reads import count_commits  # noqa: F401
