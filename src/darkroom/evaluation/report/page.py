"""The page of a model, and the same facts in Markdown: how good it is, and how it was made."""

from __future__ import annotations

from darkroom.evaluation.report.charts import make_chart, make_curve
from darkroom.evaluation.report.facts import Facts
from darkroom.evaluation.report.grid import make_grid_section, make_image_rows
from darkroom.evaluation.report.listing import list_data, list_input, list_recipe
from darkroom.evaluation.report.pictures import PagePictures, make_picture_rules
from darkroom.evaluation.report.result import Evaluation, format_headline, list_slices
from darkroom.runtime.markup import Html
from darkroom.runtime.page import (
    Page,
    PagePart,
    make_figures,
    make_header,
    make_note,
    make_section,
    make_table,
    make_text,
)
from darkroom.runtime.table import Cell, Table, make_bar
from darkroom.targets.description import Images, Summary, View
from darkroom.targets.kind import list_learned

_MAX_ROWS = 200
_ALL = "evaluation.json"
# Of a model that the user trained otherwise, nothing more is known.
_UNKNOWN = "How it was trained is not known: this is a model without the folder of its training."


def make_model_page(found: Evaluation, facts: Facts, pictures: PagePictures) -> Page:
    """Returns the page.

    Args:
        found: The numbers.
        facts: How the model was made.
        pictures: The images to show.
    """
    view, summary = pictures.view, found.summarize()
    parts = (
        _make_header(found, summary),
        _make_course(facts),
        make_section(summary.table.title, make_table(_rank_scores(summary.table), "bars")),
        *map(_make_facts_table, summary.tables),
        *map(_make_further, summary.more_tables),
        make_grid_section(view.grid, pictures) if view.grid else None,
        *(_make_group(group, pictures) for group in view.groups),
        _make_facts_table(list_slices(found)),
        _make_charts(view),
        None if facts.recipe or found.kind not in list_learned() else make_note(_UNKNOWN),
        *_list_facts(found, facts),
    )
    rules = make_picture_rules(pictures.thumbnails)
    return Page(f"Model: {format_headline(found)}", parts, rules)


def _make_header(found: Evaluation, summary: Summary) -> PagePart:
    return make_header(
        "model",
        format_headline(found),
        found.describe().tone,
        summary.tiles,
        *found.notes,
        markdown=Table("", ("measure", "value"), summary.numbers).to_markdown(),
    )


def _make_course(facts: Facts) -> PagePart | None:
    """Returns the curves of the loss and the metrics, epoch by epoch; None if they are not known.

    Only what both splits have is shown: a curve compares the two.
    """
    if not facts.history:
        return None
    names = [
        name
        for name in facts.history[-1]
        if name != "epoch" and not name.startswith("val_") and f"val_{name}" in facts.history[-1]
    ]
    order = sorted(names, key=lambda name: (name not in ("loss", "accuracy"), name != "loss", name))
    curves = (make_curve(facts.history, name, facts.exported_epoch) for name in order)
    return make_section("Training", make_figures(curves))


def _rank_scores(table: Table) -> Table:
    """Returns a table whose rows begin with their score, the lowest first, and end with a count."""
    by, last = table.ranked_by, len(table.header) - 1
    most = max(int(row[last] or 0) for row in table.rows)  # type: ignore[arg-type]
    between = [column for column in range(1, last) if column != by]

    def make_row(row: tuple[Cell, ...]) -> list[Cell]:
        score, count = row[by], int(row[last] or 0)  # type: ignore[arg-type]
        bar = make_bar(score, score) if isinstance(score, float) else score
        bars = make_bar(count, count / max(most, 1))
        return [row[0], bar, *(row[column] for column in between), bars]

    header = [table.header[column] for column in (0, by, *between, last)]
    rows = [make_row(tuple(row)) for row in table.rank().rows]
    where = f", with a higher {table.header[by]}: all are in {_ALL}"
    return Table(table.title, header, rows).shorten(_MAX_ROWS, where)


def _make_further(table: Table) -> PagePart | None:
    """Returns a table that the page shows as a picture, so that Markdown alone has it."""
    more = f"{table.more}: see {_ALL}." if table.more else ""
    found = make_table(table._replace(more=more))
    return make_section(table.title, found._replace(html=Html("")) if found else None)


def _make_group(group: Images, pictures: PagePictures) -> PagePart | None:
    if not group.numbers:
        return None
    said = make_text(group.what, "more").html
    return make_section(
        group.title, PagePart(said), PagePart(make_image_rows(group.numbers, pictures))
    )


def _make_charts(view: View) -> PagePart | None:
    charts = make_figures(map(make_chart, view.charts)) if view.charts else None
    return make_section(view.charts_title, charts)


def _make_facts_table(table: Table) -> PagePart | None:
    return make_section(table.title, make_table(table, "plain"))


def _list_facts(found: Evaluation, facts: Facts) -> list[PagePart | None]:
    made = "model" if found.kind in list_learned() else "results"
    groups = {
        "Input": list_input(facts),
        "Recipe": list_recipe(facts),
        "Data": list_data(facts),
        "Code and model": [*facts.code.items(), (f"{made} (SHA-256)", found.model_sha256)],
    }
    return [_make_facts_table(Table(title, ("", ""), rows)) for title, rows in groups.items()]
