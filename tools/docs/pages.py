"""Writes the pages of docs/ that come from the code, and one picture.

    python tools/docs/pages.py            writes them
    python tools/docs/pages.py --check    exits 1 when a page differs, and names it

`PAGES` is the one place that says which page comes from where. Run in an environment with TFX.
"""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path

ROOT = Path(__file__).parents[2]
# Their neighbours, and the marks of the tests.
PATHS = [str(ROOT / "tools" / "docs"), str(ROOT / "tests" / "bad_input")]
FOLDER = ROOT / "docs"
# Page: the module beside this file whose `format_page` returns its text.
PAGES = {
    "images/parts.svg": "parts_picture",
    "reference/command-line.md": "command_line_page",
    "reference/components.md": "components_page",
    "reference/kfp-components.md": "kfp_components_page",
    "reference/options.md": "options_page",
    "reference/rejects.md": "rejects_page",
}
GENERATED = (
    "This page is generated from the code by `make reference`: change the code, not the page."
)


def format_page(name: str) -> str:
    """Returns the text of a page.

    Args:
        name: Its path below docs/, one of `PAGES`.
    """
    sys.path[:0] = [path for path in PATHS if path not in sys.path]
    text: str = import_module(PAGES[name]).format_page(GENERATED)
    return text


def main() -> int:
    """Writes the pages, or with `--check` compares them; returns the exit code."""
    code = 0
    for name in PAGES:
        path, text = FOLDER / name, format_page(name)
        if "--check" not in sys.argv:
            path.write_text(text, encoding="utf-8")
        elif not path.is_file() or path.read_text(encoding="utf-8") != text:
            print(f"{path.relative_to(ROOT)} differs: run make reference", file=sys.stderr)
            code = 1
    return code


if __name__ == "__main__":
    sys.exit(main())
