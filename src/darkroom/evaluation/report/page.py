"""The page of a model: its strengths and failures, and how it was made."""

from __future__ import annotations

from collections.abc import Sequence

from darkroom.evaluation.report.facts import Facts
from darkroom.evaluation.report.figures import make_calibration, make_curve
from darkroom.evaluation.report.listing import list_code, list_data, list_input, list_recipe
from darkroom.evaluation.report.matrix import make_matrix, make_pictures
from darkroom.evaluation.report.pictures import Gallery, Shown
from darkroom.evaluation.report.result import (
    SLICE_HEADER,
    Evaluation,
    describe_split,
    format_headline,
    format_share,
    list_slices,
)
from darkroom.evaluation.report.style import PAGE_STYLE, make_picture_rules
from darkroom.evaluation.scores.metrics import ClassScore, Ints
from darkroom.runtime.markup import Html, element
from darkroom.runtime.text import make_visible
from darkroom.validation.report.parts import make_bar, make_more, make_page, make_table

MAX_CLASSES = 200
# Labels of the matrix that is shown.
_MAX_LABELS = 30
# Of a model that the user trained otherwise, nothing more is known.
_UNKNOWN = "How it was trained is not known: this is a model without the folder of its training."


def encode_page(found: Evaluation, facts: Facts, confusion: Ints, gallery: Gallery) -> str:
    """Returns the page.

    Args:
        found: The numbers.
        facts: How the model was made.
        confusion: [C, C], records by label and predicted label.
        gallery: The images to show.
    """
    labels = [each.label for each in found.metrics.classes]
    shown = choose_labels(confusion)
    figure = element("div", make_calibration(found.metrics.bins), class_="figures")
    sections = (
        _make_header(found),
        _make_course(facts),
        _make_classes(found.metrics.classes),
        make_matrix(confusion, labels, shown, gallery),
        _make_group(
            "Worst mistakes", "Wrong, and surest of it.", gallery.mistakes, labels, gallery
        ),
        _make_group(
            "Least certain",
            "The lowest scores, right or wrong.",
            gallery.uncertain,
            labels,
            gallery,
        ),
        _make_slices(found),
        element("section", element("h2", "Calibration"), figure),
        *_make_facts(found, facts),
    )
    style = PAGE_STYLE + make_picture_rules(dict(gallery.thumbnails))
    return make_page(f"Model: {format_headline(found)}", style, *sections)


def choose_labels(confusion: Ints) -> list[int]:
    """Returns the labels of the matrix, by number: all, or those with the most mistakes."""
    if len(confusion) <= _MAX_LABELS:
        return list(range(len(confusion)))
    wrong = confusion.sum(axis=0) + confusion.sum(axis=1) - 2 * confusion.diagonal()
    return sorted((-wrong).argsort(kind="stable")[:_MAX_LABELS].tolist())


def _make_header(found: Evaluation) -> Html:
    numbers = found.metrics
    low, high = numbers.interval
    tiles = [
        (
            f"{numbers.accuracy:.3f}",
            f"accuracy on {describe_split(found.split)}, 95 % interval {low:.3f} to {high:.3f} "
            "(Wilson)",
        ),
        (f"{numbers.macro_f1:.3f}", "macro F1"),
        (f"{numbers.calibration_error:.3f}", "calibration error"),
        (
            f"{numbers.majority_accuracy:.3f}",
            f"baseline: always {make_visible(numbers.majority_label)}",
        ),
        (f"{numbers.records:,}", f"records of {describe_split(found.split)}"),
    ]
    if numbers.top5_accuracy is not None:
        tiles.insert(1, (f"{numbers.top5_accuracy:.3f}", "label among the first five"))
    tone = "good" if low > numbers.majority_accuracy else "fair"
    if found.missed:
        tone = "bad"
    return element(
        "header",
        element("p", "darkroom · model", class_="kicker"),
        element("h1", format_headline(found), class_=f"verdict {tone}"),
        element(
            "div",
            *(
                element("div", element("b", value), element("span", name), class_="tile")
                for value, name in tiles
            ),
            class_="tiles",
        ),
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


def _make_classes(classes: Sequence[ClassScore]) -> Html:
    order = sorted(classes, key=lambda each: (each.recall is None, each.recall or 0.0))
    most = max(each.support for each in classes)
    rows = [
        [
            each.label,
            _make_share(each.recall),
            format_share(each.precision),
            format_share(each.f1),
            make_bar(each.support, most),
        ]
        for each in order[:MAX_CLASSES]
    ]
    more = len(order) - MAX_CLASSES
    return element(
        "section",
        element("h2", "Classes"),
        make_table(["class", "recall", "precision", "F1", "records"], rows, "bars"),
        make_more(f"and {more:,} more, with a higher recall") if more > 0 else None,
    )


def _make_share(value: float | None) -> Html | str:
    if value is None:
        return "-"
    bar = element("b", element("i", style=f"width:{100 * value:.1f}%"))
    zero = "" if value else " zero"
    return element("div", element("span", format_share(value)), bar, class_=f"bar{zero}")


def _make_group(
    title: str, what: str, images: Sequence[Shown], labels: Sequence[str], gallery: Gallery
) -> Html | None:
    if not images:
        return None
    return element(
        "section",
        element("h2", title),
        element("p", what, class_="more"),
        make_pictures(images, labels, gallery),
    )


def _make_slices(found: Evaluation) -> Html | None:
    rows = list_slices(found)
    if not rows:
        return None
    title = element("h2", "Columns, on the eval split")
    return element("section", title, make_table(SLICE_HEADER, rows, "plain"))


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
