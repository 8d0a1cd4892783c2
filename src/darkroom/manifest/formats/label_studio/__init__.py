"""The JSON export of Label Studio: tasks, each with an image and with annotations of it."""

from __future__ import annotations

from darkroom.manifest.formats.form import AnnotationForm
from darkroom.manifest.sources.evidence import Evidence


def _is_label_studio(found: Evidence) -> bool:
    is_whole = "data" in found.keys and not found.keys.isdisjoint(("annotations", "predictions"))
    return is_whole and found.text.lstrip().startswith(("[", "{"))


FORMAT = AnnotationForm(
    "an export of Label Studio",
    _is_label_studio,
    of_file=f"{__name__}.source:LabelStudioSource",
)
