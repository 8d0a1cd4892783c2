"""Where a compiled pipeline runs."""

from __future__ import annotations

KUBEFLOW, VERTEX = TARGETS = ("kubeflow", "vertex")
