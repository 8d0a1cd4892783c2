"""The images that the page of a model shows: worst mistakes, least certain ones, confusions."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass

import numpy as np

from darkroom.errors import DarkroomError
from darkroom.evaluation.scores.scoring import Scored, read_images
from darkroom.images.decoders import ImagePreparer
from darkroom.options.image import ImageOptions
from darkroom.validation.report.thumbnails import make_thumbnail

MAX_LISTED = 24
MAX_IN_CELL = 8
# A thumbnail takes 3 KB of the page, more or less.
MAX_PICTURES = 300


@dataclass(frozen=True)
class Shown:
    """An image on the page.

    Attributes:
        number: Its number in the split.
        label: The number of its label.
        predicted: The number of the label that the model predicts.
        score: The probability of that.
    """

    number: int
    label: int
    predicted: int
    score: float


@dataclass(frozen=True)
class Gallery:
    """The images of a page.

    Attributes:
        mistakes: Wrong predictions, those with the highest score first.
        uncertain: Those with the lowest score first.
        cells: By label and predicted label, some images; wrong ones with the highest score, right
            ones with the lowest.
        thumbnails: `data:` URI by number; an image that cannot be read has none.
        names: File name or URI by number.
    """

    mistakes: Sequence[Shown]
    uncertain: Sequence[Shown]
    cells: Mapping[tuple[int, int], Sequence[Shown]]
    thumbnails: Mapping[int, str]
    names: Mapping[int, str]


def make_gallery(scored: Scored, labels: Iterable[int]) -> Gallery:
    """Chooses images and makes their thumbnails.

    Args:
        scored: The images with their scores.
        labels: The numbers of the labels whose confusions are shown.
    """
    score, predicted = scored.scores.max(axis=1), scored.scores.argmax(axis=1)

    def show(numbers: Iterable[int]) -> list[Shown]:
        return [Shown(n, int(scored.truth[n]), int(predicted[n]), float(score[n])) for n in numbers]

    order = np.argsort(score, kind="stable").tolist()
    wrong = np.flatnonzero(predicted != scored.truth)
    worst = wrong[np.argsort(-score[wrong], kind="stable")].tolist()
    mistakes, uncertain = show(worst[:MAX_LISTED]), show(order[:MAX_LISTED])
    right = (n for n in order if predicted[n] == scored.truth[n])
    full = _fill_cells(show([*worst, *right]), frozenset(labels))
    cells = _leave_out(full, MAX_PICTURES - len(mistakes) - len(uncertain))
    numbers = {each.number for group in (mistakes, uncertain, *cells.values()) for each in group}
    thumbnails, names = _make_thumbnails(scored, numbers)
    return Gallery(mistakes, uncertain, cells, thumbnails, names)


def _fill_cells(
    images: Iterable[Shown], labels: frozenset[int]
) -> dict[tuple[int, int], list[Shown]]:
    cells: dict[tuple[int, int], list[Shown]] = defaultdict(list)
    for each in images:
        if each.label in labels and each.predicted in labels:
            cell = cells[each.label, each.predicted]
            if len(cell) < MAX_IN_CELL:
                cell.append(each)
    return dict(cells)


def _leave_out(
    cells: Mapping[tuple[int, int], Sequence[Shown]], limit: int
) -> dict[tuple[int, int], Sequence[Shown]]:
    """Returns at most `limit` images: the first of each cell, then the second ones, and so on."""
    fitting = (
        depth
        for depth in range(MAX_IN_CELL, 0, -1)
        if sum(min(depth, len(each)) for each in cells.values()) <= limit
    )
    depth = next(fitting, 1)
    return {place: each[:depth] for place, each in [*cells.items()][:limit]}


def _make_thumbnails(
    scored: Scored, numbers: Iterable[int]
) -> tuple[dict[int, str], dict[int, str]]:
    thumbnails, names = {}, {}
    with closing(ImagePreparer(ImageOptions())) as preparer:
        for number, image in read_images(scored.source, frozenset(numbers)):
            names[number] = image.name
            try:
                thumbnails[number] = make_thumbnail(image.data, preparer)
            except (ValueError, OSError, DarkroomError):
                continue  # a page must not fail because of a picture
    return thumbnails, names
