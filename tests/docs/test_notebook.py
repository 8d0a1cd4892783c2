"""The notebook of the documentation, in a real kernel of Jupyter, and what people see in it."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import pytest

nbclient = pytest.importorskip("nbclient")
nbformat = pytest.importorskip("nbformat")

pytestmark = pytest.mark.tensorflow

NOTEBOOK = Path(__file__).parents[2] / "docs" / "guides" / "notebook.ipynb"
CONVERT = 'convert(work / "images"'
# After the cells of the notebook, in the same kernel.
MORE = [
    "darkroom.convert('missing.csv', 'out')",
    "!{sys.executable} -m darkroom.cli verify {work}/records",
    "import os; os.environ['DARKROOM_PROGRESS'] = '0'; darkroom.verify(work / 'records').is_sound",
]


@pytest.fixture(scope="module")
def cells(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[dict[str, Any]]]:
    """The outputs of each cell by its code."""
    from jupyter_client.manager import AsyncKernelManager

    folder = tmp_path_factory.mktemp("notebook")
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    more = [nbformat.v4.new_code_cell(code) for code in ("import sys", *MORE)]
    notebook.cells += more
    more[1].metadata["tags"] = ["raises-exception"]
    manager = AsyncKernelManager(transport="ipc", connection_file=str(folder / "kernel.json"))
    manager.kernel_spec.argv = [
        *(sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}")
    ]
    client = nbclient.NotebookClient(
        notebook, km=manager, timeout=300, resources={"metadata": {"path": str(folder)}}
    )
    client.execute()
    return {cell.source: cell.outputs for cell in notebook.cells if cell.cell_type == "code"}


def find(cells: dict[str, list[dict[str, Any]]], text: str) -> list[dict[str, Any]]:
    (outputs,) = (outputs for code, outputs in cells.items() if text in code)
    return outputs


def get_page(outputs: list[dict[str, Any]]) -> str:
    (result,) = (each for each in outputs if each.output_type == "execute_result")
    assert len(result.data["text/plain"]) < 300
    return result.data["text/html"]


def test_the_notebook_is_kept_without_outputs():
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    nbformat.validate(notebook)
    assert all(not cell.outputs for cell in notebook.cells if cell.cell_type == "code")


def test_each_result_is_shown_as_html(cells):
    converted = get_page(find(cells, CONVERT))
    assert "Converted: 60 records" in converted
    assert "<td>Rejected</td><td>1  (not_an_image 1)</td>" in converted
    assert 'src="data:image/png;base64,' in get_page(find(cells, "darkroom.inspect"))
    assert "The dataset is sound" in get_page(find(cells, 'darkroom.verify(work / "records")'))
    assert "Passed" in get_page(find(cells, "darkroom.validate"))
    assert "more than once" in get_page(find(cells, "darkroom.find_duplicates"))
    assert "60 images for tensorflow" in get_page(find(cells, "darkroom.load"))
    assert "records (95 % interval" in get_page(find(cells, "darkroom.evaluate"))
    assert "20 predictions" in get_page(find(cells, "darkroom.predict"))


def test_what_needs_no_tensorflow_prints_nothing(cells):
    calls = (CONVERT, "darkroom.inspect", 'verify(work / "rec', "darkroom.validate", "find_dup")
    kinds = {each.output_type for call in calls for each in find(cells, call)}
    assert kinds == {"display_data", "execute_result"}


def test_the_model_learns(cells):
    (result,) = find(cells, "model.fit")
    assert {"accuracy", "loss", "val_accuracy"} < set(eval(result.data["text/plain"]))


def test_progress_is_one_line_below_the_cell_and_can_be_switched_off(cells):
    (line,) = (each for each in find(cells, CONVERT) if each.output_type == "display_data")
    assert re.fullmatch(r"Converting done in .* s, 61 rows .*/s", line.data["text/plain"])
    (value,) = find(cells, "DARKROOM_PROGRESS")
    assert value.data["text/plain"] == "True"


def test_a_command_in_a_notebook_draws_nothing(cells):
    text = "".join(each.text for each in find(cells, "!{sys.executable}"))
    assert "records is sound" in text
    assert "\x1b" not in text
    assert len(text.splitlines()) < 10


def test_an_error_has_a_short_traceback_with_one_exception_and_its_hint(cells):
    (error,) = (each for each in find(cells, "missing.csv") if each.output_type == "error")
    text = re.sub(r"\x1b\[[0-9;]*m", "", "\n".join(error.traceback))
    assert len(text.splitlines()) <= 25
    assert len(re.findall(r"^\w+Error\b", text, re.MULTILINE)) == 2  # its head and its end
    assert "direct cause" not in text
    assert text.endswith("missing.csv does not exist. Check the path.")
    (said,) = (each for each in find(cells, "imges") if each.output_type == "stream")
    assert "imges does not exist. Did you mean" in said.text
