"""What TFX's InteractiveContext shows of artifacts; tests/e2e/test_interactive.py has a kernel."""

from __future__ import annotations

import base64
import html
import io
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from tfx.orchestration.experimental.interactive import visualizations
from tfx.types import standard_artifacts

from darkroom.components import ModelPage, ValidationReport, notebook
from darkroom.components.system_artifacts import HTML, ClassificationMetrics, Markdown, Metrics
from darkroom.conversion.convert import convert

from .conftest import convert_source, write_csv

pytestmark = pytest.mark.tfx


def _pictures(text: str) -> list[np.ndarray]:
    """Returns the pixels of the pictures in a view."""
    found = [each.split('"')[0] for each in text.split("data:image/jpeg;base64,")[1:]]
    return [np.asarray(Image.open(io.BytesIO(base64.b64decode(each)))) for each in found]


def test_examples_are_counted_and_shown(converted: dict[str, Any]):
    text = notebook.render_examples(converted["examples"])
    assert "<h4>train: 24 records</h4>" in text
    assert "<h4>eval: 6 records</h4>" in text
    assert len(_pictures(text)) == 12 + 6
    labels = re.findall(r"<br>(\w*)</figure>", text)
    assert len(labels) == 18
    assert set(labels) == {"cat", "dog", "owl"}


def test_pixels_are_shown_as_they_are_stored(tmp_path: Path):
    (tmp_path / "images/train/red").mkdir(parents=True)
    Image.new("RGB", (20, 20), (250, 10, 10)).save(tmp_path / "images/train/red/a.png")
    convert(str(tmp_path / "images"), str(tmp_path / "records"), encoding="raw")
    examples = standard_artifacts.Examples()
    examples.uri = str(tmp_path / "records")
    [picture] = _pictures(notebook.render_examples(examples))
    assert np.abs(picture.reshape(-1, 3).mean(0) - (250, 10, 10)).max() < 8


def test_examples_of_others_are_named_as_such(new_artifact: Callable[..., Any]):
    examples = new_artifact(standard_artifacts.Examples)
    examples.split_names = '["train", "eval"]'
    text = "<p>Records that darkroom did not write. Splits: train, eval.</p>"
    assert notebook.render_examples(examples) == text


def test_an_index_has_a_table_of_classes_and_an_image_of_each(converted: dict[str, Any]):
    text = notebook.render_index(converted["index"])
    assert "<th>class</th><th>train</th><th>eval</th>" in text
    rows = [row.split("<td>")[1:] for row in text.split("<tr>")[2:]]
    numbers = {row[0].split("<")[0]: [each.split("<")[0] for each in row[1:]] for row in rows}
    assert numbers == {"cat": ["8", "2"], "dog": ["8", "2"], "owl": ["8", "2"]}
    assert len(_pictures(text)) == 3


def test_rejects_are_listed_with_their_reasons(tmp_path, images: Path, new_artifact, beam_context):
    (images.parent / "00.jpg").write_bytes(b"")
    with images.open("a") as file:
        file.write("".join(f"TRAIN,<b>{number}.jpg,cat\n" for number in range(12)))
    made = convert_source(str(images), new_artifact, beam_context)
    text = notebook.render_rejects(made["rejects"])
    assert "<td>missing</td><td>12</td>" in text
    assert "<td>empty</td><td>1</td>" in text
    assert "<b>0" not in text
    assert "&lt;b&gt;0.jpg" in text
    assert text.endswith("<p>and 3 more</p>")


def test_without_rejects_a_sentence_says_so(converted: dict[str, Any]):
    assert notebook.render_rejects(converted["rejects"]) == "<p>No row was rejected.</p>"


def test_a_manifest_has_counts_and_labels(converted: dict[str, Any]):
    text = notebook.render_manifest(converted["manifest"])
    for name, count in (("rows in the source", 30), ("to convert, train", 24), ("rejected", 0)):
        assert f"<td>{name}</td><td>{count}</td>" in text
    assert "<td>2</td><td>owl</td>" in text


def test_many_classes_are_cut(tmp_path: Path, new_artifact, beam_context):
    (tmp_path / "many").mkdir()
    rows = []
    for number in range(60):
        Image.new("L", (4, 4), number).save(tmp_path / f"many/{number}.png")
        rows.append(("TRAIN", f"{number}.png", f"label {number:02d}"))
    write_csv(tmp_path / "many/images.csv", [("split", "image_uri", "label"), *rows])
    made = convert_source(str(tmp_path / "many/images.csv"), new_artifact, beam_context)
    text = notebook.render_index(made["index"])
    assert "label 49" in text
    assert "label 50" not in text
    assert "<p>and 10 more</p>" in text
    assert len(_pictures(text)) == notebook.NUM_PICTURES


@pytest.mark.parametrize("kind", [ValidationReport, HTML])
def test_a_report_is_shown_in_a_frame_without_scripts(new_artifact, kind: Any, monkeypatch):
    artifact = new_artifact(kind)
    path = Path(artifact.uri, "report.html")
    page = '<!doctype html><p class="a">Passed &amp; more</p><script>evil()</script>'
    path.write_text(page)
    if kind is HTML:
        artifact.uri = str(path)
    render = notebook._VIEWS[kind]
    text = render(artifact)
    assert f'<iframe sandbox srcdoc="{html.escape(page)}"' in text
    assert f"<code>{path}</code>" in text
    monkeypatch.setattr(notebook, "_MAX_PAGE_BYTES", 10)
    assert "<iframe" not in render(artifact)
    assert f"<code>{path}</code>" in render(artifact)


def test_a_report_in_markdown_is_shown_as_text(new_artifact, monkeypatch):
    artifact = new_artifact(Markdown)
    path = Path(artifact.uri, "report.md")
    path.write_text("# Report\n\n<script>evil()</script>\n")
    artifact.uri = str(path)
    render = notebook._VIEWS[Markdown]
    assert render(artifact) == (
        f"<pre># Report\n\n&lt;script&gt;evil()&lt;/script&gt;\n</pre><p><code>{path}</code></p>"
    )
    monkeypatch.setattr(notebook, "_MAX_PAGE_BYTES", 10)
    assert "<pre>" not in render(artifact)
    assert f"<code>{path}</code>" in render(artifact)


def test_metrics_and_confusions_are_tables(new_artifact):
    metrics, matrix = new_artifact(Metrics), new_artifact(ClassificationMetrics)
    Path(metrics.uri, "metrics.json").write_text('{"accuracy": 0.51234567}')
    assert "<td>accuracy</td><td>0.512346</td>" in notebook.render_metrics(metrics)
    assert "has no confusion matrix" in notebook.render_matrix(matrix)
    names = [{"displayName": name} for name in ("cat", "<dog>")]
    rows = [{"row": [3.0, 1.0]}, {"row": [0.0, 1200.0]}]
    text = json.dumps({"annotationSpecs": names, "rows": rows})
    Path(matrix.uri, "confusion_matrix.json").write_text(text)
    shown = notebook.render_matrix(matrix)
    assert "<th>true class</th><th>cat</th><th>&lt;dog&gt;</th>" in shown
    assert "<td>&lt;dog&gt;</td><td>0</td><td>1,200</td>" in shown


def test_each_view_is_registered_for_its_type():
    notebook.register.__wrapped__()
    registry = visualizations.get_registry()
    for kind in notebook._VIEWS:
        assert registry.get_visualization(kind.TYPE_NAME).ARTIFACT_TYPE is kind


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


def test_the_page_of_a_model_is_in_a_frame(new_artifact: Callable[..., Any]):
    page = new_artifact(ModelPage)
    Path(page.uri, "model.html").write_text('<!doctype html><p title="a">&lt;dog&gt;')
    text = notebook._VIEWS[ModelPage](page)
    frame = re.search(r'srcdoc="([^"]*)"', text)
    assert frame
    assert html.unescape(frame[1]) == '<!doctype html><p title="a">&lt;dog&gt;'
    assert f"{page.uri}/model.html" in text
