"""Sphinx extension: shows notebooks as pages, the text and the code of their cells."""

from __future__ import annotations

import json
from typing import Any

from sphinx.application import Sphinx


def setup(app: Sphinx) -> dict[str, Any]:
    """Registers the extension; called by Sphinx."""
    app.add_source_suffix(".ipynb", "markdown")
    app.connect("source-read", _replace_source)
    return {"parallel_read_safe": True}


def _replace_source(app: Sphinx, page: str, source: list[str]) -> None:
    if app.env.doc2path(page).suffix == ".ipynb":
        source[0] = format_page(source[0])


def format_page(notebook: str) -> str:
    """Returns the JSON of a notebook as Markdown."""
    return "\n\n".join(map(_format_cell, json.loads(notebook)["cells"])) + "\n"


def _format_cell(cell: dict[str, Any]) -> str:
    text = "".join(cell["source"])
    return f"```python\n{text}\n```" if cell["cell_type"] == "code" else text
