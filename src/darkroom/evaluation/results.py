"""Evaluates the results of a detector, whatever made them, by the index of a dataset."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterator, Sequence
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
from darkroom.errors import DataError, UsageError
from darkroom.evaluation.report.facts import Facts, describe_code
from darkroom.evaluation.report.pictures import PagePictures
from darkroom.evaluation.report.result import Evaluation, Slice
from darkroom.images.records import find_records, read_record_images
from darkroom.images.thumbnails import make_thumbnails
from darkroom.runtime import progress
from darkroom.targets.boxes.matching import TRUTH_COLUMNS, Truth
from darkroom.targets.boxes.metrics import measure_results
from darkroom.targets.boxes.precision import (
    Matched,
    average_precision,
    compare_results,
    match_sizes,
)
from darkroom.targets.boxes.results import RESULT_COLUMNS, Results
from darkroom.targets.boxes.scoring import SCORING
from darkroom.targets.description import View
from darkroom.targets.learned import Learned

_COLUMNS = [*dict.fromkeys(["row", "split", *RESULT_COLUMNS, *TRUTH_COLUMNS])]
_GROUP, _SPLIT = "group", "split"
_PICTURE_PIXELS = 256
_MOST_GROUPS = 50


def evaluate_results(
    path: str, root: str, named: Split, annotations: str | None
) -> tuple[Evaluation, Callable[[], PagePictures], Facts]:
    """Scores results for the images of a split; returns also what makes the pictures of a page.

    Args:
        path: The file or the folder of the results.
        root: The dataset.
        named: The split.
        annotations: The file of COCO that the detector had; None for none.

    Raises:
        DataError: They are not results of these images, or of none of this split.
        UsageError: Its images have no boxes.
        OSError: Something cannot be read.
    """
    folder, dataset = read_output(root)
    if dataset.objects is None:
        raise UsageError(
            f"Results are those of a detector, and the images in {root} are labelled with "
            f"{dataset.target.kind}.",
            "Give a dataset of boxes; or a model instead of results.",
        )
    index_dir = storage.join(folder, INDEX_FOLDER)
    has_groups = read_index_schema(index_dir).get_field_index(_GROUP) >= 0
    with progress.step("Results"):
        index = read_index(index_dir, [*_COLUMNS, *([_GROUP] if has_groups else [])])
        index, found, truth = _read(path, index, dataset.labels, annotations, named.name)
        sizes = match_sizes(found, truth)
        metrics, verdicts = measure_results(sizes, truth, dataset.labels)
        slices = [*_list_slices(index, sizes["all"], truth, len(dataset.labels), named.name)]
    left_out = f"Results of images that are not in the dataset: {found.left_out:,}."
    evaluation = Evaluation(
        model_dir=path,
        model_sha256=_identify(path),
        split=named.name,
        metrics=metrics,
        slices=tuple(slices),
        kind=dataset.target.kind,
    )
    notes = (*evaluation.summarize().notes, *([left_out] if found.left_out else []))
    evaluation = replace(evaluation, notes=notes)
    learned = Learned(evaluation.kind, tuple(dataset.labels))
    answers = sizes["all"].found, verdicts
    draw = partial(_make_pictures, folder, index, partial(SCORING.show, answers, truth, learned))
    return evaluation, draw, Facts(data={named.name: named.data}, code=describe_code(""))


def _read(
    path: str, index: pa.Table, labels: Sequence[str], annotations: str | None, split: str
) -> tuple[pa.Table, Results, Truth]:
    """Returns the rows of a split, the results for them, and their objects.

    Raises:
        DataError: No result is about any of them.
    """
    found, truth = compare_results(path, index, labels, annotations)
    if split == ALL_SPLITS:
        return index, found, truth
    is_ours = pc.equal(index[_SPLIT], split).to_numpy()
    ours = found.take(is_ours[found.image])
    if not len(ours.image):
        there = pc.unique(index[_SPLIT].take(pa.array(np.unique(found.image)))).to_pylist()
        raise DataError(
            f"{path} has no result for the {split} split, but for {', '.join(there)}.",
            f"Name the split: --split {there[0] if len(there) == 1 else ALL_SPLITS}.",
        )
    ours = ours._replace(image=(np.cumsum(is_ours) - 1)[ours.image])
    return index.filter(pa.array(is_ours)), ours, truth.take(is_ours)


def _identify(path: str) -> str:
    """Returns a hash of results, 64 hexadecimal digits."""
    if not storage.is_folder(path):
        return storage.hash_file(path)
    sums = {
        name: storage.hash_file(storage.join(path, name)) for name in storage.list_everything(path)
    }
    return hashlib.sha256(json.dumps(sorted(sums.items())).encode()).hexdigest()


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
