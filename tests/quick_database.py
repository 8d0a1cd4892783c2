"""One DuckDB that runs already, for tests of what is around it: to start another takes 15 ms."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from functools import cache
from itertools import count

import duckdb
import pytest

_CONNECT = duckdb.connect


@pytest.fixture(scope="session")
def connect_shared(
    tmp_path_factory: pytest.TempPathFactory,
) -> Callable[..., AbstractContextManager[duckdb.DuckDBPyConnection]]:
    """Opens an empty database, as `duckdb.connect` does, and drops it at the end.

    All that ask for the same settings share a DuckDB, and its folder for what memory cannot hold.
    """
    numbers, folder = count(), str(tmp_path_factory.mktemp("duckdb"))
    start = cache(lambda **settings: _CONNECT(config=settings))

    @contextmanager
    def connect(
        _: str = ":memory:", config: Mapping[str, str] | None = None
    ) -> Iterator[duckdb.DuckDBPyConnection]:
        shared = start(**{**(config or {}), "threads": "1", "temp_directory": folder})
        name = f"empty_{next(numbers)}"
        shared.execute(f"ATTACH ':memory:' AS {name}")
        try:
            with shared.cursor() as connection:
                connection.execute(f"USE {name}")
                yield connection
        finally:
            shared.execute(f"DETACH {name}")

    return connect


@pytest.fixture(scope="module", autouse=True)
def quick_database(request: pytest.FixtureRequest) -> Iterator[None]:
    """Gives a table that database, which has one thread: a second one takes time to start, too.

    The tests of the tables themselves, in tests/manifest, have what users have, and so have runs
    of the long tests: an order that nobody asks for may be another one with two.
    """
    is_long = "not long" not in request.config.option.markexpr
    if is_long or "manifest" in request.path.parts:
        yield
        return
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(duckdb, "connect", request.getfixturevalue("connect_shared"))
        yield


@pytest.fixture
def own_database(monkeypatch: pytest.MonkeyPatch) -> None:
    """Starts a DuckDB for each table, as for users, in a test of its settings."""
    monkeypatch.setattr(duckdb, "connect", _CONNECT)
