"""The model card: the facts of the page in Markdown, for a repository or a registry."""

from __future__ import annotations

from collections.abc import Sequence

from darkroom.evaluation.report.facts import Facts
from darkroom.evaluation.report.listing import list_code, list_data, list_input, list_recipe
from darkroom.evaluation.report.result import (
    CLASS_HEADER,
    MAX_CONFUSIONS,
    SLICE_HEADER,
    Evaluation,
    format_headline,
    list_class_cells,
    list_numbers,
    list_slices,
)
from darkroom.runtime.markup import escape_markdown, make_markdown_table

MAX_CLASSES = 200
_MAX_CONFUSIONS = 10


def encode_card(found: Evaluation, facts: Facts) -> str:
    """Returns the card, with all text of the user escaped."""
    classes = found.metrics.classes
    confusions = [
        (each.label, each.predicted, f"{each.records:,}")
        for each in found.confusions[:_MAX_CONFUSIONS]
    ]
    more = len(classes) - MAX_CLASSES
    parts = [
        f"# Model: {escape_markdown(format_headline(found))}",
        make_markdown_table(("measure", "value"), list_numbers(found)),
        *(escape_markdown(note) for note in found.notes),
        "## Classes",
        make_markdown_table(CLASS_HEADER, map(list_class_cells, classes[:MAX_CLASSES])),
        f"… and {more:,} more: all are in evaluation.json." if more > 0 else "",
        *_encode_section("Confusion", ("label", "taken for", "records"), confusions),
        _count_more_confusions(found),
        *_encode_section("Columns, on the eval split", SLICE_HEADER, list_slices(found)),
        *_encode_section("Recipe", ("option", "value"), list_recipe(facts)),
        *_encode_section("Input", ("", ""), list_input(facts)),
        *_encode_section("Data", ("part", ""), list_data(facts)),
        "## Code and model",
        make_markdown_table(("", ""), [*list_code(facts), ("model (SHA-256)", found.model_sha256)]),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _count_more_confusions(found: Evaluation) -> str:
    """Returns a line on the pairs of labels that the card leaves out; without any, nothing."""
    more = len(found.confusions) - _MAX_CONFUSIONS
    if more <= 0:
        return ""
    # The result itself has no more than these.
    least = "at least " if len(found.confusions) == MAX_CONFUSIONS else ""
    return f"… and {least}{more:,} more: see evaluation.json."


def _encode_section(
    title: str, header: Sequence[str], rows: Sequence[Sequence[str]]
) -> tuple[str, ...]:
    return (f"## {title}", make_markdown_table(header, rows)) if rows else ()
