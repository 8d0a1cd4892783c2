"""Readers of other frameworks find every record by the sidecars, each in an environment of its own.

They read, and SHA-256, label and split of what they read are compared with the index.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from darkroom.dataset.index import read_index

from ..environments import make_environment
from ..sidecars.datasets import KINDS, make_dataset

pytestmark = pytest.mark.newest

ROOT = Path(__file__).parents[2]
# What each environment has, and whether its reader reads the images, or the index alone.
READERS = {
    "tfds": (["tensorflow", "tensorflow-datasets"], True),
    "dali": (["nvidia-dali-cuda120", "numpy"], True),
    "croissant": (["mlcroissant[parquet]"], False),
    "huggingface": (["datasets"], False),
}


@pytest.fixture(scope="module", params=READERS)
def reader(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture(scope="module")
def python(reader: str) -> Path:
    """The Python of an environment."""
    return make_environment(reader, READERS[reader][0]) / "python"


@pytest.fixture(scope="module", params=KINDS)
def records(
    request: pytest.FixtureRequest, reader: str, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    if request.param == "boxes" and reader != "tfds":
        pytest.skip("it reads no objects")
    folder = tmp_path_factory.mktemp("described") / "images"
    made = make_dataset(folder, request.param, describe=tuple(READERS))
    return Path(made.output_dir)


def test_everything_is_read_once(reader, python, records, tmp_path):
    script = Path(__file__).with_name(f"read_{reader}.py")
    environment = {**os.environ, "HOME": str(tmp_path), "HF_HUB_OFFLINE": "1"}
    done = subprocess.run(
        [str(python), str(script), str(records)],
        capture_output=True,
        text=True,
        env=environment,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    rows = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("[")]
    names = ["sha256", "label", "split"]
    index = read_index(str(records / "index"), names).to_pylist()
    expected = [[row["sha256"], spell(row["label"]), row["split"]] for row in index]
    # DALI has a number, of no meaning, where a record has none.
    unknown = {sha256 for sha256, label, _ in expected if label is None and reader == "dali"}
    rows = [[row[0], None if row[0] in unknown else row[1], row[2]] for row in rows]
    assert count(rows) == count(expected)


def spell(label: Any) -> Any:
    """Objects are lists of their class and corners."""
    if not isinstance(label, list) or not label or not isinstance(label[0], dict):
        return label
    names = ("label", "xmin", "ymin", "xmax", "ymax")
    return [[each[name] for name in names] for each in label]


def count(rows: list[list[Any]]) -> Counter[str]:
    """Counts equal rows; to some readers an empty list and no list look the same."""
    return Counter(json.dumps([row[0], None if row[1] == [] else row[1], row[2]]) for row in rows)
