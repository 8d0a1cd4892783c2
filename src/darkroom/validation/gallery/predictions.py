"""What a model says of the images of a dataset: the file of `darkroom predict`, beside labels."""

from __future__ import annotations

import csv
import io
import json
import os
import posixpath
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from darkroom import storage
from darkroom.dataset.commit import Dataset
from darkroom.dataset.index import read_index
from darkroom.dataset.sources import find_sources
from darkroom.dataset.splits import SPLITS
from darkroom.errors import DataError, UsageError
from darkroom.runtime.text import format_count, make_visible
from darkroom.storage.uris import has_scheme, resolve_uri
from darkroom.validation.gallery.rows import GalleryRows, Numbers
from darkroom.validation.report.findings import MAX_RANKED_ROWS, Finding

_COLUMNS = ("image_uri", "label", "score")
_HINT = (
    "Predict the files of the dataset by a model of one label an image: darkroom predict MODEL "
    "IMAGES --output FILE."
)


class _Line(NamedTuple):
    """A line of the file: the image, its most likely label, and the probability of that."""

    uri: str
    label: str
    score: float


class RowPredictions(NamedTuple):
    """What a model says of all rows, in the order of the index.

    Attributes:
        label: Number of the label in the label map, from 1, of the smallest unsigned type, [N]; 0
            where nothing is said.
        score: Its probability, float64 [N]; NaN where nothing is said.
        finding: The images that it takes for others, the most certain mistakes first.
    """

    label: Numbers
    score: Numbers
    finding: Finding

    def find_score(self, place: int) -> float | None:
        """Returns the probability for a row by its place, to four digits."""
        return round(float(self.score[place]), 4) if self.label[place] else None


def read_predictions(
    path: str | os.PathLike[str], index_dir: str, rows: GalleryRows, dataset: Dataset
) -> RowPredictions:
    """Reads what a model says of the images of a dataset, which are named by their URIs.

    Args:
        path: The file of `darkroom predict`.
        index_dir: The folder of the index.
        rows: All rows of the index.
        dataset: The commit.

    Raises:
        DataError: The file says nothing of these images, or lacks a column.
        UsageError: The images do not have one label each.
        OSError: Something cannot be read.
    """
    if dataset.target.kind != "label":
        raise UsageError(
            f"The images are labelled with {dataset.target.kind}, and the gallery shows "
            "predictions of one label an image only.",
            "Make it without predictions.",
        )
    labels = dataset.labels
    lines, faults = _read_lines(find_predictions(path))
    uris = pa.array([line.uri for line in lines], pa.string())
    listed = read_index(index_dir, ["uri"])["uri"]
    names = pa.array([line.label for line in lines], pa.string())
    numbers = pc.fill_null(pc.index_in(names, pa.array(labels, pa.string())), -1).to_numpy()
    # The last place is for rows that the file does not name.
    found = pc.fill_null(pc.index_in(listed, uris), -1).to_numpy()
    label = np.append(numbers + 1, 0)[found]
    score = np.where(label > 0, np.append([line.score for line in lines], np.nan)[found], np.nan)
    missing = uris.filter(pc.invert(pc.is_in(uris, listed))).to_pylist()
    strange = names.filter(pa.array(numbers < 0)).to_pylist()
    left_out = _list_left_out(faults, missing, strange)
    if not label.any():
        raise DataError(f"{path} says nothing about the images of this dataset.{left_out}", _HINT)
    mistakes = _find_mistakes(label, score, rows, labels)
    worst = rows.row[mistakes[:MAX_RANKED_ROWS]]
    finding = Finding(
        "mistakes",
        "model",
        len(mistakes),
        f"The model gives another label to {len(mistakes):,} of "
        f"{format_count(int(np.count_nonzero(label)), 'image')}.{left_out}",
        "The most certain mistakes come first: wrong labels are often among them.",
        tuple({"row": row} for row in worst.tolist()),
    )
    return RowPredictions(label.astype(np.min_scalar_type(len(labels))), score, finding)


def _find_mistakes(
    label: Numbers, score: Numbers, rows: GalleryRows, labels: Sequence[str]
) -> Numbers:
    """Returns the places of rows of which the model says another label, the most certain first."""
    number = {name: place for place, name in enumerate(labels, 1)}
    # Sets have one label at most; 0 is that of an image without one.
    own = np.array([sum(number.get(name, -1) for name in each) for each in rows.sets])
    own = own[rows.group // len(SPLITS)]
    mistakes = np.flatnonzero((label > 0) & (own != 0) & (label != own))
    ranked: Numbers = mistakes[np.argsort(-score[mistakes], kind="stable")]
    return ranked


def find_predictions(path: str | os.PathLike[str]) -> list[str]:
    """Returns the files of predictions that a path or a pattern names.

    Raises:
        DataError: No file matches the pattern.
        OSError: There is none.
    """
    return find_sources(path)


def _read_lines(paths: Sequence[str]) -> tuple[list[_Line], list[str]]:
    """Returns the lines of files, and what is wrong with the damaged ones."""
    lines, faults = [], []
    for path in paths:
        for row, cells in enumerate(_read_cells(path), start=1):
            try:
                lines.append(_parse_line(cells, posixpath.dirname(path)))
            except (ValueError, TypeError) as error:  # noqa: PERF203  which one it is
                faults.append(f"row {row}: {error}")
    return lines, faults


def _read_cells(path: str) -> Iterator[Mapping[str, Any]]:
    """Yields the cells of each line by their columns.

    Raises:
        DataError: It is not such a file, or lacks a column.
    """
    try:
        text = storage.read_bytes(path).decode("utf-8-sig")
        if path.lower().endswith(".csv"):
            rows: list[Mapping[str, Any]] = [*csv.DictReader(io.StringIO(text, newline=""))]
        else:
            rows = [dict(json.loads(line)) for line in text.splitlines() if line.strip()]
    except (ValueError, TypeError, csv.Error) as error:
        raise DataError(f"{path} is neither CSV nor JSON Lines: {error!s:.200}.", _HINT) from error
    if not rows:
        raise DataError(f"{path} is empty.", _HINT)
    if missing := [name for name in _COLUMNS if name not in rows[0]]:
        raise DataError(f"{path}: Columns {missing} are missing, there are {[*rows[0]]}.", _HINT)
    yield from rows


def _parse_line(cells: Mapping[str, Any], folder: str) -> _Line:
    """Returns a line; a relative path is below the folder of the file.

    Raises:
        ValueError: A cell is empty, or the score is not one.
    """
    uri, label, score = (cells.get(name) for name in _COLUMNS)
    if not uri or not label:
        raise ValueError(f"the {'label' if uri else 'image'} cell is empty")
    number = float(score or "nan")
    if not 0 <= number <= 1:
        raise ValueError(f"the score is {score}")
    path = f"{uri}" if has_scheme(f"{uri}") else storage.join(folder, f"{uri}")
    return _Line(resolve_uri(path), f"{label}", number)


def _list_left_out(faults: Sequence[str], missing: Sequence[str], strange: Sequence[str]) -> str:
    """Returns a sentence on lines that say nothing of the dataset, after a space."""
    parts = [
        f"{format_count(len(each), noun)}{where} ({make_visible(each[0])})"
        for each, noun, where in (
            (faults, "damaged line", ""),
            (missing, "image", " outside the dataset"),
            (strange, "label", " outside the label map"),
        )
        if each
    ]
    return f" Left out: {', '.join(parts)}." if parts else ""
