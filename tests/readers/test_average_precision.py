"""Average precision of results is that of pycocotools, in an environment of its own."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import darkroom
from darkroom.dataset.commit import read_dataset
from darkroom.dataset.index import read_index
from darkroom.targets.boxes.matching import read_truth
from darkroom.targets.boxes.precision import COMPARED_COLUMNS, average_precision, match_sizes
from darkroom.targets.boxes.results import DetectorFiles, read_detections

from ..environments import make_environment
from ..pictures import encode, make_noise
from .test_boxes import run

pytestmark = pytest.mark.newest

WIDTH, HEIGHT, CLASSES, IMAGES = 400, 300, 5, 60


def write_files(folder: Path, seed: int) -> None:
    """Writes 1,000 objects, a twentieth of them crowds, and results near them and elsewhere."""
    rng = np.random.default_rng(seed)
    images = [
        {"id": number + 5, "file_name": f"{number}.png", "width": WIDTH, "height": HEIGHT}
        for number in range(IMAGES)
    ]
    for image in images:
        (folder / image["file_name"]).write_bytes(encode(make_noise(image["id"], HEIGHT, WIDTH)))
    objects, results = [], []

    def add_result(image: int, label: int, box: np.ndarray) -> None:
        score, sides = rng.random(), box.tolist()
        results.append({"image_id": image, "category_id": label, "bbox": sides, "score": score})

    for number in range(1000):
        image, label = int(rng.integers(IMAGES)) + 5, int(rng.integers(CLASSES)) + 1
        size = np.minimum(np.exp(rng.uniform(2, 5.4, 2)), (WIDTH - 10, HEIGHT - 10))
        box = np.concatenate([rng.uniform(0, (WIDTH, HEIGHT) - size), size])
        objects.append(
            {
                "id": number + 1,
                "image_id": image,
                "category_id": label,
                "bbox": box.tolist(),
                "area": float(size.prod() * rng.uniform(0.5, 1)),
                "iscrowd": int(rng.random() < 0.05),
            }
        )
        for _ in range(rng.integers(0, 3)):
            said = label if rng.random() < 0.9 else int(rng.integers(CLASSES)) + 1
            add_result(image, said, box + rng.normal(0, 0.08, 4) * np.tile(size, 2))
    for _ in range(300):
        size = rng.uniform(5, 150, 2)
        box = np.concatenate([rng.uniform(0, (WIDTH, HEIGHT) - size), size])
        add_result(int(rng.integers(IMAGES)) + 5, int(rng.integers(CLASSES)) + 1, box)
    categories = [{"id": number + 1, "name": f"c{number}"} for number in range(CLASSES)]
    listed = {"images": images, "annotations": objects, "categories": categories}
    (folder / "annotations.json").write_text(json.dumps(listed))
    (folder / "results.json").write_text(json.dumps(results))


@pytest.mark.parametrize("seed", [0, 1])
def test_average_precision_is_that_of_pycocotools(tmp_path, seed):
    write_files(tmp_path, seed)
    darkroom.convert(tmp_path / "annotations.json", tmp_path / "records")
    index = read_index(str(tmp_path / "records/index"), COMPARED_COLUMNS)
    labels = read_dataset(str(tmp_path / "records")).labels
    files = DetectorFiles(str(tmp_path / "results.json"))
    found, _ = read_detections(files, index, labels, None)
    truth = read_truth(index, labels)
    programs = make_environment("coco", ["pycocotools", "numpy"])
    files = tmp_path / "annotations.json", tmp_path / "results.json"
    expected = run(programs / "python", "read_pycocotools.py", *files)
    sizes = match_sizes(found, truth).values()
    for matched, values in zip(sizes, expected, strict=True):
        np.testing.assert_allclose(average_precision(matched, truth, CLASSES), values, atol=1e-6)
