"""The page of a model: its strengths and failures, and how it was made."""

from __future__ import annotations

from darkroom.evaluation.report.facts import Facts
from darkroom.evaluation.report.figures import make_chart, make_curve
from darkroom.evaluation.report.grid import make_grid, make_pictures
from darkroom.evaluation.report.listing import list_code, list_data, list_input, list_recipe
from darkroom.evaluation.report.pictures import Gallery
from darkroom.evaluation.report.result import Evaluation, format_headline, list_slices
from darkroom.evaluation.report.style import PAGE_STYLE, make_picture_rules
from darkroom.evaluation.report.tables import format_cell, rank_rows
from darkroom.runtime.markup import Html, element
from darkroom.targets.description import Cell, Images, Table, View
from darkroom.validation.report.parts import make_bar, make_more, make_page, make_table

_MAX_ROWS = 200
# Of a model that the user trained otherwise, nothing more is known.
_UNKNOWN = "How it was trained is not known: this is a model without the folder of its training."


def encode_page(found: Evaluation, facts: Facts, gallery: Gallery) -> str:
    """Returns the page.

    Args:
        found: The numbers.
        facts: How the model was made.
        gallery: The images to show.
    """
    view = gallery.view
    sections = (
        _make_header(found),
        _make_course(facts),
        _make_scores(found.summarize().table),
        make_grid(view.grid, gallery) if view.grid else None,
        *(_make_group(group, gallery) for group in view.groups),
        _make_slices(found),
        _make_charts(view),
        *_make_facts(found, facts),
    )
    style = PAGE_STYLE + make_picture_rules(dict(gallery.thumbnails))
    return make_page(f"Model: {format_headline(found)}", style, *sections)


def _make_header(found: Evaluation) -> Html:
    summary = found.summarize()
    tone = "good" if summary.is_good else "fair"
    if found.missed:
        tone = "bad"
    tiles = (
        element("div", element("b", value), element("span", name), class_="tile")
        for value, name in summary.tiles
    )
    return element(
        "header",
        element("p", "darkroom · model", class_="kicker"),
        element("h1", format_headline(found), class_=f"verdict {tone}"),
        element("div", *tiles, class_="tiles"),
        *(element("p", note, class_="note") for note in found.notes),
    )


def _make_course(facts: Facts) -> Html | None:
    if not facts.history:
        return None
    names = [
        name
        for name in facts.history[-1]
        if name != "epoch" and not name.startswith("val_") and f"val_{name}" in facts.history[-1]
    ]
    order = sorted(names, key=lambda name: (name not in ("loss", "accuracy"), name != "loss", name))
    curves = (make_curve(facts.history, name, facts.exported_epoch) for name in order)
    return element("section", element("h2", "Training"), element("div", *curves, class_="figures"))


def _make_scores(table: Table) -> Html:
    """Returns a table whose rows begin with their score, the lowest first, and end with a count."""
    name, score = table.header[0], table.header[table.ranked_by]
    most = max(int(row[-1] or 0) for row in table.rows)
    between = [n for n in range(1, len(table.header) - 1) if n != table.ranked_by]
    rows = [
        [
            format_cell(row[0]),
            _make_share(row[table.ranked_by]),
            *(format_cell(row[column]) for column in between),
            make_bar(int(row[-1] or 0), most),
        ]
        for row in rank_rows(table)[:_MAX_ROWS]
    ]
    more = len(table.rows) - _MAX_ROWS
    header = [name, score, *(table.header[column] for column in between), table.header[-1]]
    return element(
        "section",
        element("h2", table.title),
        make_table(header, rows, "bars"),
        make_more(f"and {more:,} more, with a higher {score}") if more > 0 else None,
    )


def _make_share(value: Cell) -> Html | str:
    if not isinstance(value, float):
        return format_cell(value)
    bar = element("b", element("i", style=f"width:{100 * max(value, 0.0):.1f}%"))
    zero = "" if value > 0 else " zero"
    return element("div", element("span", format_cell(value)), bar, class_=f"bar{zero}")


def _make_group(group: Images, gallery: Gallery) -> Html | None:
    if not group.numbers:
        return None
    return element(
        "section",
        element("h2", group.title),
        element("p", group.what, class_="more"),
        make_pictures(group.numbers, gallery),
    )


def _make_charts(view: View) -> Html | None:
    if not view.charts:
        return None
    charts = element("div", *map(make_chart, view.charts), class_="figures")
    return element("section", element("h2", view.charts_title), charts)


def _make_slices(found: Evaluation) -> Html | None:
    table = list_slices(found)
    if not table.rows:
        return None
    rows = [[*map(format_cell, row)] for row in table.rows]
    title = element("h2", table.title)
    return element("section", title, make_table(table.header, rows, "plain"))


def _make_facts(found: Evaluation, facts: Facts) -> list[Html]:
    groups = {
        "Input": list_input(facts),
        "Recipe": list_recipe(facts),
        "Data": list_data(facts),
        "Code and model": [*list_code(facts), ("model (SHA-256)", found.model_sha256)],
    }
    made = [
        element("section", element("h2", title), make_table(["", ""], rows, "plain"))
        for title, rows in groups.items()
        if rows
    ]
    return made if facts.recipe else [element("p", _UNKNOWN, class_="note"), *made]
