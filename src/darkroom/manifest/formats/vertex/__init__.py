"""Import files of Vertex AI: JSON Lines, one image a line, with one label, several, or boxes."""

from __future__ import annotations

import re

from darkroom.manifest.formats.form import AnnotationForm
from darkroom.manifest.sources.evidence import Evidence


def _is_vertex(found: Evidence) -> bool:
    # The first line may be longer than what is known of it.
    is_line = bool(found.lines) and re.match(r'\{\s*"', found.lines[0]) is not None
    return is_line and "imageGcsUri" in found.keys


FORMAT = AnnotationForm(
    "an import file of Vertex AI",
    _is_vertex,
    of_file=f"{__name__}.source:VertexSource",
)
