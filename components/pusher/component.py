"""Pusher: TFX's own, with an executor that reads back the pushed model."""

from __future__ import annotations

from tfx.components.pusher import component as tfx_component
from tfx.dsl.components.base import executor_spec

from darkroom.components.pusher import executor


class Pusher(tfx_component.Pusher):
    """Pushes a blessed model to a folder; without one, as a version into its own artifact.

    Component `outputs` contains:
      - `pushed_model`: `standard_artifacts.PushedModel`.
    """

    EXECUTOR_SPEC = executor_spec.ExecutorClassSpec(executor.Executor)
