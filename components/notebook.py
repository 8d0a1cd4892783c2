"""The pages of darkroom's reports and models in a notebook, for TFX's InteractiveContext.

`context.show(component.outputs[...])` looks for a view by the artifact's type. The views here are
registered when a component is imported where IPython runs.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from tfx.orchestration.experimental.interactive import visualizations
from tfx.types.artifact import Artifact

from darkroom import storage
from darkroom.components.artifacts import ModelPage, ValidationReport
from darkroom.components.system_artifacts import HTML
from darkroom.evaluation.report.write import PAGE_FILE
from darkroom.runtime.markup import Html, element, escape_page, join_html
from darkroom.validation.report.write import REPORT_HTML

_MAX_PAGE_BYTES = 16 << 20
_STYLE = "width:100%;height:640px;border:1px solid #8884"
# A page by the type of its artifact. The URI of an HTML artifact is the page's own.
_PAGES = {ValidationReport: REPORT_HTML, ModelPage: PAGE_FILE, HTML: None}


@cache
def register() -> None:
    """Makes TFX's InteractiveContext show the pages of darkroom's artifacts."""
    for kind, file in _PAGES.items():
        visualizations.get_registry().register(_make_view(kind, file))


def _make_view(kind: type[Artifact], file: str | None) -> Any:
    """Returns the class by which TFX shows artifacts of a type: it looks for one by the type.

    Args:
        kind: The type of the artifacts.
        file: The page in the folder of an artifact; None if the URI is that of the page.
    """

    class View(visualizations.ArtifactVisualization):
        ARTIFACT_TYPE = kind

        def display(self, artifact: Artifact) -> None:
            from IPython import display

            path = storage.join(artifact.uri, file) if file else artifact.uri
            display.display(display.HTML(render_page(path)))

    return View


def render_page(path: str) -> Html:
    """Returns a page in a frame, and its path; of a large page the path alone."""
    if storage.stat_file(path).size_bytes > _MAX_PAGE_BYTES:
        shown = element("p", "The page is too large for a notebook; open the file.")
    else:
        page = escape_page(storage.read_bytes(path).decode())
        # The page has no scripts; without `allow-scripts` none would run.
        shown = element("iframe", sandbox="", srcdoc=page, style=_STYLE)
    return join_html(shown, element("p", element("code", path)))
