"""A grid of counts whose cells show images, and rows of images with their captions."""

from __future__ import annotations

from collections.abc import Sequence

from darkroom.evaluation.report.pictures import PagePictures
from darkroom.images.shapes import draw_over
from darkroom.runtime.markup import Html, element, join_html
from darkroom.runtime.page import PagePart, make_section
from darkroom.targets.description import Grid, GridCell

# In a larger grid, an image in each cell would be too small to see.
_MAX_WITH_PICTURES = 12
# Longer names stand upright above their columns.
_FLAT_CHARACTERS = 4


def make_grid_section(grid: Grid, pictures: PagePictures) -> PagePart | None:
    """Returns the section of a grid.

    Args:
        grid: The grid.
        pictures: The images.
    """
    head = element("tr", element("th"), *(element("th", name) for name in grid.names))
    is_small = len(grid.names) <= _MAX_WITH_PICTURES
    rows = (
        element(
            "tr",
            element("th", name, scope="row"),
            *(_make_cell(cell, pictures, with_picture=is_small) for cell in cells),
        )
        for name, cells in zip(grid.names, grid.cells, strict=True)
    )
    form = "matrix flat" if max(map(len, grid.names)) <= _FLAT_CHARACTERS else "matrix"
    table = element("table", element("thead", head), element("tbody", *rows), class_=form)
    html = join_html(
        element("p", grid.what, class_="more"),
        element("div", table, class_="scroll"),
        element("p", grid.more, class_="more") if grid.more else None,
    )
    return make_section(grid.title, PagePart(html))


def make_image_rows(numbers: Sequence[int], pictures: PagePictures) -> Html:
    """Returns images in rows, each with its caption."""
    return element("div", *(_make_figure(each, pictures) for each in numbers), class_="pics")


def _make_cell(cell: GridCell, pictures: PagePictures, *, with_picture: bool) -> Html:
    """Returns the cell with its count, which opens to the pictures that are shown of it.

    Its share gives the strength of its color, by `--share` of the page's style sheet.
    """
    if not cell.images:
        return element("td", "·", class_="none")
    small = _make_picture(cell.numbers[0], pictures) if cell.numbers and with_picture else None
    count, shown = f"{cell.images:,}", len(cell.numbers)
    sheet = element(
        "div",
        element("h3", f"{cell.title}: {count}"),
        make_image_rows(cell.numbers, pictures),
        element("p", f"{shown} of {count} are shown.", class_="more")
        if shown < cell.images
        else None,
        class_="sheet",
    )
    opened = element("summary", count, small, title=cell.title)
    inner = element("details", opened, sheet, name="cell") if cell.numbers else count
    tone = "right" if cell.is_right else "wrong"
    # How strong its color is; a cell with few images has some, too.
    return element("td", inner, class_=tone, style=f"--share:{10 + 60 * cell.share:.0f}%")


def _make_figure(number: int, pictures: PagePictures) -> Html:
    name, said = pictures.names.get(number, ""), pictures.view.captions[number]
    answer = element("b", said.answer, class_="yes" if said.is_right else "no")
    truth = (
        element("span", "is ", element("b", said.truth), class_="truth")
        if said.truth and not said.is_right
        else None
    )
    caption = element(
        "figcaption",
        join_html(answer, f" {said.score}" if said.score else None, truth),
        # The last two parts of its path.
        element("small", "/".join(name.rsplit("/", 2)[-2:]), title=name),
    )
    return element("figure", _make_picture(number, pictures), caption)


def _make_picture(number: int, pictures: PagePictures) -> Html:
    name = pictures.names.get(number, "")
    if number not in pictures.thumbnails:
        return element("span", class_="pic", role="img", aria_label=f"no picture of {name}")
    shapes = pictures.view.shapes.get(number)
    drawn = draw_over(shapes, pictures.sizes[number]) if shapes else None
    return element("span", drawn, class_=f"pic i{number}", role="img", aria_label=name)
