"""The result of a public function, which prints itself: as text, as JSON, and in a notebook."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, NamedTuple

from darkroom.runtime import by_name
from darkroom.runtime.table import Table

if TYPE_CHECKING:
    from darkroom.runtime.markup import Html

GOOD, FAIR, BAD = "good", "fair", "bad"
_LEAST_WIDTH = 10


class Fact(NamedTuple):
    """A name and its value.

    Attributes:
        name: The name.
        value: The value, in one line or several.
        table: More of it, in columns of numbers; None without.
    """

    name: str
    value: str
    table: Table | None = None


# A sentence, a fact, a table; or a list of which a card shows the first ones.
ResultRow = str | Fact | Table | list[str] | list[Fact]


class Outcome(NamedTuple):
    """What a result says to people.

    Attributes:
        title: The result in a few words, the head of its card.
        rows: What its text and its card say, in this order.
        tone: `GOOD`, `FAIR` or `BAD`, the color of the title.
        more: What its card has below.
    """

    title: str
    rows: Sequence[ResultRow]
    tone: str = ""
    more: Sequence[Html | None] = ()

    def to_card(self) -> str:
        """Returns it as a card."""
        card: str = by_name.find("make_card")(self)
        return card


class Result:
    """What a public function returns; a dataclass."""

    def describe(self) -> Outcome:
        """Returns what it says to people."""
        raise NotImplementedError

    def to_dict(self) -> dict[str, Any]:
        """Returns its values by name, as JSON knows them."""
        return asdict(self)  # type: ignore[call-overload, no-any-return]

    def to_text(self, *, bars: bool = False) -> str:
        """Returns it as text for a terminal.

        Args:
            bars: Whether tables of classes have bars.
        """
        return "\n".join(format_rows(self.describe().rows, bars=bars))

    def _repr_html_(self) -> str:
        """Returns it as a notebook shows it."""
        return self.describe().to_card()


def list_facts(values: Mapping[str, str]) -> list[Fact]:
    """Returns values by their names as facts; empty ones are left out."""
    return [Fact(name, value) for name, value in values.items() if value]


def format_rows(rows: Iterable[ResultRow], *, bars: bool = False) -> list[str]:
    """Returns rows as lines for a terminal, with the values of facts below each other."""
    flat = [each for row in rows for each in (row if isinstance(row, list) else [row])]
    width = max([_LEAST_WIDTH, *(len(row.name) for row in flat if isinstance(row, Fact))])
    lines: list[str] = []
    for row in flat:
        if isinstance(row, Table):
            lines += row.to_lines(bars=bars)
        elif isinstance(row, str):
            lines.append(row)
        else:
            first, *others = row.value.split("\n")
            head = f"{row.name:{width}} {first}"
            lines += row.table.to_lines(head, bars=bars) if row.table else [head]
            lines += [f"{'':{width}} {line}" for line in others]
    return lines
