"""A table for people: as HTML, as Markdown, and as lines for a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from darkroom.runtime.markup import Html, element, escape_markdown, join_html, join_lines
from darkroom.runtime.text import make_visible

_MAX_CELL_CHARACTERS = 24
_BAR_CHARACTERS = 20


class Drawn(NamedTuple):
    """A cell that HTML draws: as a bar, a picture or in a color; elsewhere it is a text."""

    text: str
    html: Html


# Text, a number of something, a share or score, nothing, or what HTML draws.
Cell = str | int | float | None | Drawn


class Table(NamedTuple):
    """A table.

    Attributes:
        title: What it shows.
        header: The names of its columns. The first one names the rows.
        rows: Its rows.
        ranked_by: The column with the score by which rows are ranked, the lowest first.
        more: How many rows are left out, as part of a sentence; empty if none.
        gap: After how many rows `more` is said; after all if None.
        shares: The length of the bar of each row, from 0 to 1; empty without bars.
    """

    title: str
    header: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    ranked_by: int = 0
    more: str = ""
    gap: int | None = None
    shares: Sequence[float] = ()

    def rank(self) -> Table:
        """Returns it with the lowest score first; unknown ones are last."""

        def rank(row: Sequence[Cell]) -> tuple[bool, Cell]:
            score = row[self.ranked_by]
            return (True, 0.0) if score is None else (False, score)

        return self._replace(rows=sorted(self.rows, key=rank))

    def shorten(self, most: int, where: str = "") -> Table:
        """Returns it with its first rows, and how many more there are, and where."""
        left_out = len(self.rows) - most
        if left_out <= 0:
            return self
        return self._replace(rows=self.rows[:most], more=f"{left_out:,} more{where}")

    def to_html(self, class_: str = "") -> Html:
        """Returns it as HTML, without its title."""
        head = element("tr", *(element("th", name) for name in self.header))
        table = element(
            "table",
            element("thead", head) if self.header else None,
            element("tbody", *(element("tr", *map(_make_cell, row)) for row in self.rows)),
            class_=class_ or None,
        )
        more = element("p", f"and {self.more}", class_="more") if self.more else None
        return join_html(element("div", table, class_="scroll"), more)

    def to_markdown(self) -> str:
        """Returns it as Markdown, without its title and without columns of pictures alone."""
        texts = [[format_cell(cell) for cell in row] for row in (self.header, *self.rows)]
        columns = [column for column in zip(*texts, strict=True) if any(column)]
        header, *rows = zip(*columns, strict=True)
        lines = [header, ["---"] * len(header), *([*map(escape_markdown, row)] for row in rows)]
        table = "\n".join(f"| {' | '.join(line)} |" for line in lines)
        return f"{table}\n\n… and {self.more}" if self.more else table

    def to_lines(self, head: str = "", *, bars: bool = False) -> list[str]:
        """Returns it as lines; all columns but the first are numbers.

        Args:
            head: A text instead of the name of the first column, of which the table has more.
            bars: Whether rows get their bars.
        """
        rows = [
            [make_visible(format_cell(cell), _MAX_CELL_CHARACTERS) for cell in row]
            for row in (self.header, *self.rows)
        ]
        names = [head or f"  {rows[0][0]}", *(f"  {name}" for name, *_ in rows[1:])]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = []
        for name, (_, *cells) in zip(names, rows, strict=True):
            padded = (f"  {cell:>{width}}" for cell, width in zip(cells, widths[1:], strict=True))
            lines.append("".join([name.ljust(max(map(len, names))), *padded]))
        if bars:
            lengths = [0, *(round(_BAR_CHARACTERS * share) for share in self.shares)]
            lengths += [0] * (len(lines) - len(lengths))
            lines = [f"{line}  {'█' * n}".rstrip() for line, n in zip(lines, lengths, strict=True)]
        if self.more:
            place = len(lines) if self.gap is None else self.gap + 1
            lines.insert(place, f"  and {self.more}")
        return lines


def make_bar(count: float, share: float, tone: str = "") -> Drawn:
    """Returns a number with a bar, as long as a share from 0 to 1."""
    text = format_cell(count)
    bar = element("b", element("i", style=f"width:{100 * max(share, 0):.1f}%", class_=tone or None))
    class_ = "bar" if count > 0 else "bar zero"
    return Drawn(text, element("div", element("span", text), bar, class_=class_))


def format_cell(cell: Cell) -> str:
    """Returns a cell as text: a score has three decimals, and nothing is a dash."""
    if isinstance(cell, Drawn):
        return cell.text
    if cell is None:
        return "-"
    if isinstance(cell, str):
        return cell
    return f"{cell:.3f}" if isinstance(cell, float) else f"{cell:,}"


def _make_cell(cell: Cell) -> Html:
    if isinstance(cell, Drawn):
        return element("td", cell.html)
    is_number = isinstance(cell, int | float)
    return element("td", join_lines(format_cell(cell)), class_="number" if is_number else None)
