"""Targets that say places go where the pixels of their images go, in batches of NumPy."""

from __future__ import annotations

import sys
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from PIL import Image
from tests.images.coordinates import check_points, make_coordinates
from tests.targets.point import kind as point_kind

from darkroom.conversion.convert import convert
from darkroom.data.open import open_data
from darkroom.dataset.commit import Target
from darkroom.options import ConversionOptions
from darkroom.options.augmentation import parse_augmentation
from darkroom.options.input import InputOptions
from darkroom.reader import draws
from darkroom.reader.decoding import Decoding, ViewOptions
from darkroom.reader.loader import Loader
from darkroom.reader.records import SplitRecords
from darkroom.targets import kind
from darkroom.targets.geometry import Matrix

pytest.importorskip("cv2")
SIZES = ((96, 170), (97, 171), (300, 210), (60, 66))
VIEW = (64, 80)
UNKNOWN = 5


def write_records(folder, encoding: str):
    """Writes images whose colors say where they come from, each with a point."""
    random = np.random.default_rng(1)
    rows = ["image_uri,x,y"]
    for number in range(16):
        (height, width), form = SIZES[number % 4], ("png", "jpg")[number // 4 % 2]
        path = folder / f"{number:02d}.{form}"
        image = Image.fromarray(make_coordinates(height, width))
        image.save(path, **({"quality": 100, "subsampling": 0} if form == "jpg" else {}))
        x, y = random.uniform(0.2, 0.8, 2) * (width, height)
        rows.append(f"{path.name}," + ("," if number == UNKNOWN else f"{x},{y}"))
    (folder / "list.csv").write_text("\n".join(rows))
    convert(
        folder / "list.csv",
        folder / "records",
        target_columns=("x", "y"),
        split_ratios="100/0/0",
        options=ConversionOptions(encoding=encoding),
    )
    return open_data([folder / "records"]).splits["train"]


@pytest.fixture(scope="module", params=["keep", "raw"])
def split(request, tmp_path_factory: pytest.TempPathFactory):
    return write_records(tmp_path_factory.mktemp("points"), request.param)


@pytest.fixture
def points(split, monkeypatch):
    """The split with the kind that only tests know."""
    monkeypatch.setitem(sys.modules, "darkroom.targets.point.kind", point_kind)
    monkeypatch.setattr(kind, "KINDS", (*kind.KINDS, "point"))
    targets = {"label": Target("point", ("x", "y"))}
    commits = {root: replace(each, targets=targets) for root, each in split.commits.items()}
    return SplitRecords(replace(split, commits=commits))


def make_options(augment: str, resize: str = "stretch", scaled: bool = True) -> ViewOptions:
    return ViewOptions(VIEW, resize, parse_augmentation(augment), scaled, {}, None)


@pytest.mark.parametrize(
    ("augment", "resize", "scaled"),
    [
        ("none", "stretch", True),
        ("none", "center_crop", False),
        ("crop,flip", "stretch", True),
        ("crop=0.5-1,flip,rotate=20", "stretch", True),
    ],
)
def test_the_matrix_of_a_view_says_where_its_pixels_come_from(points, augment, resize, scaled):
    numbers = np.arange(16)
    images = {"positions": numbers + 50, "epoch": draws.number_epoch(2, 3)}
    views = np.empty((16, *VIEW, 3), np.uint8)
    places, options = points.find_places(numbers), make_options(augment, resize, scaled)
    decoding = Decoding(points.files, places, options, **images, views=views)
    decoding.run(numbers)
    whole = np.broadcast_arrays(*decoding.locate(), numbers)[:6]
    # Corners are reflected: they come from elsewhere.
    margin = 12 if "rotate" in augment else 0
    for number, values in enumerate(zip(*whole, strict=True)):
        matrix = Matrix(*values)._replace(x0=values[2] - margin, y0=values[5] - margin)
        inside = views[number, margin : VIEW[0] - margin, margin : VIEW[1] - margin]
        source = places.facts["height"][number], places.facts["width"][number]
        check_points(inside, matrix, source)


# To start processes takes two seconds; tests/reader/test_processes.py has all that they send.
@pytest.mark.parametrize(
    ("split", "training", "threads"),
    [*product(("keep", "raw"), (True, False), (1,)), ("keep", True, 4)],
    indirect=["split"],
)
def test_points_of_batches_are_where_their_pixels_are(points, training, threads):
    options = InputOptions(VIEW, batch_size=5, num_threads=threads, prefetch=0)
    views = make_options("crop=0.3-1,flip,rotate=10" if training else "none")
    loader = Loader(points, options, views, training, "exact")
    sources = points.take_targets(np.arange(16))
    sizes = np.stack([points.facts[name] for name in ("width", "height")], 1)
    seen = 0
    for batches in range(3):
        if loader._processes and batches == 1:
            loader._processes._begun.join()
        for images, targets in loader:
            assert (targets.dtype, targets.shape) == (np.float32, (len(images), 2))
            for image, (x, y) in zip(images, targets, strict=True):
                if np.isnan(x) or not (10 < x < VIEW[1] - 10 and 10 < y < VIEW[0] - 10):
                    continue
                red, green, _ = image[int(y), int(x)].astype(float) - 28
                found = np.array((red, green)) / 200
                assert np.nanmin(np.abs(sources / sizes - found).max(1)) < 0.03
                seen += 1
    assert (threads == 4) == bool(loader._processes and loader._processes.are_ready)
    assert seen > (30 if not training else 20)


def test_images_that_keep_their_sizes_keep_their_points(points):
    views = replace(make_options("none"), image_size=None)
    loader = Loader(points, InputOptions(VIEW, batch_size=5), views, False, "exact")
    found = np.stack([target for batch in loader for _, target in batch])
    expected = points.take_targets(np.arange(16))
    assert np.array_equal(found, expected, equal_nan=True)
    assert np.isnan(found).any(1).sum() == 1
    assert np.array_equal(loader.images[3][1], expected[3])
