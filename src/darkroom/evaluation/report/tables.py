"""Tables of scores as rows of texts, and as lines for a terminal."""

from __future__ import annotations

from collections.abc import Sequence

from darkroom.runtime.text import make_visible
from darkroom.targets.description import Cell, Table

# With more rows, those with the lowest score are shown in a terminal.
MAX_SHOWN_ROWS = 20
_MAX_CELL_CHARACTERS = 24


def format_cell(cell: Cell) -> str:
    """Returns a cell as text: a score has three decimals, and nothing is a dash."""
    if cell is None:
        return "-"
    if isinstance(cell, str):
        return cell
    return f"{cell:.3f}" if isinstance(cell, float) else f"{cell:,}"


def rank_rows(table: Table) -> Sequence[Sequence[Cell]]:
    """Returns the rows of a table, those with the lowest score first; unknown ones are last."""

    def rank(row: Sequence[Cell]) -> tuple[bool, Cell]:
        score = row[table.ranked_by]
        return (True, 0.0) if score is None else (False, score)

    return sorted(table.rows, key=rank)


def format_table(table: Table) -> list[str]:
    """Returns a table as lines for a person."""
    shown = table.rows
    if len(shown) > MAX_SHOWN_ROWS:
        known = [row for row in rank_rows(table) if row[table.ranked_by] is not None]
        shown = known[:MAX_SHOWN_ROWS]
    rows = [
        [make_visible(format_cell(cell), _MAX_CELL_CHARACTERS) for cell in row]
        for row in (table.header, *shown)
    ]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for first, *others in rows:
        cells = [each.rjust(width) for each, width in zip(others, widths[1:], strict=True)]
        lines.append(f"  {first.ljust(widths[0])}  {'  '.join(cells)}")
    if more := len(table.rows) - len(shown):
        lines.append(
            f"  and {more:,} more with a higher {table.header[table.ranked_by]}: see --json"
        )
    return lines
