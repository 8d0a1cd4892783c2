"""The images that show what a classifier takes for what: mistakes, uncertain ones, confusions."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from darkroom.runtime.text import format_count
from darkroom.targets.description import Caption, Chart, Grid, GridCell, Images, View
from darkroom.targets.label.metrics import Bin, count_confusions, measure_calibration
from darkroom.targets.scoring import MAX_LISTED, Floats, Ints

MAX_IN_CELL = 8
# A thumbnail takes 3 KB of the page, more or less.
MAX_PICTURES = 300
# Labels of the matrix that is shown.
_MAX_LABELS = 30

_Cells = Mapping[tuple[int, int], Sequence[int]]


def make_view(scores: Floats, truth: Ints, labels: Sequence[str]) -> View:
    """Chooses images.

    Args:
        scores: [N, C], for each image the probability of each label.
        truth: [N], the numbers of the labels that the images have.
        labels: The C labels.
    """
    score, predicted = scores.max(axis=1), scores.argmax(axis=1)
    is_right = predicted == truth
    order = np.argsort(score, kind="stable").tolist()
    wrong = np.flatnonzero(~is_right)
    worst = wrong[np.argsort(-score[wrong], kind="stable")].tolist()
    mistakes, uncertain = worst[:MAX_LISTED], order[:MAX_LISTED]
    confusion = count_confusions(truth, predicted, len(labels))
    shown = choose_labels(confusion)
    # Wrong ones with the highest score first, and right ones with the lowest.
    first = np.array([*worst, *(n for n in order if is_right[n])], np.int64)
    full = fill_cells(first, truth[first], predicted[first], shown)
    cells = leave_out(full, MAX_PICTURES - len(mistakes) - len(uncertain))
    numbers = {number for group in (mistakes, uncertain, *cells.values()) for number in group}
    captions = {
        n: Caption(labels[predicted[n]], f"{score[n]:.2f}", labels[truth[n]], bool(is_right[n]))
        for n in numbers
    }
    groups = (
        Images("Worst mistakes", "Wrong, and surest of it.", mistakes),
        Images("Least certain", "The lowest scores, right or wrong.", uncertain),
    )
    grid = make_grid(confusion, labels, shown, cells)
    bins = measure_calibration(score, is_right)
    return View(captions, groups, grid, "Calibration", [make_calibration(bins)])


def choose_labels(confusion: Ints) -> list[int]:
    """Returns the labels of the matrix, by number: all, or those with the most mistakes."""
    if len(confusion) <= _MAX_LABELS:
        return list(range(len(confusion)))
    wrong = confusion.sum(axis=0) + confusion.sum(axis=1) - 2 * confusion.diagonal()
    return sorted((-wrong).argsort(kind="stable")[:_MAX_LABELS].tolist())


def fill_cells(
    images: Ints, truth: Ints, predicted: Ints, labels: Iterable[int]
) -> dict[tuple[int, int], list[int]]:
    """Returns the images of each cell, by (label, predicted label).

    Args:
        images: [N], numbers of images. The first ones are taken, as many as a cell shows.
        truth: [N], the numbers of their labels.
        predicted: [N], those of the predicted labels.
        labels: The labels that the matrix shows; images of others are left out.
    """
    known = frozenset(labels)
    cells: dict[tuple[int, int], list[int]] = defaultdict(list)
    for number, *place in zip(*(each.tolist() for each in (images, truth, predicted)), strict=True):
        cell = cells[place[0], place[1]] if known.issuperset(place) else [number]
        if number not in cell and len(cell) < MAX_IN_CELL:
            cell.append(number)
    return dict(cells)


def leave_out(cells: _Cells, limit: int) -> _Cells:
    """Returns at most `limit` images: the first of each cell, then the second ones, and so on."""
    fitting = (
        depth
        for depth in range(MAX_IN_CELL, 0, -1)
        if sum(min(depth, len(each)) for each in cells.values()) <= limit
    )
    depth = next(fitting, 1)
    return {place: each[:depth] for place, each in [*cells.items()][:limit]}


def make_grid(confusion: Ints, labels: Sequence[str], shown: Sequence[int], cells: _Cells) -> Grid:
    """Returns the confusion matrix.

    Args:
        confusion: [C, C], images by label and predicted label.
        labels: The C labels.
        shown: The numbers of the labels that have a row and a column.
        cells: Some images of each cell.
    """

    def make_cell(row: int, column: int) -> GridCell:
        count = int(confusion[row, column])
        is_right = row == column
        said = "found" if is_right else f"taken for {labels[column]}"
        share = count / max(int(confusion[row].sum()), 1)
        return GridCell(
            f"{labels[row]}, {said}", count, share, is_right, cells.get((row, column), ())
        )

    left_out = len(labels) - len(shown)
    return Grid(
        "Confusion",
        "Rows are labels, columns predictions. A click on a cell opens its images, and another one "
        "closes them.",
        [labels[number] for number in shown],
        [[make_cell(row, column) for column in shown] for row in shown],
        f"{format_count(left_out, 'label')} with fewer mistakes are left out" if left_out else "",
    )


def make_calibration(bins: Sequence[Bin]) -> Chart:
    """Returns the chart of how often predictions of a score are right."""
    said = ", ".join(f"{b.confidence:.2f}: {b.accuracy:.2f} of {b.count}" for b in bins)
    return Chart(
        "How often predictions of a score are right. On the dashed line, a score is a true "
        "probability. Bars: how many images.",
        f"accuracy by score: {said}",
        "score",
        [(each.confidence, each.accuracy) for each in bins],
        counts=[each.count for each in bins],
    )
