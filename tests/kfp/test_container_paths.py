"""No path of a container is in what outlives it: artifacts, metadata, output parameters."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import pytest

import darkroom

from ..evaluation.conftest import COLORS, exported, model, write_pictures  # noqa: F401
from .tasks import Artifact, Cluster, Done, list_files

DATASET = "minio://mlpipeline/v2/artifacts/images/run-1/convert/1/dataset"


@pytest.fixture
def dataset(cluster, jpeg_set):
    made = Artifact(DATASET)
    darkroom.convert(jpeg_set.csv, cluster.find(made))
    return made


def find_traces(cluster: Cluster, done: Done) -> list[str]:
    """Returns which outputs of a task name a folder of its container."""
    places = [str(cluster.folder / "containers"), str(Path(tempfile.gettempdir(), "darkroom-"))]
    said = {f"{key} (metadata)": json.dumps(each.metadata) for key, each in done.artifacts.items()}
    said |= {key: json.dumps(each) for key, each in done.parameters.items()}
    for key, artifact in done.artifacts.items():
        path = cluster.find(artifact)
        if not path.exists():  # the log, which the launcher writes
            continue
        files = list_files(path) if path.is_dir() else {"": path.read_bytes()}
        said |= {f"{key}/{name}": data.decode("latin-1") for name, data in files.items()}
    return [key for key, text in said.items() if any(place in text for place in places)]


@pytest.mark.tensorflow  # by TFDV
def test_a_task_of_data_names_the_dataset_by_its_uri(cluster, dataset):
    runs = {
        name: cluster.run(name, {"dataset": dataset})
        for name in ("dataset_statistics", "verify_dataset", "find_duplicates", "inspect_dataset")
    }
    runs["validate_dataset"] = cluster.run("validate_dataset", {"dataset": dataset}, fail=False)
    assert {
        name: found for name, done in runs.items() if (found := find_traces(cluster, done))
    } == {}
    page = cluster.find(runs["verify_dataset"].artifacts["verification_page"]).read_text()
    assert f">{DATASET}<" in page


def test_a_conversion_names_no_folder_of_its_container(cluster, faulty_set):
    done = cluster.run("convert_images", data=str(faulty_set.csv), max_rejects=1.0)
    assert find_traces(cluster, done) == []
