"""The confusion matrix, whose cells show images, and rows of images with their predictions."""

from __future__ import annotations

from collections.abc import Sequence

from darkroom.evaluation.report.pictures import Gallery, Shown
from darkroom.evaluation.scores.metrics import Ints
from darkroom.runtime.markup import Html, element, join_html
from darkroom.runtime.text import format_count
from darkroom.validation.report.parts import make_more

# In a larger matrix, an image in each cell would be too small to see.
_MAX_WITH_PICTURES = 12
# Longer labels stand upright above their columns.
_FLAT_CHARACTERS = 4


def make_matrix(
    confusion: Ints, labels: Sequence[str], shown: Sequence[int], gallery: Gallery
) -> Html:
    """Returns the section of the matrix.

    Args:
        confusion: [C, C], records by label and predicted label.
        labels: The C labels.
        shown: The numbers of the labels that have a row and a column.
        gallery: The images.
    """
    head = element("tr", element("th"), *(element("th", labels[n]) for n in shown))
    rows = (
        element(
            "tr",
            element("th", labels[row], scope="row"),
            *(_make_cell(confusion, row, column, labels, gallery, len(shown)) for column in shown),
        )
        for row in shown
    )
    form = "matrix flat" if max(len(labels[n]) for n in shown) <= _FLAT_CHARACTERS else "matrix"
    table = element("table", element("thead", head), element("tbody", *rows), class_=form)
    left_out = len(labels) - len(shown)
    what = "Rows are labels, columns predictions. A click on a cell opens its images, and "
    what += "another one closes them."
    return element(
        "section",
        element("h2", "Confusion"),
        element("p", what, class_="more"),
        element("div", table, class_="scroll"),
        make_more(f"{format_count(left_out, 'label')} with fewer mistakes are left out")
        if left_out
        else None,
    )


def make_pictures(images: Sequence[Shown], labels: Sequence[str], gallery: Gallery) -> Html:
    """Returns images in rows, each with its label, its prediction and the score."""
    return element("div", *(_make_figure(each, labels, gallery) for each in images), class_="pics")


def _make_cell(
    confusion: Ints, row: int, column: int, labels: Sequence[str], gallery: Gallery, size: int
) -> Html:
    count = int(confusion[row, column])
    if not count:
        return element("td", "·", class_="none")
    share = 100 * count / max(int(confusion[row].sum()), 1)
    tone = "right" if row == column else "wrong"
    images = gallery.cells.get((row, column), ())
    small = _make_picture(images[0], gallery) if images and size <= _MAX_WITH_PICTURES else None
    said = f"{labels[row]}, taken for {labels[column]}"
    title = said if row != column else f"{labels[row]}, found"
    sheet = element(
        "div",
        element("h3", f"{title}: {count:,}"),
        make_pictures(images, labels, gallery),
        make_more(f"{len(images)} of {count:,} are shown.") if len(images) < count else None,
        class_="sheet",
    )
    opened = element("summary", f"{count:,}", small, title=title)
    inner = element("details", opened, sheet, name="cell") if images else f"{count:,}"
    return element("td", inner, class_=tone, style=f"--share:{10 + 0.6 * share:.0f}%")


def _make_figure(each: Shown, labels: Sequence[str], gallery: Gallery) -> Html:
    name = gallery.names.get(each.number, "")
    right = each.label == each.predicted
    said = element("b", labels[each.predicted], class_="yes" if right else "no")
    truth = None if right else join_html(", is ", element("b", labels[each.label]))
    caption = element(
        "figcaption",
        join_html(said, f" {each.score:.2f}", truth),
        # The last two parts of its path.
        element("small", "/".join(name.rsplit("/", 2)[-2:]), title=name),
    )
    return element("figure", _make_picture(each, gallery), caption)


def _make_picture(each: Shown, gallery: Gallery) -> Html:
    name = gallery.names.get(each.number, "")
    if each.number not in gallery.thumbnails:
        return element("span", class_="pic", role="img", aria_label=f"no picture of {name}")
    return element("span", class_=f"pic i{each.number}", role="img", aria_label=name)
