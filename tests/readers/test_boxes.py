"""Readers of detectors find the objects of records, each in an environment of its own."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pandas as pd
import pytest
from PIL import Image

import darkroom
from darkroom.conversion.annotation_list import write_annotations
from darkroom.dataset.index import read_index

from ..environments import make_environment
from ..pictures import make_noise

pytestmark = pytest.mark.newest

OBJECTS = [
    [
        {"label": "cat", "box": [1, 2, 30, 40], "is_crowd": 1},
        {"label": "dog", "box": [5, 5, 50, 50], "area": 100},
    ],
    [],
    None,
    [{"label": "dog", "box": [0, 0, 80, 60]}],
]


@pytest.fixture(scope="module")
def records(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A dataset of four images of 80 x 60 pixels."""
    folder = tmp_path_factory.mktemp("boxes")
    for number in range(4):
        Image.fromarray(make_noise(number, 60, 80)).save(folder / f"{number}.png")
    uris = [f"{folder}/{number}.png" for number in range(4)]
    # A list of YOLO needs both.
    splits = ["train", "train", "train", "eval"]
    frame = pd.DataFrame({"split": splits, "image_uri": uris, "objects": OBJECTS})
    return Path(darkroom.convert(frame, folder / "records").output_dir)


def run(python: Path, script: str, *folders: Path) -> list[list[object]]:
    """Returns what a script prints of folders, a list a line."""
    path = Path(__file__).with_name(script)
    done = subprocess.run(
        [str(python), str(path), *map(str, folders)], capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("[")]


def test_the_decoder_of_the_model_garden_reads_objects(records):
    programs = make_environment(
        "tf-models", ["tensorflow", "tf-keras"], alone=["tf-models-official"]
    )
    found = dict(run(programs / "python", "read_tf_models.py", records))
    index = read_index(str(records / "index"), ["id", "source_id"]).to_pylist()
    by_name = {row["id"].rpartition("/")[2]: found[row["source_id"]] for row in index}
    first = by_name["0.png"]
    assert first["boxes"] == [
        pytest.approx([2 / 60, 1 / 80, 40 / 60, 30 / 80]),
        pytest.approx([5 / 60, 5 / 80, 50 / 60, 50 / 80]),
    ]
    # 0 is the background.
    assert (first["classes"], first["is_crowd"]) == ([1, 2], [True, False])
    assert first["area"] == pytest.approx([29 * 38, 100])
    assert (by_name["1.png"]["boxes"], by_name["2.png"]["classes"]) == ([], [])
    assert by_name["3.png"]["boxes"] == [[0, 0, 1, 1]]


def test_tools_of_detection_read_lists(records, tmp_path):
    """ultralytics is AGPL: it is here alone, in an environment of its own."""
    packages = ["pycocotools", "torchvision", "ultralytics"]
    python = make_environment("detectors", packages) / "python"
    folders = [tmp_path / "coco", tmp_path / "yolo"]
    for folder in folders:
        write_annotations(records, folder, folder.name, folder)
    found = run(python, "read_lists.py", *folders)
    by_tool = {name: [each for tool, *each in found if tool == name] for name, *_ in found}
    image = "images/train/{}.png".format
    assert sorted(by_tool["pycocotools"]) == [
        [image(0), "cat", [1, 2, 29, 38], 29 * 38, 1],
        [image(0), "dog", [5, 5, 45, 45], 100, 0],
    ]
    assert sorted(by_tool["torchvision"]) == [
        [[80, 60], []],
        [[80, 60], [[1, 2, 29, 38], [5, 5, 45, 45]]],
    ]
    # A crowd has no word there.
    boxes = {Path(file).name: [classes, boxes] for file, classes, boxes in by_tool["ultralytics"]}
    middle = pytest.approx([27.5 / 80, 27.5 / 60, 45 / 80, 45 / 60], abs=1e-6)
    assert boxes == {
        "0.png": [["dog"], [middle]],
        "1.png": [[], []],
    }
