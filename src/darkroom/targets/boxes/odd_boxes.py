"""Groups of boxes that a tool wrote wrongly: its fault is one of many boxes.

A group is a list, a folder of images, a split, or all. DuckDB counts the boxes of each by their
places, forms and areas, and a group is compared with all others.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    import duckdb

# From so many boxes on, places say something about a group; of more folders, each has one scene.
_FEWEST, _MOST_GROUPS = 50, 20
# Pixels beside an edge of the image at which a box ends that touches it: those of a group that is
# shifted end further away, and some are outside. And where none touches an edge, how many of the
# others do at least, and by what share of the image the group is shifted at most.
_TOUCHING, _EXPECTED, _MOST_SHIFT = 2, 2, 0.05
# So many boxes outside are not slips.
_FEWEST_OUTSIDE, _LEAST_OUTSIDE = 3, 0.02
# Where boxes of half the size begin and end, as shares of the image, and how large they are beside
# the others.
_FIRST, _LAST, _HALF = 0.1, (0.4, 0.51), (0.25, 0.85)
# Differences of ln(width / height), which a swap negates: between boxes of a class that are unlike,
# in so many classes of so many boxes, and between images that are alike.
_UNLIKE, _LEAST_UNLIKE, _FEWEST_CLASSES, _FEWEST_OF_CLASS, _ALIKE = 0.5, 0.64, 2, 10, 0.2
# Area over that of the box: more is another unit. The share of such boxes, and that of areas which
# another reading of the numbers of a box has.
_FAR, _LEAST_FAR, _MOST, _FEWEST_AREAS = 1.5, 0.02, 0.9, 5

# What is counted of boxes: how those of two groups are joined, and SQL of one box.
_MEASURES = {
    "count": ("sum", "1"),
    "unit": ("max", "unit"),
    "image_form": ("sum", "ln(width / height)"),
    "image_side": ("sum", "least(width, height)"),
    "first_x": ("min", "xmin"),
    "first_y": ("min", "ymin"),
    "last_x": ("max", "xmax - width"),
    "last_y": ("max", "ymax - height"),
    "begin_x": ("min", "xmin / width"),
    "begin_y": ("min", "ymin / height"),
    "end_x": ("max", "xmax / width"),
    "end_y": ("max", "ymax / height"),
    "at_left": ("sum", f"(xmin <= {_TOUCHING})::INT"),
    "at_top": ("sum", f"(ymin <= {_TOUCHING})::INT"),
    "at_right": ("sum", f"(width - xmax <= {_TOUCHING})::INT"),
    "at_bottom": ("sum", f"(height - ymax <= {_TOUCHING})::INT"),
    "outside": ("sum", "is_outside::INT"),
    "outside_both": ("sum", "(is_outside AND is_outside_swapped)::INT"),
    "areas": ("sum", "(area IS NOT NULL)::INT"),
    "far_areas": ("sum", f"(area > {_FAR} * (across + 1) * (down + 1))::INT"),
    "other_areas": (
        "sum",
        """(abs(area - across * down) > 0.05 * area AND least(
            abs(area - (across - xmin) * (down - ymin)), abs(area - xmax * ymax)
        ) <= 0.02 * area)::INT""",
    ),
    "form": ("sum", "ln(across / down)"),
    "side": ("sum", "ln(across * down / (width * height)) / 2"),
}
_OF_BOXES = ", ".join(f"{join}({sql}) AS {name}" for name, (join, sql) in _MEASURES.items())
_OF_GROUPS = ", ".join(
    f"coalesce({join}({name}), 0) AS {name}" for name, (join, _) in _MEASURES.items()
)
# Boxes are read once; the groups of each level, and their classes, are joined of what they share.
_GROUPS = f"""
WITH boxes AS (
    SELECT * EXCLUDE (each), each.label AS label, unit * unit * each.area AS area,
        unit * each.box[1] AS xmin, unit * each.box[2] AS ymin,
        unit * each.box[3] AS xmax, unit * each.box[4] AS ymax
    FROM (SELECT * EXCLUDE (objects), unnest(objects) AS each FROM {{images}})
), measured AS (
    SELECT *, xmax - xmin AS across, ymax - ymin AS down,
        greatest(-xmin, -ymin, xmax - width, ymax - height) > {_TOUCHING} AS is_outside,
        greatest(-xmin, -ymin, xmax - height, ymax - width) > {_TOUCHING} AS is_outside_swapped
    FROM boxes
), joined AS (SELECT file, folder, split, label, {_OF_BOXES} FROM measured GROUP BY ALL)
SELECT grouping(file, folder, split) AS level, coalesce(file, folder, split, '') AS name,
    if(grouping(label) = 1, NULL, label) AS class, {_OF_GROUPS}
FROM joined GROUP BY GROUPING SETS (
    (file), (folder), (split), (), (file, label), (folder, label), (split, label), (label)
) ORDER BY level, sum(joined.count) DESC, name
"""
_LEVELS = ("file", "folder", "split")
_NUMBERS = f"""
SELECT {", ".join(f"approx_count_distinct({name})" for name in _LEVELS)}, count(width),
    count(list_max([each.area FOR each IN objects]))
FROM ({{images}})
"""
# What a group has in common, as `grouping` numbers it.
_WHERE = {3: " of {}", 5: " in the folder {}", 6: " of the split {}", 7: ""}
_ALL = 7
# Edges that boxes do not touch which are shifted away and cut, those that they touch, and places.
_UPPER_LEFT = ("at_left", "at_top"), ("at_right", "at_bottom"), ("first_x", "first_y")
_LOWER_RIGHT = ("at_right", "at_bottom"), ("at_left", "at_top"), ("last_x", "last_y")
_COUNTED = ("count", "image_form", "outside", *_UPPER_LEFT[0], *_UPPER_LEFT[1])
_Counts = Mapping[str, Any]
_Numbers = np.ndarray[Any, Any]


class OddGroup(NamedTuple):
    """Boxes that a tool probably wrote wrongly.

    Attributes:
        level: What they have in common, a number of `_WHERE`.
        name: Its name.
        boxes: How many they are.
        fault: What is wrong with them, as a sentence goes on after them.
    """

    level: int
    name: str
    boxes: int
    fault: str

    def __str__(self) -> str:
        """Returns a sentence without its full stop."""
        name = "/".join(self.name.strip("/").split("/")[-2:])
        return f"The {self.boxes:,} boxes{_WHERE[self.level].format(name)} {self.fault}"


def find_odd_groups(connection: duckdb.DuckDBPyConnection, images: str) -> list[OddGroup]:
    """Returns the groups whose boxes a tool probably wrote wrongly, the largest first.

    Files come before folders, and these before splits: the first that have a fault count.

    Args:
        connection: The database.
        images: SQL of a row for each image: the texts `file`, `folder` and `split`, null where they
            tell no group; `width` and `height`, in pixels, null where the list does not say them;
            `unit`, by which places become pixels, above 1 for shares, which become thousandths;
            and `objects`, each with `label`, `box` (xmin, ymin, xmax, ymax) and `area`, which is
            null where the list has none.
    """
    *numbers, sized, measured = connection.execute(_NUMBERS.format(images=images)).fetchall()[0]
    if not sized and not measured:  # Places alone say nothing.
        return []
    kept = {name: number <= _MOST_GROUPS for name, number in zip(_LEVELS, numbers, strict=True)}
    texts = ", ".join(f"if({is_kept}, {name}, NULL) AS {name}" for name, is_kept in kept.items())
    # Without sizes of images, areas alone say something.
    chosen = "WHERE width IS NOT NULL" if sized else ""
    images = f"(SELECT * REPLACE ({texts}) FROM ({images}) {chosen})"
    found = connection.execute(_GROUPS.format(images=images))
    names = [column[0] for column in found.description or ()]
    rows: list[_Counts] = [dict(zip(names, row, strict=True)) for row in found.fetchall()]
    groups = [each for each in rows if each["class"] is None]
    every = groups[-1]
    classes: defaultdict[tuple[int, str], dict[str, _Counts]] = defaultdict(dict)
    if sized and every["count"] >= _FEWEST:
        for each in rows:
            if each["class"] is not None:
                classes[each["level"], each["name"]][each["class"]] = each
    whole = classes[_ALL, ""]
    beside = [
        _Beside(own, every, [(each, whole[label]) for label, each in found.items()])
        for own in groups
        for found in [classes[own["level"], own["name"]]]
        if own["level"] == _ALL or own["count"] < every["count"]
    ]
    # Swapped forms are told by the others, which then seem swapped, too: after all other faults.
    for find in (_find_fault, _find_swapped):
        if odd := [(each.own, fault) for each in beside if (fault := find(each))]:
            first = odd[0][0]["level"]
            return [
                OddGroup(own["level"], own["name"], own["count"], fault)
                for own, fault in odd
                if own["level"] == first
            ]
    return []


class _Beside:
    """A group beside all other boxes.

    Args:
        own: The counts of its boxes.
        every: Those of all boxes.
        classes: Both for each of its classes.

    Attributes:
        own: As above.
        others: The counts of the others.
    """

    def __init__(
        self, own: _Counts, every: _Counts, classes: Sequence[tuple[_Counts, _Counts]]
    ) -> None:
        self.own = own
        self.others = {name: every[name] - own[name] for name in _COUNTED}
        self._classes = [
            (own, {name: every[name] - own[name] for name in ("count", "form", "side")})
            for own, every in classes
            if min(own["count"], every["count"] - own["count"]) >= _FEWEST_OF_CLASS
        ]
        self.is_judged = bool(classes) and own["count"] >= _FEWEST

    def compare(self, name: str) -> tuple[_Numbers, _Numbers, _Numbers]:
        """Returns a mean of the boxes of each class, that of the others, and how many it has."""
        means = [
            [each[name] / each["count"] for each in pair] + [pair[0]["count"]]
            for pair in self._classes
        ]
        own, others, counts = np.array(means).reshape(-1, 3).T
        return own, others, counts

    def share(self, name: str) -> float:
        """Returns how many boxes of the group are counted if they are as the others."""
        count: float = self.others[name] * self.own["count"] / max(self.others["count"], 1)
        return count


def _find_fault(group: _Beside) -> str:
    """Returns what is wrong with the boxes of a group by themselves; empty if nothing is."""
    own = group.own
    if own["far_areas"] > _LEAST_FAR * own["areas"]:
        return (
            f"have {own['far_areas']:,} whose area in the list is far beyond that of the box, so "
            "one of them is in another unit"
        )
    if own["other_areas"] >= max(_MOST * own["areas"], _FEWEST_AREAS):
        return (
            "have the areas of another reading of their numbers: corners in place of width and "
            "height, or these in place of corners"
        )
    if not group.is_judged:
        return ""
    return _find_half(group) or _find_shift(group) or _find_outside(group)


def _find_half(group: _Beside) -> str:
    begins, ends = ([group.own[f"{side}_{axis}"] for axis in "xy"] for side in ("begin", "end"))
    if max(begins) > _FIRST or min(ends) < _LAST[0] or max(ends) > _LAST[1]:
        return ""
    own, others, counts = group.compare("side")
    if not len(counts):
        return "are in the upper left quarter of their images, as at half of their scale"
    if not _HALF[0] < math.exp(np.average(own - others, weights=counts)) < _HALF[1]:
        return ""
    return "are half as large as the others, and none is beyond the middle of its image"


def _find_shift(group: _Beside) -> str:
    own = group.own
    ends = [(own[f"first_{axis}"], own[f"last_{axis}"]) for axis in "xy"]
    shifts = [_measure_shift(*each) for each in ends]
    # One axis alone is sure where boxes touched both of its edges.
    is_one = any(abs(first - last) <= 2 * _TOUCHING for first, last in ends if first * last > 0)
    is_sure = all(shifts) or (any(shifts) and is_one and group.others["count"] > 0)
    if own["outside"] < _FEWEST_OUTSIDE or not is_sure:
        shifts = [_measure_cut_shift(group, *edges) for edges in (_UPPER_LEFT, _LOWER_RIGHT)]
    if not (shift := max(shifts)):
        return ""
    amount = f"{shift / 10:.2g} % of the image" if own["unit"] > 1 else f"{shift:.0f} pixels"
    return (
        f"are shifted by {amount}: all are so far from one edge of their images, and reach the "
        "opposite one or go beyond it"
    )


def _measure_shift(first: float, last: float) -> float:
    """Returns by how much boxes are shifted on an axis.

    They go so far beyond one edge, and as much is empty at the other one.
    """
    if last > _TOUCHING and first >= last - _TOUCHING:
        return last
    if first < -_TOUCHING and last <= first + _TOUCHING:
        return -first
    return 0


def _measure_cut_shift(
    group: _Beside, near: Sequence[str], far: Sequence[str], places: Sequence[str]
) -> float:
    """Returns by how much boxes are shifted that a tool cut at the edge.

    As much is empty at two edges, which others touch.
    """
    own = group.own
    expected, gaps = [*map(group.share, near)], [abs(own[place]) for place in places]
    is_moved = not any(own[edge] for edge in near) and all(own[edge] for edge in far)
    is_sure = min(expected) >= _EXPECTED and sum(expected) >= 4 * _EXPECTED
    is_alike = abs(gaps[0] - gaps[1]) <= 2 * _TOUCHING
    is_small = max(gaps) <= _MOST_SHIFT * own["image_side"] / own["count"]
    return float(min(gaps)) if is_moved and is_sure and is_alike and is_small else 0


def _find_outside(group: _Beside) -> str:
    own = group.own
    count, both = own["outside"], own["outside_both"]
    is_many = count >= max(_FEWEST_OUTSIDE, _LEAST_OUTSIDE * own["count"])
    if not is_many or both > count / 10 or group.share("outside") > count / 4:
        return ""
    return (
        f"have {count:,} outside their images, of which {count - both:,} would be inside if x and "
        "y were swapped, or width and height of the images"
    )


def _find_swapped(group: _Beside) -> str:
    """Returns whether boxes are as wide as the others are high, where images are alike."""
    own, others, counts = group.compare("form")
    if not group.is_judged or sum(abs(own - others) >= _UNLIKE) < _FEWEST_CLASSES:
        return ""
    plain, swapped = (np.average((own + sign * others) ** 2, weights=counts) for sign in (-1, 1))
    images = group.own["image_form"] - group.share("image_form")
    is_few = group.own["count"] <= group.others["count"]
    if not is_few or plain < _LEAST_UNLIKE or 4 * swapped > plain:
        return ""
    if abs(images) > _ALIKE * group.own["count"]:
        return ""
    return (
        "are as wide as the others of their classes are high, as if x and y were swapped in these "
        "or in the others"
    )
