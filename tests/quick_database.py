"""One thread of DuckDB instead of two, for tests of what is around it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import duckdb
import pytest


@pytest.fixture(scope="module", autouse=True)
def quick_database(request: pytest.FixtureRequest) -> Iterator[None]:
    """Gives a table one thread: to start the second one takes a fifth of a small conversion.

    The tests of the tables themselves, in tests/manifest, have as many as users, and so have runs
    of the long tests: an order that nobody asks for may be another one with two.
    """
    is_long = "not long" not in request.config.option.markexpr
    if is_long or "manifest" in request.path.parts:
        yield
        return
    connect = duckdb.connect

    def connect_once(*arguments: Any, config: dict[str, str] | None = None, **more: Any) -> Any:
        return connect(*arguments, config={**(config or {}), "threads": "1"}, **more)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(duckdb, "connect", connect_once)
        yield
