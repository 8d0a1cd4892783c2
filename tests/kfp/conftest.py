from __future__ import annotations

from pathlib import Path

import pytest

from .tasks import Cluster


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd) -> Cluster:
    return Cluster(tmp_path / "cluster", monkeypatch, capfd)


@pytest.fixture
def run_here(tmp_path, monkeypatch):
    """Lets kfp run pipelines in processes of this Python.

    Its SubprocessRunner refuses container components, because their image may be any. All else is
    kfp's own: the order of the tasks, ExecutorInput, placeholders, outputs.
    """
    local = pytest.importorskip("kfp.local", reason="needs the extra [kfp]")
    if not hasattr(local, "orchestrator"):
        pytest.importorskip("kfp.local.orchestrator", reason="kfp runs no pipelines before 2.8")
    from kfp.local.subprocess_task_handler import SubprocessTaskHandler

    monkeypatch.setattr(
        SubprocessTaskHandler, "validate_not_container_component", lambda self, command: None
    )
    local.init(local.SubprocessRunner(use_venv=False), pipeline_root=str(tmp_path / "root"))
    return tmp_path / "root"
