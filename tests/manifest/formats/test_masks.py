import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from darkroom.manifest.formats.coco.masks import find_box


def draw(height, width, counts):
    """Returns the mask of runs, painted pixel by pixel."""
    runs = np.concatenate([np.full(count, number % 2) for number, count in enumerate(counts)])
    return runs.reshape(width, height).T


@given(st.data())
def test_runs_have_the_box_of_their_pixels(data):
    height, width = data.draw(st.integers(1, 12)), data.draw(st.integers(1, 12))
    cuts = data.draw(st.lists(st.integers(0, height * width), max_size=12))
    edges = [0, *sorted(cuts), height * width]
    counts = np.diff(edges).tolist()
    rows, columns = np.nonzero(draw(height, width, counts))
    expected = None
    if len(rows):
        expected = [columns.min(), rows.min(), columns.max() + 1, rows.max() + 1]
    assert find_box({"size": [height, width], "counts": counts}) == expected


@pytest.mark.parametrize(
    ("size", "counts", "box"),
    [  # As pycocotools writes them: a square with a hole, and a dot; two whole columns
        ([9, 12], "m05400MM03300h0L]O", [3, 2, 11, 9]),
        ([5, 4], "5:5", [1, 0, 3, 5]),
    ],
)
def test_compressed_runs_are_read_as_pycocotools_writes_them(size, counts, box):
    assert find_box({"size": size, "counts": counts}) == box


def test_polygons_have_one_box():
    assert find_box([[1, 2, 5, 2, 5.5, 7], [0.5, 3, 1, 3, 1, 4]]) == [0.5, 2, 5.5, 7]


@pytest.mark.parametrize(
    "mask",
    [
        *([], [[]], [[1, 2, 3]], [1, 2, 3, 4], [["a", "b"]], {}, None, "text", [None]),
        {"size": [2, 2], "counts": [4]},
        {"size": [2, 2], "counts": [1, 9]},
        {"size": [2, 2], "counts": [5, -2, 1]},
        {"size": [0, 0], "counts": []},
        {"size": [2], "counts": [1, 3]},
        {"size": [2, 2], "counts": "\x00"},
        {"size": [2, 2], "counts": "o" * 100_000},
        {"size": [1 << 40, 1 << 40], "counts": [1 << 62, 1 << 62, 1 << 62, 1 << 62]},
    ],
)
def test_what_is_not_a_mask_has_no_box(mask):
    assert find_box(mask) is None
