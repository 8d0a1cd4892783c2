from __future__ import annotations

import json
from pathlib import Path

import pytest
import tensorflow_data_validation as tfdv
from tfx.types import standard_artifacts

from darkroom.components.image_statistics_gen import executor

from .conftest import convert_source, read_csv, write_csv

pytestmark = pytest.mark.tfx


def _read(statistics, split: str):
    path = Path(statistics.uri, f"Split-{split}", "FeatureStats.pb")
    [dataset] = tfdv.load_stats_binary(str(path)).datasets
    return dataset, {feature.path.step[0]: feature for feature in dataset.features}


def test_describes_each_split_under_the_names_of_the_record(
    images: Path, new_artifact, beam_context
):
    rows = read_csv(images)
    cameras = ["", "", *(f"model-{number % 2}" for number in range(28))]
    with_camera = [(*row, camera) for row, camera in zip(rows[1:], cameras, strict=True)]
    write_csv(images, [(*rows[0], "camera"), *with_camera])
    made = convert_source(str(images), new_artifact, beam_context)
    statistics = new_artifact(standard_artifacts.ExampleStatistics)
    executor.Executor(beam_context).Do({"index": [made["index"]]}, {"statistics": [statistics]}, {})
    assert sorted(json.loads(statistics.split_names)) == ["eval", "train"]
    dataset, features = _read(statistics, "train")
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
    assert _read(statistics, "eval")[0].num_examples == 6

    # A column of the source is described, too, and its empty cells are counted.
    camera = features["camera"].string_stats
    assert camera.unique == 2
    assert (camera.common_stats.num_non_missing, camera.common_stats.num_missing) == (22, 2)


def test_the_job_is_run_as_that_of_a_conversion(converted, new_artifact, beam_context, monkeypatch):
    """So a failure of an engine is told in a sentence: tests/engines/test_job_server.py."""
    names: list[str] = []
    monkeypatch.setattr(executor, "apply_transform", lambda *_: None)
    monkeypatch.setattr(executor, "run_pipeline", lambda _, name: names.append(name))
    outputs = {"statistics": [new_artifact(standard_artifacts.ExampleStatistics)]}
    executor.Executor(beam_context).Do({"index": [converted["index"]]}, outputs, {})
    [name] = names
    assert name.startswith("darkroom-")
