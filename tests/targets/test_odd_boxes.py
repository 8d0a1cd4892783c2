"""Groups of boxes that a tool wrote wrongly, told by many boxes."""

from __future__ import annotations

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from darkroom.targets.boxes.odd_boxes import find_odd_groups

WIDTH, HEIGHT = 640, 480
# Classes, of which one is high and one is wide.
FORMS = np.array([-0.9, 0.6])
SWAPPED = [1, 0, 3, 2]


def draw(count=200, seed=0, size=(WIDTH, HEIGHT)):
    """Returns labels and corners of boxes, of which images cut some at their edges."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(2, size=count)
    form = rng.normal(FORMS[labels], 0.3)
    side = 80 * np.exp(rng.normal(0, 0.5, count))
    half = np.stack([side * np.exp(form / 2), side * np.exp(-form / 2)]) / 2
    center = rng.random((2, count)) * np.array(size)[:, None]
    low, high = np.maximum(center - half, 0), np.minimum(center + half, np.array(size)[:, None])
    return labels, np.concatenate([low, high])


@pytest.fixture
def find(tmp_path):
    """Finds the groups of lists: (labels, corners) by their names, with one image a box."""

    def find(lists, size=(WIDTH, HEIGHT), level="file", unit=1, areas=None):
        rows = [
            {level: name, "label": f"c{label}", "box": (box / unit).tolist()}
            for name, (labels, corners) in lists.items()
            for label, box in zip(labels, corners.T, strict=True)
        ]
        for number, row in enumerate(rows):
            area = None if areas is None else float(areas[number])
            row["objects"] = [{"label": row.pop("label"), "box": row.pop("box"), "area": area}]
        columns = {name: [row.get(name) for row in rows] for name in ("file", "folder", "split")}
        table = {name: pa.array(texts, pa.string()) for name, texts in columns.items()}
        sides = (pa.array([side] * len(rows), pa.float64()) for side in size)
        table |= dict(zip(("width", "height"), sides, strict=True))
        thing = [("label", pa.string()), ("box", pa.list_(pa.float64())), ("area", pa.float64())]
        kind = pa.list_(pa.struct(thing))
        table |= {"unit": pa.array([unit] * len(rows), pa.int64())}
        table |= {"objects": pa.array([row["objects"] for row in rows], kind)}
        pq.write_table(pa.table(table), tmp_path / "images.parquet")
        with duckdb.connect() as connection:
            found = find_odd_groups(connection, f"FROM '{tmp_path}/images.parquet'")
        return [f"{each}" for each in found]

    return find


def plant(change):
    """Returns two lists, of which a tool changed the corners of one."""
    labels, corners = draw(seed=1)
    return {"a": draw(400), "b": (labels, change(corners))}


HALF = "are half as large as the others, and none is beyond the middle of its image"
SHIFTED = "are shifted by 12 pixels"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda corners: corners / 2, HALF),
        (lambda corners: corners + 12, SHIFTED),
        (lambda corners: corners - 12, SHIFTED),
        (lambda corners: np.minimum(corners + 12, [[WIDTH], [HEIGHT]] * 2), SHIFTED),
        (lambda corners: np.maximum(corners - 12, 0), SHIFTED),
        (lambda corners: corners[SWAPPED], "would be inside if x and y were swapped"),
    ],
)
def test_the_fault_of_a_tool_is_named_with_its_group(find, change, said):
    for level, where in (("file", "of b"), ("split", "of the split b")):
        [found] = find(plant(change), level=level)
        assert found.startswith(f"The 200 boxes {where} ")
        assert said in found


def test_a_folder_is_named_by_the_end_of_its_path(find):
    right, wrong = plant(lambda corners: corners / 2).values()
    found = find({"/home/me/set/a/": right, "/home/me/set/b/": wrong}, level="folder")
    assert found == [f"The 200 boxes in the folder set/b {HALF}"]


def test_a_fault_of_all_boxes_is_named_without_a_group(find):
    labels, corners = draw()
    for change, said in (
        (corners[SWAPPED], "would be inside if x and y were swapped"),
        (corners / 2, "are in the upper left quarter of their images"),
        (corners + 12, SHIFTED),
    ):
        [found] = find({"a": (labels, change)})
        assert found.startswith("The 200 boxes ")
        assert said in found


def test_x_and_y_that_are_swapped_inside_squares_are_told_by_the_forms_of_classes(find):
    square = (600, 600)
    labels, corners = draw(seed=1, size=square)
    lists = {"a": draw(400, size=square), "b": (labels, corners[SWAPPED])}
    [found] = find(lists, square)
    assert found.startswith(
        "The 200 boxes of b are as wide as the others of their classes are high"
    )


def test_boxes_as_shares_of_the_image_are_shifted_by_a_part_of_it(find):
    size = (1000, 1000)
    labels, corners = draw(seed=1, size=size)
    lists = {"a": draw(400, size=size), "b": (labels, corners + 12)}
    [found] = find(lists, size, unit=1000)
    assert "are shifted by 1.2 % of the image" in found


@pytest.mark.parametrize("seed", range(5))
def test_lists_that_are_right_are_not_named(find, seed):
    labels, corners = draw(seed=seed + 10)
    # People draw beside the edge at times, and cameras are nearer.
    loose = corners + np.random.default_rng(seed).normal(0, 1.5, corners.shape).round()
    assert find({"a": draw(300, seed), "b": (labels, loose)}) == []


def test_few_boxes_or_images_without_sizes_say_nothing_about_places(find):
    labels, corners = draw(49, seed=1)
    assert find({"a": draw(400), "b": (labels, corners / 2)}) == []
    lists = plant(lambda corners: corners / 2)
    assert find(lists, size=(None, None)) == []


def test_many_folders_are_scenes_of_which_each_may_be_odd(find):
    lists = {f"{number}": draw(60, number) for number in range(25)}
    labels, corners = lists["7"]
    lists["7"] = (labels, corners / 2)
    assert find(lists, level="folder") == []


@pytest.mark.parametrize(
    ("change", "is_odd"),
    [
        (lambda width, height, corners: width * height, False),
        (lambda width, height, corners: (width + 1) * (height + 1), False),  # pixels are counted
        (lambda width, height, corners: width * height * 0.785, False),  # a mask in the box
        (lambda width, height, corners: width * height * 4, True),
        (lambda width, height, corners: (width - corners[0]) * (height - corners[1]), True),
        (lambda width, height, corners: corners[2] * corners[3], True),
    ],
)
def test_areas_show_another_unit_or_reading_of_boxes(find, change, is_odd):
    labels, corners = draw(8, seed=3)
    corners = corners + 10
    width, height = corners[2:] - corners[:2]
    found = find({"a": (labels, corners)}, (None, None), areas=change(width, height, corners))
    assert [("area" in each) for each in found] == [True] * is_odd


def test_nothing_is_said_without_boxes(find):
    assert find({}) == []
