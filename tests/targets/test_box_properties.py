"""Boxes move as a slow, obvious way says: corner by corner, box by box."""

from __future__ import annotations

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from darkroom.targets.boxes.moving import move_boxes
from darkroom.targets.geometry import IDENTITY, Matrix, cut, rotate, scale, turn

SIDES = st.integers(1, 400)
SHARES = st.floats(0, 1, width=32)
BOXES = st.lists(st.tuples(SHARES, SHARES, SHARES, SHARES), max_size=5)


@st.composite
def views(draw) -> tuple[Matrix, tuple[int, int], bool]:
    """How an image becomes a view: where shares of it go, the size, and whether it is turned."""
    (height, width), size = draw(st.tuples(SIDES, SIDES)), draw(st.tuples(SIDES, SIDES))
    top, left = draw(st.integers(0, height - 1)), draw(st.integers(0, width - 1))
    tall, wide = draw(st.integers(1, height - top)), draw(st.integers(1, width - left))
    matrix = scale(width, height).then(cut(left, top)).then(scale(size[1] / wide, size[0] / tall))
    matrix = matrix.then(turn(*size, mirrored=draw(st.integers(0, 1))))
    if angle := draw(st.sampled_from([0.0, 0.3, -2.0])):
        matrix = matrix.then(rotate(math.cos(angle), math.sin(angle), *size))
    return matrix, size, angle != 0


def sort_corners(boxes: list[tuple[float, ...]]) -> np.ndarray:
    found = np.array(boxes, np.float64).reshape(-1, 2, 2)
    return np.sort(found, axis=1).reshape(-1, 4)


def move_slowly(box: np.ndarray, matrix: Matrix, size: tuple[int, int]) -> tuple[list, float]:
    """What of a box is in a view, and its share."""
    corners = [matrix.move(float(x), float(y)) for x in box[[0, 2]] for y in box[[1, 3]]]
    whole, seen = [], []
    for place, side in ((0, size[1]), (1, size[0])):
        least, most = min(each[place] for each in corners), max(each[place] for each in corners)
        whole.append(most - least)
        seen.append((min(max(least, 0), side), min(max(most, 0), side)))
    (left, right), (top, bottom) = seen
    if min(right - left, bottom - top) <= 1e-3:
        return [], 0
    return [left, top, right, bottom], (right - left) * (bottom - top) / (whole[0] * whole[1])


@given(views(), BOXES, st.sampled_from([0.0, 0.25, 1.0]))
def test_boxes_move_as_corner_by_corner(view, corners, min_visible):
    matrix, size, _ = view
    boxes = sort_corners(corners)
    moved, is_shown = move_boxes(boxes, matrix, size, min_visible, np)
    assert (moved.shape, is_shown.shape) == (boxes.shape, boxes.shape[:1])
    for box, found, shown in zip(boxes, moved, is_shown, strict=True):
        expected, share = move_slowly(box, matrix, size)
        if abs(share - min_visible + 1e-3) > 1e-9:
            assert shown == (bool(expected) and share > min_visible - 1e-3)
        np.testing.assert_allclose(found, expected if shown else [0, 0, 0, 0], atol=1e-9)


@given(st.lists(st.tuples(views(), BOXES), min_size=1, max_size=4))
def test_a_batch_moves_each_image_by_its_own_matrix(images):
    size = images[0][0][1]
    matrices, boxes = [view[0] for view, _ in images], [sort_corners(each) for _, each in images]
    batch = np.zeros((len(images), 5, 4))
    for row, some in zip(batch, boxes, strict=True):
        row[: len(some)] = some
    columns = Matrix(*(np.array(values)[:, None] for values in zip(*matrices, strict=True)))
    moved, is_shown = move_boxes(batch, columns, size, 0.25, np)
    for number, (matrix, some) in enumerate(zip(matrices, boxes, strict=True)):
        expected, shown = move_boxes(some, matrix, size, 0.25, np)
        np.testing.assert_array_equal(moved[number, : len(some)], expected)
        assert is_shown[number].tolist() == [*shown, *[False] * (5 - len(some))]


@given(views(), BOXES)
def test_a_box_that_is_cut_twice_is_cut_once(view, corners):
    """Without a turn, which makes boxes larger."""
    matrix, size, is_turned = view
    if is_turned:
        return
    boxes = sort_corners(corners)
    mirror = turn(*size, mirrored=1)
    once, is_shown = move_boxes(boxes, matrix.then(mirror), size, 0, np)
    first, _ = move_boxes(boxes, matrix, size, 0, np)
    twice, _ = move_boxes(first, mirror, size, 0, np)
    np.testing.assert_allclose(once[is_shown], twice[is_shown], atol=1e-9)


def test_all_of_an_image_is_shown_by_all_of_its_view():
    """At the edges, products are rounded: nothing is lost by that."""
    box = np.array([[0.0, 0, 1, 1]])
    for side in range(1, 2000):
        matrix = scale(side, side).then(scale(224 / side, 224 / side))
        moved, [is_shown] = move_boxes(box, matrix, (224, 224), 1, np)
        assert is_shown
        np.testing.assert_allclose(moved, [[0, 0, 224, 224]])


def test_less_than_is_asked_for_is_left_out():
    boxes = np.array([[0, 0, 4, 4], [6, 0, 10, 4], [7, 0, 11, 4], [8, 0, 12, 4.0]])
    moved, is_shown = move_boxes(boxes, IDENTITY, (10, 8), 0.25, np)
    assert is_shown.tolist() == [True, True, True, False]
    assert moved.tolist() == [[0, 0, 4, 4], [6, 0, 8, 4], [7, 0, 8, 4], [0, 0, 0, 0]]
