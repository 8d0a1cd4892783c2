"""A small data set, and artifacts as TFX would hand them to an executor."""

from __future__ import annotations

import csv
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

LABELS = ("cat", "dog", "owl")
BEAM_ARGS = ["--runner=FnApiRunner", "--sdk_container_image=local"]


@pytest.fixture(autouse=True)
def own_argv(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keeps pytest's arguments from absl, to which TFX hands the process's own."""
    monkeypatch.setattr(sys, "argv", sys.argv[:1])


@pytest.fixture
def images(tmp_path: Path) -> Path:
    """A CSV of 30 different images of three labels, 24 to train and 6 to evaluate.

    They are JPEGs, which are converted without a process of a decoder.
    """
    rng = np.random.default_rng(7)
    folder = tmp_path / "images"
    folder.mkdir()
    rows = []
    for number in range(30):
        pixels = rng.integers(0, 256, (12, 10, 3), np.uint8)
        Image.fromarray(pixels).save(folder / f"{number:02d}.jpg")
        split = "VALIDATION" if number % 5 == 4 else "TRAIN"
        rows.append((split, f"{number:02d}.jpg", LABELS[number % 3]))
    path = folder / "images.csv"
    write_csv(path, [("split", "image_uri", "label"), *rows])
    return path


def write_csv(path: Path, rows: list[tuple[Any, ...]]) -> None:
    with path.open("w", newline="") as file:
        csv.writer(file).writerows(rows)


def read_csv(path: Path) -> list[tuple[str, ...]]:
    with path.open(newline="") as file:
        return [tuple(row) for row in csv.reader(file)]


@pytest.fixture
def new_artifact(tmp_path: Path) -> Callable[..., Any]:
    """Makes artifacts whose folders exist, as TFX's driver does."""
    numbers: Iterator[int] = iter(range(1000))

    def make(artifact_type: type[Any]) -> Any:
        artifact = artifact_type()
        folder = tmp_path / "artifacts" / f"{artifact_type.__name__}-{next(numbers)}"
        folder.mkdir(parents=True)
        artifact.uri = str(folder)
        return artifact

    return make


@pytest.fixture
def beam_context(tmp_path: Path) -> Any:
    """What TFX hands to an executor that uses Beam."""
    from tfx.dsl.components.base.base_beam_executor import BaseBeamExecutor

    return BaseBeamExecutor.Context(
        beam_pipeline_args=list(BEAM_ARGS), tmp_dir=str(tmp_path / "tmp"), unique_id="1"
    )


@pytest.fixture
def converted(images: Path, new_artifact: Callable[..., Any], beam_context: Any) -> dict[str, Any]:
    """The artifacts of ManifestGen and ImageToTFRecord on `images`, by name."""
    return convert_source(str(images), new_artifact, beam_context)


def convert_source(
    source: str, new_artifact: Callable[..., Any], beam_context: Any, **options: Any
) -> dict[str, Any]:
    from tfx.types import standard_artifacts

    from darkroom.components.artifacts import ImageManifest, RecordIndex, Rejects
    from darkroom.components.image_to_tfrecord import executor as convert
    from darkroom.components.manifest_gen import executor as manifest
    from darkroom.options.conversion import RecordOptions
    from darkroom.options.manifest import ManifestOptions

    made = {
        "manifest": new_artifact(ImageManifest),
        "manifest_rejects": new_artifact(Rejects),
        "examples": new_artifact(standard_artifacts.Examples),
        "index": new_artifact(RecordIndex),
        "rejects": new_artifact(Rejects),
    }
    manifest.Executor().Do(
        {},
        {"manifest": [made["manifest"]], "list_rejects": [made["manifest_rejects"]]},
        {"source": source, "options": ManifestOptions.parse(**options).to_json()},
    )
    convert.Executor(beam_context).Do(
        {name: [made[name]] for name in ("manifest", "manifest_rejects")},
        {name: [made[name]] for name in ("examples", "index", "rejects")},
        {"options": RecordOptions().to_json()},
    )
    return made
