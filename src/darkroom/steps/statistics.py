"""Counts records by split and label, and sizes and brightness of images."""

from __future__ import annotations

import json
import os

from darkroom import storage
from darkroom.dataset import layout
from darkroom.runtime.lazy_names import is_installed
from darkroom.steps import parts
from darkroom.steps.step import Artifact, Given, Made, Paths, Step

_FILE = "statistics.json"
# The name that TFX's components look for.
TFDV_FILE = "FeatureStats.pb"


def run(paths: Paths, options: Given) -> Made:
    """Counts the content of a dataset; where TFDV is installed, its statistics are beside that."""
    from darkroom.options.validation import CHECK_NAMES, OFF
    from darkroom.steps.verdict import count_report_rows
    from darkroom.validation.report.page import make_statistics_page
    from darkroom.validation.validate import validate

    result = validate(paths["dataset"], policies=dict.fromkeys(CHECK_NAMES, OFF))
    report, folder = result.report, paths["statistics"]
    counts = {
        **count_report_rows(report),
        "splits": dict(report.splits),
        "classes": {split: dict(each) for split, each in report.classes.items()},
        "histograms": {name: vars(each) for name, each in report.histograms.items()},
    }
    storage.make_folder(folder)
    text = json.dumps(counts, indent=2) + "\n"
    storage.write_bytes(storage.join(folder, _FILE), text.encode())
    if is_installed("tensorflow_data_validation"):
        _write_tfdv(storage.join(result.directory, layout.INDEX_FOLDER), folder)
    numbers: dict[str, float] = {"labels": len(report.list_classes())}
    for name, histogram in report.histograms.items():
        numbers |= {f"{name}_least": histogram.low, f"{name}_most": histogram.high}
    page = make_statistics_page(report).to_html().encode()
    return Made(result, count_report_rows(report) | numbers, files={"statistics_page": page})


def _write_tfdv(index_dir: str, folder: str) -> None:
    """Writes TFDV's statistics of each split, in the layout of TFX's ExampleStatistics."""
    from darkroom.dataset.index import find_index_files
    from darkroom.validation.statistics import list_splits_with_records, write_statistics

    files = find_index_files(index_dir)
    for split in list_splits_with_records(files):
        path = storage.join(folder, layout.split_folder(split), TFDV_FILE)
        storage.make_folder(os.path.dirname(path))
        write_statistics(files, split, path)


STEP = Step(
    "dataset_statistics",
    "Counts records by split and label, and sizes and brightness of images, without reading one.",
    run,
    (parts.DATASET_URI,),
    inputs=(parts.DATASET,),
    outputs=(
        Artifact(
            "statistics",
            "Artifact",
            "The counts as JSON. Where TFDV is installed, its statistics of each split, too.",
        ),
        parts.name_page("statistics"),
        parts.name_metrics("statistics"),
    ),
)
