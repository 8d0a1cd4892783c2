"""Runs the pipeline on this machine: TFX's LocalDagRunner, sqlite metadata, Beam in process."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from unittest import mock

from absl import logging as absl_logging
from tfx.orchestration.local import local_dag_runner
from tfx.orchestration.portable import launcher
from tfx.types import artifact_utils

from darkroom import storage
from darkroom.pipelines.config import PipelineConfig
from darkroom.pipelines.local.cached_outputs import check_outputs
from darkroom.pipelines.pipeline import create_pipeline
from darkroom.runtime import progress


@dataclass
class NodeTime:
    """How long a node took.

    Attributes:
        node: Its id.
        seconds: Wall time.
        reused: Whether its outputs came from an earlier run.
    """

    node: str
    seconds: float
    reused: bool


def run_locally(config: PipelineConfig) -> list[NodeTime]:
    """Runs the pipeline of a configuration to its end.

    Returns:
        The time that each node took, in the order in which they ran.

    Raises:
        GateError: The data did not pass; its report is kept.
        DarkroomError: Another component of ours failed.
    """
    storage.make_folder(config.root)
    pipeline = create_pipeline(config)
    times: list[NodeTime] = []
    # TFX hands the process's arguments to absl, which would trip over ours.
    with (
        mock.patch.object(sys, "argv", sys.argv[:1]),
        _reporting_launcher(len(pipeline.components), times),
    ):
        absl_logging.set_verbosity(absl_logging.WARNING)
        local_dag_runner.LocalDagRunner().run(pipeline)
    return times


@contextmanager
def _reporting_launcher(num_nodes: int, times: list[NodeTime]) -> Iterator[None]:
    """Makes LocalDagRunner launch nodes by a launcher that reports their progress.

    It reuses an earlier run's outputs only when their files are there. The runner names its
    launcher's class itself, as that does its checks, so there is no place to hand them in.
    """

    class ReportingLauncher(launcher.Launcher):
        def launch(self) -> Any:
            node = self._pipeline_node.node_info.id
            started = time.monotonic()
            self._has_run = False
            with progress.step(node, len(times) + 1, num_nodes):
                info = super().launch()
                if not self._has_run:
                    progress.remark("reused: nothing has changed")
            times.append(NodeTime(node, time.monotonic() - started, not self._has_run))
            return info

        def _run_executor(self, execution_info: Any) -> Any:
            self._has_run = True
            return super()._run_executor(execution_info)

    with (
        mock.patch.object(launcher, "Launcher", ReportingLauncher),
        mock.patch.object(artifact_utils, "verify_artifacts", check_outputs),
    ):
        yield
