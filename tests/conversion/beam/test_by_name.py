"""Other processes open lists and annotations, though nothing there has imported what opens them."""

from __future__ import annotations

import json
import multiprocessing
from pathlib import Path

import apache_beam as beam
import pytest
from apache_beam.options.pipeline_options import PipelineOptions

from darkroom.runtime import by_name


@pytest.fixture
def places(tmp_path: Path) -> list[tuple[str, str, str]]:
    """A list and annotations of COCO, each with a folder for its manifest and for its rejects."""
    coco = {
        "images": [{"id": 1, "file_name": "1.jpg", "width": 8, "height": 8}],
        "annotations": [{"id": 1, "image_id": 1, "category_id": 1, "bbox": [1, 1, 2, 2]}],
        "categories": [{"id": 1, "name": "dog"}],
    }
    (tmp_path / "1.jpg").touch()
    (tmp_path / "list.csv").write_text("image_uri,label\n1.jpg,cat\n")
    (tmp_path / "coco.json").write_text(json.dumps(coco))
    return [
        (f"{tmp_path}/{name}", f"{tmp_path}/made-{name}", f"{tmp_path}/made-{name}")
        for name in ("list.csv", "coco.json")
    ]


def test_a_spawned_process_opens_a_list_and_annotations(places):
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        found = pool.starmap(by_name.find("write_manifest"), places)
    assert [manifest.labels for manifest in found] == [["cat"], ["dog"]]


def test_a_worker_of_beam_opens_a_list_and_annotations(places, light_beam, tmp_path):
    flags = ["--direct_running_mode=multi_processing", "--direct_num_workers=1"]
    with beam.Pipeline("FnApiRunner", PipelineOptions(flags)) as pipeline:
        found = pipeline | beam.Create(places) | beam.MapTuple(by_name.find("write_manifest"))
        _ = found | beam.Map(repr) | beam.io.WriteToText(f"{tmp_path}/found")
    lines = "".join(each.read_text() for each in tmp_path.glob("found*"))
    assert "labels=['cat']" in lines
    assert "labels=['dog']" in lines
