"""The CSV with boxes of AutoML and Vertex AI: a row for each object, and no header."""

from __future__ import annotations

import re

from darkroom.manifest.formats.form import AnnotationForm
from darkroom.manifest.sources.evidence import Evidence

# Split, path, label, and the corners of a box, of which some may be left out.
_LINE = re.compile(r"[^,]*,[^,]+,[^,]*(,\s*(-?\d*\.?\d+([eE]-?\d+)?)?\s*){8}")


def _is_automl(found: Evidence) -> bool:
    fitting = [*filter(None, map(_LINE.fullmatch, found.lines))]
    # Some lines may have faults.
    return 2 * len(fitting) > len(found.lines)


FORMAT = AnnotationForm(
    "an import file of AutoML with boxes",
    _is_automl,
    mark=",",
    of_file=f"{__name__}.source:AutoMLSource",
)
