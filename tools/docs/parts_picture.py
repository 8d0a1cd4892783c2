"""The picture of the parts: which imports from which, and which finds something by its name."""

from __future__ import annotations

import sys
from pathlib import Path
from textwrap import wrap

sys.path.append(str(Path(__file__).parents[2]))
from tests.packaging.test_layers import PARTS, find_by_name, find_imports, find_part, list_modules

# Left, top, width and height. What a part imports from is below it, or to the left of it.
_BOXES = {
    "top": (10, 10, 500, 56),
    "look": (10, 110, 110, 112),
    "make": (140, 110, 110, 112),
    "read": (270, 110, 110, 112),
    "learn": (400, 110, 110, 112),
    "core": (10, 266, 500, 76),
}
_BETWEEN_LOOK_AND_MAKE = 130
_HEAD = """<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 520 380" width="520" role="img">
<title>The parts of darkroom, and who imports from whom</title>
<style>
text { font: 14px sans-serif; fill: #1b2733; text-anchor: middle }
.box + text { font-weight: bold }
.box { fill: #eef2f7; stroke: #44566c }
line { stroke: #44566c; stroke-width: 1.5; marker-end: url(#end) }
.found { stroke-dasharray: 5 4 }
</style>
<marker id="end" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="6" markerHeight="6" orient="auto">
<path d="M0 0 8 4 0 8z" fill="#44566c"/>
</marker>
<rect width="520" height="380" fill="#fff"/>"""
_LEGEND = """<line x1="80" y1="362" x2="120" y2="362"/><text x="177" y="367">imports from</text>
<line class="found" x1="270" y1="362" x2="310" y2="362"/><text x="367" y="367">finds by name</text>
</svg>"""


def find_arrows() -> set[tuple[str, str, str]]:
    """Returns who imports from whom, as `("make", "core", "imported")`, or only finds by name."""
    imported, found = set(), set()
    for module in list_modules():
        part = find_part(module)
        names = [each.module for each in find_imports(module) if each.module in list_modules()]
        imported |= {(part, find_part(name)) for name in names}
        found |= {(part, find_part(name)) for name in find_by_name(module)}
    arrows = {(*pair, "imported") for pair in imported}
    arrows |= {(*pair, "found") for pair in found - imported}
    return {arrow for arrow in arrows if arrow[0] != arrow[1]}


def format_page(note: str) -> str:
    """Returns the picture as SVG.

    Args:
        note: Where it comes from.
    """
    lines = [_HEAD.replace("\n", f"\n<!-- {note} -->\n", 1)]
    lines += [_draw_arrow(*arrow) for arrow in sorted(find_arrows())]
    for part in PARTS:
        left, top, width, height = _BOXES[part.name]
        lines.append(f'<rect class="box" x="{left}" y="{top}" width="{width}" height="{height}"/>')
        texts = [part.name, *wrap(part.packages, width // 8)]
        for number, text in enumerate(texts):
            y = top + 20 * (number + 1)
            lines.append(f'<text x="{left + width // 2}" y="{y}">{text}</text>')
    return "\n".join([*lines, _LEGEND, ""])


def _draw_arrow(importer: str, imported: str, kind: str) -> str:
    (left, top, width, height), (end, end_top, end_width, _) = _BOXES[importer], _BOXES[imported]
    x1 = x2 = min((width, left + width // 2), (end_width, end + end_width // 2))[1]
    y1, y2 = top + height, end_top
    if top == end_top:
        x1, x2 = left, end + end_width
        y1 = y2 = top + height // 2
    elif width == end_width:
        x1 = x2 = _BETWEEN_LOOK_AND_MAKE
    return f'<line class="{kind}" x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}"/>'
