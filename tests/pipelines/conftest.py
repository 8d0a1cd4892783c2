"""What tests of submitting share. Nothing is imported here: some of these tests run without kfp."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from .kubeflow_server import Server


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    """A server that takes what Kubeflow's API takes; nothing on this machine names another one."""
    from darkroom.pipelines.submission.kubeflow import TOKEN_FILE_VARIABLE, TOKEN_VARIABLE

    from .kubeflow_server import serve

    # kfp's client reads ~/.config/kfp, found on import, and variables of its own.
    monkeypatch.setattr("kfp.client.Client._LOCAL_KFP_CONTEXT", str(tmp_path / "context.json"))
    for name in (TOKEN_VARIABLE, TOKEN_FILE_VARIABLE, "KF_PIPELINES_ENDPOINT"):
        monkeypatch.delenv(name, raising=False)
    with serve() as state:
        yield state


@pytest.fixture(scope="module")
def mounted() -> Iterator[Path]:
    """A folder that a container may have as a volume: none below /dev, where other files are."""
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder)


@pytest.fixture
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    """Asks for the state of a run at once, again and again."""
    from darkroom.pipelines.submission import runs

    monkeypatch.setattr(runs, "_POLL_SECONDS", 0)
    monkeypatch.setattr(runs.time, "sleep", lambda _: None)
