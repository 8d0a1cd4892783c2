from __future__ import annotations

from pathlib import Path

import pytest

from .tasks import Cluster


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd) -> Cluster:
    return Cluster(tmp_path / "cluster", monkeypatch, capfd)
