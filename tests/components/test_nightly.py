"""Three nights on a growing list: what changed is paid for, shown, and stops the run."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from tfx.dsl.components.common.resolver import Resolver
from tfx.dsl.input_resolution.strategies.latest_artifact_strategy import LatestArtifactStrategy
from tfx.orchestration.local.local_dag_runner import LocalDagRunner
from tfx.orchestration.pipeline import Pipeline
from tfx.types import standard_artifacts
from tfx.types.channel import Channel

from darkroom.components import DatasetDiff, ImageToTFRecord, ManifestGen, ValidationGate
from darkroom.pipelines.pipeline import make_connection_config

from ..nights import SHARD_BYTES, Nights, check_like_from_nothing, read_shards
from .conftest import BEAM_ARGS

pytestmark = pytest.mark.tfx


@pytest.fixture
def nights(tmp_path: Path) -> Nights:
    return Nights(tmp_path)


def make_pipeline(folder: Path, source: Path) -> Pipeline:
    last = Resolver(
        strategy_class=LatestArtifactStrategy,
        examples=Channel(type=standard_artifacts.Examples),
    ).with_id("last")
    manifest = ManifestGen(str(source), base_examples=last.outputs["examples"])
    convert = ImageToTFRecord(
        manifest.outputs["manifest"], manifest.outputs["list_rejects"], shard_bytes=SHARD_BYTES
    )
    diff = DatasetDiff(
        convert.outputs["index"],
        convert.outputs["rejects"],
        manifest.outputs["manifest"],
        convert.outputs["examples"],
    )
    return Pipeline(
        pipeline_name="nightly",
        pipeline_root=str(folder / "artifacts"),
        components=[last, manifest, convert, diff, ValidationGate(diff.outputs["report"])],
        enable_cache=True,
        metadata_connection_config=make_connection_config(str(folder)),
        beam_pipeline_args=BEAM_ARGS,
    )


def find_newest(folder: Path, output: str) -> Path:
    found = (folder / "artifacts" / output).iterdir()
    return max(found, key=lambda path: int(path.name))


def read_counts(folder: Path) -> dict[str, Any]:
    report = json.loads((find_newest(folder, "DatasetDiff/report") / "report.json").read_text())
    return {each["check"]: each["count"] for each in report["findings"]}


def test_a_pipeline_pays_for_what_changed_and_stops_when_test_changes(tmp_path, nights):
    folder = tmp_path / "run"
    folder.mkdir()
    nights.first()
    LocalDagRunner().run(make_pipeline(folder, nights.list))
    assert read_counts(folder) == {"first": 40}
    first = read_shards(find_newest(folder, "ImageToTFRecord/examples"))

    nights.second()
    LocalDagRunner().run(make_pipeline(folder, nights.list))
    assert read_counts(folder) == {"added": 2, "relabelled": 2}
    dataset = find_newest(folder, "ImageToTFRecord/examples")
    second = read_shards(dataset)
    same = first.keys() & second.keys()
    # Two labels changed one or two shards, and the new span has another one.
    assert len(first) - 2 <= len(same) < len(first)
    assert {name: second[name] for name in same} == {name: first[name] for name in same}
    assert json.loads((dataset / "dataset.json").read_text())["rejected"] == 0

    nights.third()
    with pytest.raises(Exception, match="test_frozen"):
        LocalDagRunner().run(make_pipeline(folder, nights.list))
    assert read_counts(folder) == {"test_frozen": 1, "redrawn": 1}
    whole = tmp_path / "whole"
    shutil.copytree(find_newest(folder, "ImageToTFRecord/examples"), whole)
    shutil.copytree(find_newest(folder, "ImageToTFRecord/index"), whole / "index")
    shutil.copy(find_newest(folder, "ImageToTFRecord/rejects") / "rejects.parquet", whole)
    check_like_from_nothing(whole, nights, tmp_path)
