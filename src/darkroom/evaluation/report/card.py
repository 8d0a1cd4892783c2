"""The model card: the facts of the page in Markdown, for a repository or a registry."""

from __future__ import annotations

from collections.abc import Sequence

from darkroom.evaluation.report.facts import Facts
from darkroom.evaluation.report.listing import list_code, list_data, list_input, list_recipe
from darkroom.evaluation.report.result import Evaluation, format_headline, list_slices
from darkroom.evaluation.report.tables import format_cell
from darkroom.runtime.markup import escape_markdown, make_markdown_table
from darkroom.targets.description import Table

_MAX_ROWS = 200


def encode_card(found: Evaluation, facts: Facts) -> str:
    """Returns the card, with all text of the user escaped."""
    summary = found.summarize()
    parts = [
        f"# Model: {escape_markdown(format_headline(found))}",
        make_markdown_table(("measure", "value"), summary.numbers),
        *(escape_markdown(note) for note in found.notes),
        *_encode_table(summary.table),
        *(part for table in summary.more_tables for part in _encode_table(table)),
        *_encode_table(list_slices(found)),
        *_encode_section("Recipe", ("option", "value"), list_recipe(facts)),
        *_encode_section("Input", ("", ""), list_input(facts)),
        *_encode_section("Data", ("part", ""), list_data(facts)),
        "## Code and model",
        make_markdown_table(("", ""), [*list_code(facts), ("model (SHA-256)", found.model_sha256)]),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _encode_table(table: Table) -> tuple[str, ...]:
    rows = [[*map(format_cell, row)] for row in table.rows]
    left_out = len(rows) - _MAX_ROWS
    more = f"{left_out:,} more" if left_out > 0 else table.more
    section = _encode_section(table.title, table.header, rows[:_MAX_ROWS])
    return (*section, f"… and {more}: see evaluation.json.") if more else section


def _encode_section(
    title: str, header: Sequence[str], rows: Sequence[Sequence[str]]
) -> tuple[str, ...]:
    return (f"## {title}", make_markdown_table(header, rows)) if rows else ()
