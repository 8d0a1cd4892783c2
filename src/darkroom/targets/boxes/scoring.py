"""What the results of a detector say, and how good they are."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from darkroom.runtime.table import Table
from darkroom.runtime.text import format_count
from darkroom.targets.boxes.matching import Truth
from darkroom.targets.boxes.metrics import BoxesMetrics
from darkroom.targets.boxes.results import Results
from darkroom.targets.boxes.verdicts import (
    CONFUSED,
    ERRORS,
    FALSE,
    FOUND,
    NOT_JUDGED,
    Verdicts,
)
from darkroom.targets.description import Caption, Images, Shape, Summary, View
from darkroom.targets.label.view import MAX_IN_CELL, choose_labels, leave_out, make_grid
from darkroom.targets.learned import Learned
from darkroom.targets.scoring import MAX_LISTED, Ints, Scores

# The colors of the list and of results, and what a page says of them.
TRUTH_TONE, RESULT_TONE = 4, 1
COLORS_SAID = "Teal is the list, orange are results."
_NOTHING = "(nothing)"
_OPENS = "A click on a cell opens its images, and another one closes them."
# Images of the cells of the grid: these are larger than others.
_MAX_PICTURES = 60


class BoxesScoring(Scores):
    """See `darkroom.targets.scoring.Scores`; answers are results, and what is said of each."""

    metrics = BoxesMetrics
    names_are = "classes"
    score_name = "average precision"
    scalars = ("average_precision", "average_precision_50", "average_precision_75")

    def list_recalls(self, metrics: BoxesMetrics) -> Mapping[str, float | None]:
        """Returns the recall of each class, from the best score on."""
        return {each.label: each.recall for each in metrics.classes}

    def summarize(self, metrics: BoxesMetrics, where: str) -> Summary:
        """Returns average precision, by size and class, and the errors."""
        first, half, strict = (getattr(metrics, name) for name in self.scalars)
        best, errors = metrics.best, metrics.errors
        kinds = [name for name in ("missing", *ERRORS.values()) if errors[name]]
        said = ", ".join(f"{name} {errors[name]:,}" for name in kinds) or "none"
        sizes = ", ".join(
            f"{name} {'-' if each is None else f'{each:.4f}'}"
            for name, each in metrics.sizes.items()
        )
        silent = format_count(metrics.silent, "image")
        return Summary(
            headline=f"Average precision {first:.3f} on {where}, {half:.3f} at 0.5",
            numbers=[
                (
                    "AP",
                    f"{first:.4f} on {where} of {metrics.records:,} images (average precision at "
                    "0.5 to 0.95)",
                ),
                ("AP at 0.5", f"{half:.4f} (at 0.75 {strict:.4f})"),
                ("AP by size", sizes),
                (
                    "Best score",
                    f"{best.score:.3f}: F1 {best.f1:.4f}, precision {best.precision or 0:.4f}, "
                    f"recall {best.recall:.4f}",
                ),
                ("Errors", f"{said} (from the best score on)"),
            ],
            tiles=[
                (f"{first:.3f}", f"average precision on {where}, at 0.5 to 0.95"),
                (f"{half:.3f}", "at 0.5"),
                (f"{best.f1:.3f}", f"F1 from the score {best.score:.2f} on"),
                *((f"{errors[name]:,}", _TILES[name]) for name in _TILES),
                (f"{metrics.objects:,}", f"objects of {metrics.records:,} images"),
            ],
            is_good=half >= 0.5,
            table=_list_classes(metrics),
            tables=[_list_points(metrics)],
            notes=[f"{silent} of {where} without a result."] if metrics.silent else [],
        )

    def show(self, answers: tuple[Results, Verdicts], truth: Truth, learned: Learned) -> View:
        """Returns the images with the most errors, and which class is taken for which."""
        found, verdicts = answers
        errors = _count_errors(found, verdicts, truth)
        order = np.argsort(-errors.sum(0), kind="stable")
        worst = order[errors.sum(0)[order] > 0][:MAX_LISTED].tolist()
        confusion, cells = _fill_cells(found, verdicts, truth, len(learned.names))
        shown = choose_labels(confusion)
        known = {place: each for place, each in cells.items() if {*place} <= {*shown}}
        opened = leave_out(known, _MAX_PICTURES)
        grid = make_grid(confusion, [*learned.names, _NOTHING], shown, opened)
        numbers = {n for group in (worst, *opened.values()) for n in group}
        return View(
            {n: _make_caption(errors[:, n]) for n in numbers},
            [Images("Worst images", f"Those with the most errors first. {COLORS_SAID}", worst)],
            grid._replace(what=f"Objects: rows are the list, columns results. {_OPENS}"),
            shapes=_list_shapes(found, verdicts, truth, learned.names, numbers),
        )


_TILES = {
    "missing": "missing: objects without a result",
    "false": "false: results without an object",
    "confused": "confused: results with another class",
    "shifted": "shifted: less than half in common",
    "doubled": "doubled: a second result of an object",
}


def _list_classes(metrics: BoxesMetrics) -> Table:
    header = ("class", "AP", "AP at 0.5", "precision", "recall", "results", "objects")
    rows = [tuple(vars(each).values()) for each in metrics.classes]
    return Table("Classes", header, rows, ranked_by=1)


def _list_points(metrics: BoxesMetrics) -> Table:
    header = ("score", "precision", "recall", "F1", "results")
    rows = [(f"{each.score:.2f}", *[*vars(each).values()][1:]) for each in metrics.points]
    return Table("Precision and recall from a score on", header, rows)


def _count_errors(found: Results, verdicts: Verdicts, truth: Truth) -> Ints:
    """Returns how many objects of each image are missing, and results have each error, [E, N]."""
    groups = [truth.image[verdicts.is_missing]]
    groups += [found.image[verdicts.kind == number] for number in ERRORS]
    return np.stack([np.bincount(each, minlength=len(truth.pixels)) for each in groups])


def _make_caption(errors: Ints) -> Caption:
    names = ("missing", *ERRORS.values())
    said = [f"{count} {name}" for name, count in zip(names, errors.tolist(), strict=True) if count]
    return Caption(", ".join(said) or "all found", "", "", is_right=not said)


def _fill_cells(
    found: Results, verdicts: Verdicts, truth: Truth, nothing: int
) -> tuple[Ints, dict[tuple[int, int], list[int]]]:
    """Returns how often a class is taken for another one, and some images of each such pair.

    Args:
        found: The results.
        verdicts: What is said of them.
        truth: The objects.
        nothing: The number that stands for nothing: for an object or a result that is absent.
    """
    label = np.append(truth.label, nothing)
    own = np.isin(verdicts.kind, (FOUND, CONFUSED, FALSE))
    said = label[np.where(verdicts.kind == FALSE, -1, verdicts.object)][own]
    missing = verdicts.is_missing
    rows = np.append(said, truth.label[missing])
    columns = np.append(found.label[own], np.full(missing.sum(), nothing))
    images = np.append(found.image[own], truth.image[missing])
    counts = np.zeros((nothing + 1, nothing + 1), np.int64)
    np.add.at(counts, (rows, columns), 1)
    cells: dict[tuple[int, int], list[int]] = defaultdict(list)
    for *place, image in zip(rows.tolist(), columns.tolist(), images.tolist(), strict=True):
        cell = cells[place[0], place[1]]
        if len(cell) < MAX_IN_CELL and image not in cell:
            cell.append(image)
    return counts, dict(cells)


def _list_shapes(
    found: Results, verdicts: Verdicts, truth: Truth, names: Sequence[str], images: set[int]
) -> dict[int, list[Shape]]:
    """Returns the objects of images and the results from the best score on."""
    shapes: dict[int, list[Shape]] = defaultdict(list)
    wanted = [*images]
    for number in np.flatnonzero(np.isin(truth.image, wanted)).tolist():
        text = names[truth.label[number]]
        shapes[int(truth.image[number])].append(
            make_shape(text, truth.boxes[:, number], TRUTH_TONE)
        )
    is_said = (verdicts.kind != NOT_JUDGED) & np.isin(found.image, wanted)
    for number in np.flatnonzero(is_said).tolist():
        text = f"{names[found.label[number]]} {found.score[number]:.2f}"
        box = found.boxes[:, number]
        shapes[int(found.image[number])].append(make_shape(text, box, RESULT_TONE))
    return dict(shapes)


def make_shape(text: str, box: Any, tone: int) -> Shape:
    """Returns a box that is drawn, as much of it as is in the image."""
    left, top, right, bottom = np.clip(box, 0, 1).tolist()
    return Shape(text, left, top, right, bottom, tone)


SCORING = BoxesScoring()
