"""Artifact types that the UIs of Kubeflow and Vertex can show.

The UIs know them by their `system.*` names. No Python package has these names, so the entrypoint
tells TFX where the classes are.
"""

from __future__ import annotations

from tfx.types import system_artifacts
from tfx.types.artifact import Artifact


class HTML(Artifact):
    """A page; its URI is that of the file, because the UI reads the URI."""

    TYPE_NAME = "system.HTML"


class Markdown(Artifact):
    """A text in Markdown; its URI is that of the file, because the UI reads the URI."""

    TYPE_NAME = "system.Markdown"


class Metrics(Artifact):
    """Numbers by name, in custom properties.

    {uri}/metrics.json   the same
    """

    TYPE_NAME = "system.Metrics"
    TYPE_ANNOTATION = system_artifacts.Metrics


class ClassificationMetrics(Artifact):
    """A confusion matrix in the custom property `confusionMatrix`, a ROC curve beside it.

    {uri}/confusion_matrix.json   the matrix
    """

    TYPE_NAME = "system.ClassificationMetrics"
    TYPE_ANNOTATION = system_artifacts.Metrics


SYSTEM_ARTIFACTS = {
    each.TYPE_NAME: each for each in (HTML, Markdown, Metrics, ClassificationMetrics)
}
