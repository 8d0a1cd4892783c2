"""What a kind of target says about scores: numbers, tables, images and charts, without a form.

A page, a card, a terminal, a notebook and a UI draw the same descriptions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from darkroom.runtime.table import Table


class Summary(NamedTuple):
    """The numbers of a model as texts.

    Attributes:
        headline: The most important one, as a sentence says it.
        numbers: Names and texts, the most important one first.
        tiles: Texts and what they are, for a page.
        is_good: Whether the model is surely better than one that has learned nothing.
        table: A row for each label or number.
        more_tables: Tables for a card, which a page shows as pictures.
        notes: Sentences that help to read the numbers.
        tables: Further tables for a card and a page.
    """

    headline: str
    numbers: Sequence[tuple[str, str]]
    tiles: Sequence[tuple[str, str]]
    is_good: bool
    table: Table
    more_tables: Sequence[Table] = ()
    notes: Sequence[str] = ()
    tables: Sequence[Table] = ()


class Filter(NamedTuple):
    """A number of images by which people choose some.

    Attributes:
        name: Its name in what `TargetKind.measure` returns; of a list of numbers the least counts.
        title: What it is.
        unit: What it counts.
    """

    name: str
    title: str
    unit: str


class Shape(NamedTuple):
    """A rectangle over an image, with sides in shares of its width and height, from 0 to 1.

    Attributes:
        text: What is there.
        left: The least x.
        top: The least y.
        right: The largest x.
        bottom: The largest y.
        tone: Number of its color: the same for shapes of one class. None: it is not in the record,
            and is dashed.
    """

    text: str
    left: float
    top: float
    right: float
    bottom: float
    tone: int | None = 0


class Caption(NamedTuple):
    """What is said below an image.

    Attributes:
        answer: What the model says.
        score: How sure it is; empty where it does not say so.
        truth: What the image is labelled with.
        is_right: Whether both are the same.
    """

    answer: str
    score: str
    truth: str
    is_right: bool


class Images(NamedTuple):
    """Some images with their captions.

    Attributes:
        title: What they have in common.
        what: How they were chosen.
        numbers: Their numbers in the split.
    """

    title: str
    what: str
    numbers: Sequence[int]


class GridCell(NamedTuple):
    """A cell of a grid.

    Attributes:
        title: What it counts.
        images: The number of images in it.
        share: Their share of the row.
        is_right: Whether the model is right about them.
        numbers: The numbers of some of them.
    """

    title: str
    images: int
    share: float
    is_right: bool
    numbers: Sequence[int]


class Grid(NamedTuple):
    """Counts of images by two names each.

    Attributes:
        title: What it shows.
        what: How to read it.
        names: The names of rows and columns.
        cells: Its rows.
        more: What is left out, as a sentence; empty if nothing.
    """

    title: str
    what: str
    names: Sequence[str]
    cells: Sequence[Sequence[GridCell]]
    more: str = ""


class Chart(NamedTuple):
    """Points in a square whose diagonal is the ideal.

    Attributes:
        caption: What it shows.
        said: Its content in words.
        axis: The name of the axis from left to right.
        points: (x, y) of each point.
        low: The least value of both axes.
        high: The largest.
        counts: How many images each point stands for, if they are joined by a line; else empty.
    """

    caption: str
    said: str
    axis: str
    points: Sequence[tuple[float, float]]
    low: float = 0.0
    high: float = 1.0
    counts: Sequence[int] = ()


class View(NamedTuple):
    """The images of a split, and charts.

    Attributes:
        captions: What is said below each image, by its number.
        groups: Images to show.
        grid: Counts of images; None without any.
        charts_title: What the charts show.
        charts: Charts of all images; none for a kind without them.
        shapes: What is drawn over images, by their numbers.
    """

    captions: Mapping[int, Caption]
    groups: Sequence[Images]
    grid: Grid | None = None
    charts_title: str = ""
    charts: Sequence[Chart] = ()
    shapes: Mapping[int, Sequence[Shape]] = {}
