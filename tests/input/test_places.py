"""Targets that say places go where the pixels of their images go, in batches of tf.data."""

from __future__ import annotations

import csv
import sys
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image
from tests.targets.point import kind, learning

from darkroom.conversion.convert import convert
from darkroom.data.open import open_data
from darkroom.dataset.commit import Target
from darkroom.input.opening import open_splits
from darkroom.input.pipeline import make_eval_dataset, make_train_dataset
from darkroom.options.input import InputOptions

pytestmark = pytest.mark.tensorflow

SIZE = (96, 128)


@pytest.fixture(scope="module")
def points(tmp_path_factory: pytest.TempPathFactory):
    """A split of 16 images with a bright disc each; of the last one, nobody knows where it is."""
    folder = tmp_path_factory.mktemp("points")
    random = np.random.default_rng(0)
    cells = [("image_uri", "x", "y")]
    for number in range(16):
        width, height = (400, 260) if number % 2 else (300, 330)
        x, y = random.uniform(40, width - 40), random.uniform(40, height - 40)
        rows, columns = np.mgrid[0.5:height, 0.5:width]
        disc = 9 - np.hypot(columns - x, rows - y)
        pixels = np.repeat(np.clip(disc, 0, 1)[..., None] * 240 + 9, 3, axis=2)
        name = f"{number}.{'jpg' if number % 4 else 'png'}"
        Image.fromarray(pixels.astype(np.uint8)).save(folder / name, quality=95)
        cells.append((name, *(("", "") if number == 15 else (x, y))))
    with (folder / "points.csv").open("w") as file:
        csv.writer(file).writerows(cells)
    records = folder / "records"
    convert(folder / "points.csv", records, target_columns=("x", "y"), split_ratios="100/0/0")
    split = open_data([str(records)]).splits["train"]
    targets = {"label": Target("point", ("x", "y"))}
    commits = {root: replace(each, targets=targets) for root, each in split.commits.items()}
    return replace(split, commits=commits)


@pytest.fixture
def source(points, monkeypatch):
    """The images of the split, whose kind of target is registered."""
    monkeypatch.setattr("darkroom.targets.kind.KINDS", ("point",))
    for part in (kind, learning):
        name = part.__name__.rpartition(".")[2]
        monkeypatch.setitem(sys.modules, f"darkroom.targets.point.{name}", part)
    [source] = open_splits({"train": points}).values()
    return source


def check(batches) -> np.ndarray:
    """Checks that a disc is around each point in a view, and returns the points, float32 [N, 2]."""
    found = []
    rows, columns = (np.arange(side) + 0.5 for side in SIZE)
    for images, targets in batches.as_numpy_iterator():
        for image, (x, y) in zip(images, targets["point"], strict=True):
            found.append((x, y))
            # At the edges, a part of the disc is missing, or is there twice.
            if 12 < x < SIZE[1] - 12 and 12 < y < SIZE[0] - 12:
                near = (abs(rows - y) < 12)[:, None] & (abs(columns - x) < 12)
                bright = np.where(near, np.maximum(image[..., 0].astype(float) - 40, 0), 0)
                center = (bright.sum(0) @ columns, bright.sum(1) @ rows) / bright.sum()
                np.testing.assert_allclose(center, (x, y), atol=0.4)
    return np.array(found)


@pytest.mark.parametrize("resize", ["stretch", "center_crop"])
def test_a_point_of_a_whole_image_is_where_the_pixel_is(source, resize):
    found = check(make_eval_dataset(source, InputOptions(SIZE, batch_size=5, resize=resize)))
    assert np.isnan(found).all(1).sum() == 1
    assert len(found) == 16


@pytest.mark.parametrize(
    "augment",
    [
        "crop,flip,color=0.2,rotate=15",
        *(pytest.param(each, marks=pytest.mark.long) for each in ("flip", "crop", "rotate=20")),
    ],
)
def test_a_point_follows_all_that_changes_its_image(source, augment):
    options = InputOptions(SIZE, batch_size=5, augment=augment, seed=3)
    epochs = [check(make_train_dataset(source, options, epoch=epoch)) for epoch in range(2)]
    plain = check(make_eval_dataset(source, options))
    inside = [np.all((each > 12) & (each < np.array(SIZE[::-1]) - 12), axis=1) for each in epochs]
    assert np.sum(inside) > 5
    for each in epochs:
        assert len({*map(tuple, each[~np.isnan(each[:, 0])])} - {*map(tuple, plain)}) >= 4


def test_batches_have_the_structure_of_the_target(source):
    for batches in (
        make_train_dataset(source, InputOptions(SIZE, augment="none")),
        make_eval_dataset(source, InputOptions(SIZE)),
    ):
        _, targets = batches.element_spec
        assert {name: spec.shape.as_list() for name, spec in targets.items()} == {
            "point": [None, 2]
        }
