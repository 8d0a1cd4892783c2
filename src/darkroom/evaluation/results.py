"""Evaluates the results of a detector, whatever made them, by the index of a dataset."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from darkroom import storage
from darkroom.data.splits import ALL_SPLITS, Split
from darkroom.dataset.commit import read_output
from darkroom.dataset.index import read_index, read_index_schema
from darkroom.dataset.layout import INDEX_FOLDER
from darkroom.dataset.read_as import read_read_as
from darkroom.errors import DataError
from darkroom.evaluation.report.facts import Facts, describe_code
from darkroom.evaluation.report.pictures import PagePictures
from darkroom.evaluation.report.result import Evaluation, Slice
from darkroom.images.records import find_records, read_record_images
from darkroom.images.thumbnails import make_thumbnails
from darkroom.runtime import progress
from darkroom.targets.boxes.matching import Truth, read_truth
from darkroom.targets.boxes.metrics import measure_results
from darkroom.targets.boxes.precision import (
    COMPARED_COLUMNS,
    Matched,
    average_precision,
    check_about,
    match_sizes,
)
from darkroom.targets.boxes.results import (
    GIVE_ANNOTATIONS,
    OF_DETECTOR,
    DetectorFiles,
    Results,
    check_boxes,
    read_detections,
)
from darkroom.targets.boxes.scoring import SCORING
from darkroom.targets.description import View
from darkroom.targets.learned import Learned

_GROUP, _SPLIT = "group", "split"
_PICTURE_PIXELS = 256
_MOST_GROUPS = 50


def evaluate_results(
    files: DetectorFiles, root: str, named: Split
) -> tuple[Evaluation, Callable[[], PagePictures], Facts]:
    """Scores results for the images of a split; returns also what makes the pictures of a page.

    Args:
        files: What the detector wrote and had.
        root: The dataset.
        named: The split.

    Raises:
        DataError: They are not results of these images, or of none of this split.
        UsageError: Its images have no boxes.
        OSError: Something cannot be read.
    """
    folder, dataset = read_output(root)
    check_boxes(dataset, root, OF_DETECTOR, "Give a dataset of boxes; or a model instead.")
    index_dir = storage.join(folder, INDEX_FOLDER)
    has_groups = read_index_schema(index_dir).get_field_index(_GROUP) >= 0
    with progress.step("Results"):
        index = read_index(index_dir, [*COMPARED_COLUMNS, *([_GROUP] if has_groups else [])])
        found, _ = read_detections(files, index, dataset.labels, read_read_as(folder))
        truth = read_truth(index, dataset.labels)
        check_about(files.results, found, truth, len(dataset.labels))
        if named.name != ALL_SPLITS:
            index, found, truth = _take_split(files, index, found, truth, named.name)
        sizes = match_sizes(found, truth)
        metrics, verdicts = measure_results(sizes, truth, dataset.labels)
        slices = [*_list_slices(index, sizes["all"], truth, len(dataset.labels), named.name)]
    evaluation = Evaluation(
        model_dir=files.results,
        model_sha256=storage.hash_folder(files.results),
        split=named.name,
        metrics=metrics,
        slices=tuple(slices),
        kind=dataset.target.kind,
    )
    evaluation = replace(evaluation, notes=tuple(evaluation.summarize().notes))
    learned = Learned(evaluation.kind, tuple(dataset.labels))
    answers = sizes["all"].found, verdicts
    draw = partial(_make_pictures, folder, index, partial(SCORING.show, answers, truth, learned))
    return evaluation, draw, Facts(data={named.name: named.data}, code=describe_code(""))


def _take_split(
    files: DetectorFiles, index: pa.Table, found: Results, truth: Truth, split: str
) -> tuple[pa.Table, Results, Truth]:
    """Returns the rows of a split, the results for them, and their objects.

    Raises:
        DataError: No result is about any of them.
    """
    is_ours = pc.equal(index[_SPLIT], split).to_numpy()
    ours = found.take(is_ours[found.image])
    if not len(ours.image):
        there = pc.unique(index[_SPLIT].take(pa.array(np.unique(found.image)))).to_pylist()
        raise DataError(
            f"{files.results} has no result for the {split} split, but for {', '.join(there)}.",
            f"Name the split: --split {there[0] if len(there) == 1 else ALL_SPLITS}. Or, if ids "
            f"mean other images: {GIVE_ANNOTATIONS}",
        )
    ours = ours._replace(image=(np.cumsum(is_ours) - 1)[ours.image])
    return index.filter(pa.array(is_ours)), ours, truth.take(is_ours)


def _list_slices(
    index: pa.Table, matched: Matched, truth: Truth, count: int, split: str
) -> Iterator[Slice]:
    """Yields how good results are for each split, if there are several, and the largest groups."""
    columns = [_SPLIT] if split == ALL_SPLITS else []
    columns += [_GROUP] if _GROUP in index.column_names else []
    for column in columns:
        counts = pc.value_counts(index[column].combine_chunks().drop_null()).to_pylist()
        counts.sort(key=lambda each: (-each["counts"], each["values"]))
        for value, records in (each.values() for each in counts[:_MOST_GROUPS]):
            images = pc.equal(index[column], value).fill_null(False).to_numpy()
            precision = average_precision(matched, truth, count, images)
            if not np.isnan(precision).all():
                yield Slice(column, value, records, float(np.nanmean(precision)))


def _make_pictures(folder: str, index: pa.Table, show: Callable[[], View]) -> PagePictures:
    """Chooses images, and makes their thumbnails."""
    view, images = show(), index.select(["row", "uri", "width", "height"])
    shown = dict(zip(view.captions, images.take([*view.captions]).to_pylist(), strict=True))
    numbers = {row["row"]: number for number, row in shown.items()}
    found = find_records(folder, storage.join(folder, INDEX_FOLDER), [*numbers])
    files = ((numbers[row], data) for row, data in read_record_images(found))
    return PagePictures(
        view,
        dict(make_thumbnails(files, lambda _: _PICTURE_PIXELS)),
        {number: os.path.basename(row["uri"] or "") for number, row in shown.items()},
        {number: (row["width"], row["height"]) for number, row in shown.items()},
    )
