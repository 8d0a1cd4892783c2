"""The site: `make docs` builds it strictly, so each warning is an error."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tools" / "docs"))

project = "darkroom"
copyright = "The darkroom developers"
# The first warns about public names without documentation.
extensions = ["public_names", "myst_parser", "notebooks"]
# Written by `make docs`: the three folders as the one package that they are installed as.
public_names_path = "build/docs-package"
root_doc = "index"
exclude_patterns = ["images/*.py"]

myst_enable_extensions = ["fieldlist"]
myst_heading_anchors = 4
python_maximum_signature_line_length = 80
toc_object_entries_show_parents = "hide"

# Furo brings its own fonts and scripts: the site needs no network.
html_theme = "furo"
html_title = "darkroom"
html_copy_source = False
html_static_path = ["static"]
html_css_files = ["tables.css"]
# People copy JSON from the tables.
smartquotes = False
# Blocks without a language are output, not Python.
highlight_language = "none"
