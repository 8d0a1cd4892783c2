"""What TFX's InteractiveContext shows of artifacts."""

from __future__ import annotations

import html
from pathlib import Path
from typing import Any

import pytest
from tfx.orchestration.experimental.interactive import visualizations

from darkroom.components import ModelPage, ValidationReport, notebook
from darkroom.components.system_artifacts import HTML

pytestmark = pytest.mark.tfx


def test_a_page_is_shown_in_a_frame_without_scripts(tmp_path: Path, monkeypatch):
    path = tmp_path / "report.html"
    page = '<!doctype html><p class="a">Passed &amp; more</p><script>evil()</script>'
    path.write_text(page)
    text = notebook.render_page(str(path))
    assert f'<iframe sandbox="" srcdoc="{html.escape(page)}"' in text
    assert f"<code>{path}</code>" in text
    monkeypatch.setattr(notebook, "_MAX_PAGE_BYTES", 10)
    assert "<iframe" not in notebook.render_page(str(path))
    assert f"<code>{path}</code>" in notebook.render_page(str(path))


@pytest.mark.parametrize(
    ("kind", "file"), [(ValidationReport, "report.html"), (ModelPage, "model.html"), (HTML, None)]
)
def test_an_artifact_is_shown_by_its_page(new_artifact, kind: Any, file: str | None, monkeypatch):
    shown: list[Any] = []
    monkeypatch.setattr("IPython.display.display", shown.append)
    notebook.register.__wrapped__()
    artifact = new_artifact(kind)
    path = Path(artifact.uri, file or "any.html")
    path.write_text("<p>mine")
    artifact.uri = artifact.uri if file else str(path)
    view = visualizations.get_registry().get_visualization(kind.TYPE_NAME)
    assert view.ARTIFACT_TYPE is kind
    view.display(artifact)
    [found] = shown
    assert found.data == notebook.render_page(str(path))


SCRIPT = """
import sys
{before}
from darkroom.components import ManifestGen
from tfx.orchestration.experimental.interactive import visualizations
print("darkroom.components.notebook" in sys.modules)
print(visualizations.get_registry().get_visualization("darkroom.ValidationReport") is not None)
"""


@pytest.mark.parametrize("is_notebook", [False, True])
def test_the_views_are_loaded_in_notebooks_alone(warm_python, tmp_path: Path, is_notebook: bool):
    before = "import builtins; builtins.__IPYTHON__ = True" if is_notebook else ""
    (tmp_path / "script.py").write_text(SCRIPT.format(before=before))
    done = warm_python.run(tmp_path / "script.py", cwd=tmp_path)
    assert done.stdout.split() == [str(is_notebook)] * 2, done.stderr
