from __future__ import annotations

import json
from pathlib import Path

import pytest
import tensorflow_data_validation as tfdv
from tfx.types import standard_artifacts

from darkroom.components.image_statistics_gen import executor

from .conftest import convert_source, read_csv, write_csv

pytestmark = pytest.mark.tfx


def test_describes_a_split_under_the_names_of_the_record(
    images: Path, new_artifact, beam_context, monkeypatch
):
    rows = read_csv(images)
    cameras = ["", "", *(f"model-{number % 2}" for number in range(28))]
    with_camera = [(*row, camera) for row, camera in zip(rows[1:], cameras, strict=True)]
    write_csv(images, [(*rows[0], "camera"), *with_camera])
    made = convert_source(str(images), new_artifact, beam_context)
    statistics = new_artifact(standard_artifacts.ExampleStatistics)
    # TFDV takes seconds for each split.
    monkeypatch.setattr(executor, "list_splits_with_records", lambda _: ["train"])
    executor.Executor(beam_context).Do({"index": [made["index"]]}, {"statistics": [statistics]}, {})
    assert json.loads(statistics.split_names) == ["train"]
    [dataset] = tfdv.load_stats_binary(
        str(Path(statistics.uri, "Split-train", "FeatureStats.pb"))
    ).datasets
    features = {feature.path.step[0]: feature for feature in dataset.features}
    assert dataset.num_examples == 24
    assert sorted(features) == [
        "camera",
        "image/channels",
        "image/class/text",
        "image/format",
        "image/height",
        "image/luminance",
        "image/size_bytes",
        "image/width",
    ]
    assert features["image/height"].num_stats.min == 12
    assert features["image/width"].num_stats.max == 10
    assert features["image/class/text"].string_stats.unique == 3

    # A column of the source is described, too, and its empty cells are counted.
    camera = features["camera"].string_stats
    assert camera.unique == 2
    assert (camera.common_stats.num_non_missing, camera.common_stats.num_missing) == (22, 2)


def test_one_job_describes_each_split_and_is_run_as_that_of_a_conversion(
    converted, new_artifact, beam_context, monkeypatch
):
    """So a failure elsewhere is told, and a job is named: tests/conversion/beam/test_run.py."""
    names: list[str] = []
    written: list[tuple[str, str]] = []
    monkeypatch.setattr(executor, "WriteStatistics", lambda _, split, path: (split, path))
    monkeypatch.setattr(executor, "apply_transform", lambda _, __, write: written.append(write))
    monkeypatch.setattr(executor, "run_beam_pipeline", lambda _, name: names.append(name))
    statistics = new_artifact(standard_artifacts.ExampleStatistics)
    inputs = {"index": [converted["index"]]}
    executor.Executor(beam_context).Do(inputs, {"statistics": [statistics]}, {})
    assert sorted(json.loads(statistics.split_names)) == ["eval", "train"]
    assert sorted(written) == [
        (split, f"{statistics.uri}/Split-{split}/FeatureStats.pb") for split in ("eval", "train")
    ]
    [name] = names
    assert name.startswith("darkroom-")
