"""Boxes in batches of NumPy."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

import darkroom
from darkroom.errors import DataError, UsageError
from darkroom.targets.boxes.kind import KIND

from .colored import (
    COUNT,
    LABELS,
    TRAINED,
    UNKNOWN,
    check_colors,
    get_size,
    list_objects,
    write_records,
)

pytest.importorskip("cv2")
SIZE = (96, 128)


@pytest.fixture(scope="module")
def records(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_records(tmp_path_factory.mktemp("boxes"))


def load(records: Path, **more):
    more = {"image_size": SIZE, "batch_size": 5, "framework": "numpy", "columns": ["number"]} | more
    return darkroom.load(records, **more)


def list_images(batches):
    """Yields each image of batches with its target and its number."""
    for images, targets, columns in batches:
        yield from zip(images, targets, columns["number"], strict=True)


def check_target(target, number: int, factors) -> None:
    """Checks a target against the list, whose boxes are multiplied by factors."""
    said = list_objects()[number]
    assert target["annotated"] == (number != UNKNOWN)
    boxes = np.array([each["box"] for each in said or ()]).reshape(-1, 4) * factors
    np.testing.assert_allclose(target["boxes"], boxes, atol=1e-3)
    labels = [LABELS.index(each["label"]) for each in said or ()]
    assert target["labels"].tolist() == labels
    assert target["is_crowd"].tolist() == [label == 2 for label in labels]
    assert target["difficult"].tolist() == [False] * len(labels)
    sides = boxes[:, 2:] - boxes[:, :2]
    np.testing.assert_allclose(target["area"], sides[:, 0] * sides[:, 1], rtol=1e-4)
    types = {name: values.dtype for name, values in target.items()}
    assert types == {
        "boxes": np.float32,
        "labels": np.int64,
        "is_crowd": bool,
        "difficult": bool,
        "area": np.float32,
        "annotated": bool,
    }


def test_whole_images_have_their_boxes_in_pixels_of_the_view(records):
    data = load(records)
    assert data.labels == LABELS
    seen = []
    for _, target, number in list_images([*data["train"], *data["eval"]]):
        height, width = get_size(number)
        check_target(target, number, [SIZE[1] / width, SIZE[0] / height] * 2)
        seen.append(number)
    assert sorted(seen) == [*range(COUNT)]


def test_images_that_keep_their_sizes_keep_their_boxes(records):
    data = load(records, image_size=None, transform=lambda image, target: (image, target))
    pairs = [each for batch in data["train"] for each in batch]
    assert len(pairs) == TRAINED
    for image, target, columns in pairs:
        assert image.shape == (*get_size(columns["number"]), 3)
        check_target(target, columns["number"], 1)
    for image, target, columns in data["eval"].images:
        check_target(target, columns["number"], 1)
        check_colors(image, target)


# Four threads are processes.
@pytest.mark.parametrize(
    ("more", "threads"),
    [
        ({"augment": "none", "resize": "center_crop"}, 2),
        ({"augment": "crop,flip,color=0.2"}, 2),
        ({"augment": "crop,flip,color=0.2"}, 4),
    ],
)
def test_a_box_is_where_its_pixels_are(records, more, threads):
    loader = load(records, training=True, min_visible=0, num_threads=threads, **more)["train"]
    shown = 0
    for epoch in range(4):
        if loader._processes and epoch == 1:
            loader._processes._begun.join()
        shown += sum(check_colors(image, target) for image, target, _ in list_images(loader))
    assert (threads == 4) == bool(loader._processes and loader._processes.are_ready)
    assert shown > 30


def test_a_box_surrounds_what_is_turned(records):
    loader = load(records, training=True, augment="rotate=30", min_visible=0)["train"]
    seen = 0
    for image, target, _ in list_images(loader):
        for box, label in zip(target["boxes"], target["labels"], strict=True):
            # Edges are reflected, so a color may be outside of its box, too.
            left, top, right, bottom = box.round().astype(int)
            part = image[top:bottom, left:right, label] > 125
            sides = [part.any(0)[: right - left], part.any(1)[: bottom - top]]
            assert min(right - left, bottom - top) < 3 or all(side.mean() > 0.9 for side in sides)
            seen += 1
    assert seen == 24 - 2


def test_a_window_leaves_out_objects_of_which_it_shows_too_little(records):
    def count(min_visible: float) -> int:
        more = {"training": True, "augment": "crop", "min_visible": min_visible, "first_label": 1}
        targets = [target for _, target, _ in list_images(load(records, **more)["train"])]
        labels = np.concatenate([target["labels"] for target in targets])
        assert {*labels.tolist()} <= {1, 2, 3}
        return len(labels)

    assert count(0) > count(0.25) > count(1) > 0


def test_orders_parts_and_states_have_the_targets_of_their_images(records):
    more = {"training": True, "augment": "flip", "seed": 4, "batch_size": 2}

    def read(loader) -> list[str]:
        return [f"{number} {target}" for _, target, number in list_images(loader)]

    loader = load(records, order="exact", **more)["train"]
    whole = read(loader)
    loader.set_epoch(0)
    batches = iter(loader)
    for _ in range(3):
        next(batches)
    again = load(records, order="exact", **more)["train"]
    again.load_state_dict(loader.state_dict())
    assert read(again) == whole[6:]
    parts = [
        read(load(records, order="exact", shard=(part, 2), **more)["train"]) for part in (0, 1)
    ]
    assert sorted(parts[0] + parts[1]) == sorted(whole)
    window = load(records, order="window", **more | {"augment": "none"})["train"]
    for image, target, number in list_images(window):
        assert check_colors(image, target) == len(list_objects()[number] or ())


def test_a_transform_gets_and_returns_images_with_their_targets(records):
    def mirror(image, target):
        left, top, right, bottom = target["boxes"].T
        boxes = np.stack([SIZE[1] - right, top, SIZE[1] - left, bottom], 1)
        return image[:, ::-1], {**target, "boxes": boxes}

    shown = [
        check_colors(image, target)
        for image, target, _ in list_images(load(records, transform=mirror)["train"])
    ]
    assert sum(shown) == 24 - 2
    for wrong in (lambda image, target: image, lambda image, target: (image, target, 1)):
        with pytest.raises(UsageError, match=r"expected \(image, target\)"):
            next(iter(load(records, transform=wrong)["eval"]))


def test_boxes_are_not_mixed(records):
    with pytest.raises(UsageError, match="boxes cannot be mixed"):
        load(records, training=True, augment="mixup")


def test_options_for_objects_are_refused_for_labels(tmp_path):
    Image.new("RGB", (40, 30)).save(tmp_path / "a.png")
    (tmp_path / "list.csv").write_text("image_uri,label\na.png,x\n")
    darkroom.convert(tmp_path / "list.csv", tmp_path / "records", split_ratios="100/0/0")
    for name, value in (("first_label", 1), ("min_visible", 0.5)):
        with pytest.raises(UsageError, match=f"{name} is {value}, which applies to objects"):
            darkroom.load(tmp_path / "records", image_size=8, framework="numpy", **{name: value})


def change_label(values: list, change) -> list:
    row = next(row for row in values if row)
    change(row)
    return values


@pytest.mark.parametrize(
    "change",
    [
        lambda row: row[0].update(xmax=float("nan")),
        lambda row: row[0].update(ymin=None),
        lambda row: row[0].update(ymax=1.25),
        lambda row: row[0].update(xmin=row[0]["xmax"] + 0.01),
        lambda row: row[0].update(label="grey"),
        lambda row: row[0].update(label=None),
        lambda row: row[0].update(is_crowd=None),
        lambda row: row.append(None),
    ],
)
def test_an_index_of_a_stranger_is_checked(records, tmp_path, change):
    folder = shutil.copytree(records, tmp_path / "records")
    [path] = (folder / "index").glob("index-00000-*")
    table = pq.read_table(path)
    values = change_label(table["label"].to_pylist(), change)
    place = table.schema.get_field_index("label")
    pq.write_table(table.set_column(place, "label", pa.array(values, KIND.column)), path)
    dataset = json.loads((folder / "dataset.json").read_text())
    assert dataset["objects"]["written"] == 34
    with pytest.raises(DataError, match=r"the label in row \d+ cannot be right"):
        load(folder)
