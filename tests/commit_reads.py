"""How often the commits of datasets are read."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import pytest

from darkroom import storage
from darkroom.dataset.layout import DATASET_FILE


@pytest.fixture(scope="session")
def count_commits() -> Callable[[], AbstractContextManager[list[str]]]:
    """Lists the paths of every `dataset.json` that is read in a block, one entry for each time."""

    @contextmanager
    def count() -> Iterator[list[str]]:
        found: list[str] = []
        inner = storage.read_bytes

        def read_bytes(path: str, *values: Any) -> bytes:
            if path.endswith(f"/{DATASET_FILE}"):
                found.append(path)
            return inner(path, *values)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(storage, "read_bytes", read_bytes)
            yield found

    return count
