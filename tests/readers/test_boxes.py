"""Readers of detectors find the objects of records, each in an environment of its own."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pandas as pd
import pytest
from PIL import Image

import darkroom
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
    frame = pd.DataFrame({"split": "train", "image_uri": uris, "objects": OBJECTS})
    return Path(darkroom.convert(frame, folder / "records").output_dir)


def run(python: Path, script: str, records: Path) -> list[list[object]]:
    """Returns what a script prints of records, a list a line."""
    path = Path(__file__).with_name(script)
    done = subprocess.run(
        [str(python), str(path), str(records)], capture_output=True, text=True, timeout=600
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
