"""Boxes in what looks at a dataset: checks, counts, statistics, changes and pictures."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

import darkroom
from darkroom.audit.contact_sheet import draw_sheet
from darkroom.dataset.commit import read_dataset
from darkroom.dataset.index import read_index
from darkroom.dataset.index_queries import count_classes
from darkroom.runtime.style import COLORS
from darkroom.targets.boxes.kind import KIND
from darkroom.targets.boxes.overlaps import find_overlaps
from darkroom.validation.browse import write_gallery
from darkroom.validation.gallery.rows import NOT_MEASURED, read_rows
from darkroom.validation.judge import JudgedFiles, judge_dataset
from darkroom.validation.report.dataset_report import DatasetReport
from darkroom.validation.report.findings import format_finding_row
from darkroom.validation.statistics import make_feature_batch

from ..html_page import Page
from ..pictures import encode, make_noise

HEIGHT, WIDTH = 100, 200
CAT, DOG = {"label": "cat", "box": [10, 10, 60, 60]}, {"label": "dog", "box": [100, 20, 140, 90]}
# What each image shows; None where nobody looked.
LISTED = {
    "plain": [CAT, DOG],
    "empty": [],
    "unknown": None,
    "tiny": [{"label": "cat", "box": [5, 5, 7, 50]}],
    "huge": [{"label": "dog", "box": [0, 0, WIDTH, HEIGHT]}],
    "crowd": [{"label": "dog", "box": [0, 0, WIDTH, HEIGHT], "is_crowd": 1}],
    "twin": [CAT, {"label": "cat", "box": [10, 10, 60, 61]}],
    "crossed": [CAT, {"label": "dog", "box": [10, 10, 60, 62]}],
    "outside": [DOG, {"label": "cat", "box": [150, 0, WIDTH + 9, 50]}],
}


def write_dataset(
    folder: Path, listed: dict, read_split: Callable = lambda name: "train", **options: object
) -> Path:
    """Converts images of noise, each of another one; a copy has the pixels of `plain`."""
    folder.mkdir(exist_ok=True)
    lines = []
    for number, (name, objects) in enumerate(listed.items()):
        seed = 0 if name == "copy" else number
        (folder / f"{name}.png").write_bytes(encode(make_noise(seed, HEIGHT, WIDTH), "PNG"))
        row = {"split": read_split(name), "image_uri": f"{name}.png", "objects": objects}
        lines.append(json.dumps(row))
    (folder / "list.jsonl").write_text("\n".join(lines))
    records = folder / "records"
    darkroom.convert(folder / "list.jsonl", records, max_rejects=1, overwrite=True, **options)
    return records


@pytest.fixture(scope="module")
def records(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_dataset(tmp_path_factory.mktemp("boxes"), LISTED)


@pytest.fixture(scope="module")
def report(records: Path) -> DatasetReport:
    return darkroom.validate(records, required_splits=("train",)).report


def find_rows(report: DatasetReport, check: str) -> list[tuple[str, str]]:
    """Returns the image and the label of the rows of a finding."""
    [found] = [each for each in report.findings if each.check == check]
    assert found.count == len(found.rows)
    return [(Path(row["uri"]).stem, row.get("label", "")) for row in found.rows]


@pytest.mark.parametrize(
    ("check", "expected", "said"),
    [
        ("tiny_boxes", ("tiny", "cat"), "object 1 from (5, 5) to (7, 50): 2 x 45 pixels"),
        ("huge_boxes", ("huge", "dog"), "object 1 from (0, 0) to (200, 100): 200 x 100 pixels"),
        ("outside_boxes", ("outside", "cat"), "the box [150, 0, 209, 50] is not inside the image"),
        ("partial_images", ("outside", "1 dog"), "1 of 2 objects are lost"),
        (
            "twin_boxes",
            ("twin", "cat"),
            "object 1 from (10, 10) to (60, 60): 0.980 of both in common with object 2, cat",
        ),
        (
            "crossed_classes",
            ("crossed", "cat"),
            "object 1 from (10, 10) to (60, 60): 0.962 of both in common with object 2, dog",
        ),
    ],
)
def test_faults_of_boxes_are_found(report, check, expected, said):
    assert find_rows(report, check) == [expected]
    [row] = next(each.rows for each in report.findings if each.check == check)
    assert said in format_finding_row(row)


def test_a_split_of_images_without_objects_is_found(report, tmp_path):
    assert "empty_images" not in {each.check for each in report.findings}
    records = write_dataset(tmp_path, {"plain": [CAT], "one": [], "two": [], "unknown": None})
    found = darkroom.validate(records, required_splits=("train",)).report
    [finding] = [each for each in found.findings if each.check == "empty_images"]
    assert finding.rows == ({"split": "train", "records": 3, "empty": 2},)


@pytest.mark.parametrize("size", [{}, {"width": 1, "height": 1}])
def test_boxes_that_a_tool_swapped_are_found_by_the_sizes_of_the_images(tmp_path, size):
    rng = np.random.default_rng(0)
    listed = {}
    for number in range(24):
        split = "eval" if number % 3 else "train"
        low = rng.random((6, 2)) * (WIDTH - 30, HEIGHT - 30)
        corners = np.concatenate([low, low + rng.uniform(5, 30, (6, 2))], 1)
        corners = corners[:, [1, 0, 3, 2]] if split == "eval" else corners
        shares = (WIDTH, HEIGHT) * 2 if size else 1
        objects = [{"label": "cat", "box": box} for box in (corners / shares).tolist()]
        listed[f"{split}{number}"] = {**size, "objects": objects} if size else objects
    records = write_dataset(tmp_path, listed, read_split=lambda name: name.rstrip("0123456789"))
    found = darkroom.validate(records, required_splits=()).report
    [finding] = [each for each in found.findings if each.check == "odd_boxes"]
    assert [row["boxes"] for row in finding.rows] == [96]
    assert finding.rows[0]["detail"].startswith("The 96 boxes of the split eval have ")
    assert "would be inside if x and y were swapped" in finding.rows[0]["detail"]


def test_checks_of_what_features_foretell_are_not_made(report):
    assert "suspect_labels" not in report.policies
    assert {"tiny_boxes", "missing_classes", "drift"} <= {*report.policies}


corners = st.tuples(*[st.integers(0, 9)] * 2, *[st.integers(1, 6)] * 2).map(
    lambda box: [box[0], box[1], box[0] + box[2], box[1] + box[3]]
)


@given(st.lists(st.lists(st.tuples(corners, st.sampled_from("ab")), max_size=9), max_size=4))
def test_pairs_are_those_of_a_comparison_of_all_with_all(images):
    def measure(one, other):
        across, down = (min(one[k + 2], other[k + 2]) - max(one[k], other[k]) for k in (0, 1))
        common = max(across, 0) * max(down, 0)
        areas = [(each[2] - each[0]) * (each[3] - each[1]) for each in (one, other)]
        return common / (sum(areas) - common)

    sides = ("xmin", "ymin", "xmax", "ymax")
    more = {"is_crowd": False, "difficult": False, "area": None}
    labels = [
        [{"label": name, **dict(zip(sides, box, strict=True)), **more} for box, name in each]
        for each in images
    ]
    count = len(images)
    facts = {"row": range(count), "uri": [""] * count, "split": [""] * count}
    facts |= {"source_width": [1] * count, "source_height": [1] * count}
    rows = pa.table({**facts, "label": pa.array(labels, KIND.column)})
    pairs = [
        (measure(*(box for box, _ in pair)), pair[0][1] == pair[1][1])
        for each in images
        for place, one in enumerate(each)
        for pair in [(one, other) for other in each[place + 1 :]]
    ]
    for is_same in (True, False):
        expected = [share for share, same in pairs if same == is_same and share > 0.6]
        found = find_overlaps(rows, 0.6, 100, same_class=is_same)
        assert found.total == len(expected)
        best = sorted(expected, reverse=True)[:10]
        assert [share for share, _ in found.ranked] == pytest.approx(best)


def test_objects_are_counted_by_class_and_size(report, records):
    assert (report.objects.written, report.objects.rejected) == (10, 1)
    assert (report.rejected, report.lost) == ({}, {"outside_image": 1})
    [message] = [each.message for each in report.findings if each.check == "rejects"]
    assert message.startswith("1 of 11 objects was rejected (9.09%, allowed 1.00%): outside_im")
    all_classes, cats, dogs = sorted(report.summary, key=lambda row: row["class"])
    assert (all_classes["images"], all_classes["objects"]) == (7, 10)
    assert all_classes["objects an image"] == 1.43
    assert (cats["class"], cats["images"], cats["objects"], cats["< 32 pixels"]) == ("cat", 4, 5, 1)
    assert (dogs["objects"], dogs["32 to 96"], dogs["larger"]) == (5, 3, 2)
    # An image counts once for each of its classes.
    assert report.classes == {"train": {"": 1, "cat": 4, "dog": 5}}
    labels = read_dataset(str(records)).labels
    assert count_classes(str(records / "index"), labels, KIND.list_names) == report.classes
    assert DatasetReport.from_json(report.to_json()) == report


def test_objects_that_index_or_rejects_lack_are_noticed(records, tmp_path):
    files = JudgedFiles(
        str(records / "index"), str(records / "rejects.parquet"), read_dataset(str(records))
    )
    assert "accounting" not in {each.check for each in judge_dataset(files).findings}
    pq.write_table(pq.read_table(files.rejects_path).slice(1), tmp_path / "rejects.parquet")
    found = judge_dataset(replace(files, rejects_path=str(tmp_path / "rejects.parquet"))).findings
    [message] = [each.message for each in found if each.check == "accounting"]
    assert "1 rejected alone; the index has 10, and the rejects have 0" in message


def test_copies_with_other_boxes_are_a_conflict_and_with_the_same_ones_duplicates(tmp_path):
    moved = {"label": "dog", "box": [100, 20, 150, 90]}
    for objects, check in (([DOG, CAT], "duplicates"), ([CAT, moved], "label_conflicts")):
        records = write_dataset(tmp_path, {"plain": [CAT, DOG], "copy": objects})
        found = darkroom.validate(records, required_splits=("train",)).report
        [finding] = [each for each in found.findings if each.check.endswith(check[5:])]
        assert finding.check == check
        assert [row["label"] for row in finding.rows] == ["1 cat, 1 dog"]
        listed = darkroom.find_duplicates(records, tmp_path / "list.parquet", overwrite=True)
        assert listed.labels_differ == (check == "label_conflicts")


def test_a_conflict_of_copies_says_which_objects_differ(tmp_path):
    listed = [CAT, DOG, DOG | {"box": [0, 0, 20, 20], "difficult": 1}]
    other = [
        {"label": "cat", "box": [12, 10, 62, 60]},
        DOG | {"is_crowd": 1},
        CAT | {"box": [70, 0, 90, 20]},
    ]
    records = write_dataset(
        tmp_path,
        {"plain": listed, "copy": other},
        lambda name: "eval" if name == "copy" else "train",
    )
    [finding] = [
        each for each in darkroom.validate(records).report.findings if each.policy == "fail"
    ]
    assert (finding.check, finding.count) == ("label_conflicts", 1)
    assert finding.message == (
        "1 image has copies with other objects. Of these, 1 in more than one split: scores are too "
        "high."
    )
    [pair] = finding.rows
    assert [Path(pair[name]).stem for name in ("uri", "other_uri")] == ["copy", "plain"]
    assert pair["objects"] == (
        "only the first has 1 cat; only the second has 1 dog; at another place: 1 cat; "
        "with other marks: 1 dog"
    )
    assert format_finding_row(pair).endswith("with other marks: 1 dog)")


def test_the_objects_that_changed_are_told(tmp_path):
    moved = {"label": "cat", "box": [12, 10, 62, 60]}
    changed = {**LISTED, "plain": [moved, DOG], "empty": [CAT], "huge": [], "unknown": []}
    changed["new"] = [CAT, CAT | {"box": [100, 10, 150, 60]}, DOG]
    old = write_dataset(tmp_path / "old", LISTED)
    new = write_dataset(tmp_path / "new", changed)
    found = darkroom.diff(old, new).report
    assert [each.message for each in found.findings if each.policy == "info"] == [
        "Objects that are new in their image: 1, in 1 image (cat 1).",
        "Objects that are gone from their image: 1, in 1 image (dog 1).",
        "Objects that are at another place in their image: 1, in 1 image (cat 1).",
        "Images that are new: 1 (train 1; cat 1, dog 1).",
        # Nobody had looked at it; of the others, the objects say what changed.
        "Images with another label: 1 (train 1).",
    ]
    assert find_rows(found, "relabelled") == [("unknown", "(none)")]
    assert find_rows(found, "objects_added") == [("empty", "cat")]
    assert find_rows(found, "objects_gone") == [("huge", "dog")]
    assert find_rows(found, "objects_moved") == [("plain", "cat")]
    told = {each.check: format_finding_row(each.rows[0]) for each in found.findings}
    assert told["objects_added"].endswith("(train, cat): object 1 from (10, 10) to (60, 60)")
    assert told["objects_gone"].endswith("(train, dog): object 1 from (0, 0) to (200, 100)")
    assert ": object 1 from (12, 10) to (62, 60): 0.923 of both" in told["objects_moved"]
    assert darkroom.diff(new, new).report.findings == ()


def test_another_class_at_the_same_place_is_told(tmp_path):
    bird = CAT | {"label": "bird"}
    # A box of its own class is rather the same, although it was moved.
    listed = {"plain": [CAT, DOG], "twins": [CAT, bird]}
    changed = {"plain": [bird, DOG], "twins": [CAT | {"box": [12, 10, 62, 60]}, bird]}
    old, new = (
        write_dataset(tmp_path / name, each) for name, each in (("old", listed), ("new", changed))
    )
    found = darkroom.diff(old, new).report
    assert [each.message for each in found.findings if "objects_" in each.check] == [
        "Objects that have another class at the same place: 1, in 1 image (bird 1).",
        "Objects that are at another place in their image: 1, in 1 image (cat 1).",
    ]
    assert found.findings[1].rows[0]["detail"] == "was cat"


def test_other_digits_of_a_tool_change_nothing(tmp_path):
    exact = [CAT | {"box": [10 + shift, 9.996, 60.004, 60.001]} for shift in (0.1001, 0.0999)]
    rounded = [CAT | {"box": [10.1, 10, 60, 60], "area": 2495.0}] * 2
    old, new = (
        write_dataset(tmp_path / name, {"a": boxes[:1], "b": boxes[1:]}, lambda name: "test")
        for name, boxes in (("old", exact), ("new", rounded))
    )
    assert not darkroom.diff(old, new).report.findings


def test_other_marks_of_objects_are_told(tmp_path):
    listed = {"plain": [CAT, DOG], "one": [CAT | {"is_crowd": 1}]}
    marked = {"plain": [CAT, DOG | {"difficult": 1}], "one": [CAT | {"is_crowd": 1, "area": 5}]}
    old, new = (
        write_dataset(tmp_path / name, each) for name, each in (("old", listed), ("new", marked))
    )
    found = darkroom.diff(old, new).report
    assert [each.check for each in found.findings] == ["objects_marked", "other_columns"]
    assert find_rows(found, "objects_marked") == [("plain", "dog")]
    assert found.findings[0].rows[0]["detail"] == "was plain, is difficult"
    # The area of an object is not that of its box.
    assert found.findings[1].rows[0]["detail"] == "area"


def test_objects_in_another_order_or_with_other_last_digits_are_the_same(tmp_path):
    """A list may say an area, and another one, as of YOLO, leave it to the box."""
    said = CAT | {"area": 2500.0005}
    old, new = (
        write_dataset(tmp_path / name, {"plain": objects})
        for name, objects in (("old", [said, DOG]), ("new", [DOG, CAT]))
    )
    labels = [read_index(str(each / "index"), ["label"])["label"][0].as_py() for each in (old, new)]
    assert labels[0] != sorted(labels[1], key=lambda each: each["label"])
    assert darkroom.diff(old, new).report.findings == ()


def test_statistics_have_number_size_and_form_of_objects(records):
    rows = read_index(str(records / "index"), ["uri", "label", "height", "width"])
    chosen = [Path(uri).stem in ("plain", "unknown", "empty") for uri in rows["uri"].to_pylist()]
    rows = rows.filter(pa.array(chosen)).sort_by("uri").select(["label", "height", "width"])
    found = make_feature_batch(rows).to_pydict()
    assert found["image/object/class/text"] == [[], ["cat", "dog"], None]
    assert found["image/object/count"] == [[0], [2], None]
    _, [cat, dog], _ = found["image/object/bbox/area"]
    assert (cat, dog) == pytest.approx((50 * 50 / 20_000, 40 * 70 / 20_000))
    assert found["image/object/bbox/side"][1] == pytest.approx([50, (40 * 70) ** 0.5], rel=1e-5)
    assert found["image/object/bbox/aspect"][1] == pytest.approx([1, 40 / 70], rel=1e-5)


def test_the_gallery_has_boxes_and_filters_of_them(records, tmp_path):
    write_gallery(records, tmp_path / "gallery.html")
    text = (tmp_path / "gallery.html").read_text("utf-8")
    blocks = {attributes.get("id"): None for _, attributes in Page(text).elements}
    assert {"rows-measure-0", "rows-measure-1"} <= blocks.keys()
    tiles = json.loads(text.partition('id="tiles">')[2].partition("</script>")[0])
    shapes = {Path(tile["uri"]).stem: tile["shapes"] for tile in tiles}
    assert shapes["plain"] == [["cat", 0.05, 0.1, 0.3, 0.6, 0], ["dog", 0.5, 0.2, 0.7, 0.9, 1]]
    assert shapes["crowd"][0][0] == "dog (crowd)"
    assert shapes["empty"] == shapes["unknown"] == []
    # What was lost is drawn as far as it is in the image.
    assert shapes["outside"] == [
        ["cat (lost)", 0.75, 0.0, 1.0, 0.5, None],
        ["dog", 0.5, 0.2, 0.7, 0.9, 1],
    ]
    rows = read_rows(str(records / "index"))
    names = [
        Path(uri).stem for uri in read_index(str(records / "index"), ["uri"])["uri"].to_pylist()
    ]
    numbers, sides = (dict(zip(names, each.tolist(), strict=True)) for each in rows.measures)
    assert (numbers["plain"], numbers["empty"], numbers["unknown"]) == (2, 0, NOT_MEASURED)
    assert (sides["plain"], sides["tiny"], sides["empty"]) == (50, 9, NOT_MEASURED)


def test_the_report_draws_boxes_over_its_pictures(records, tmp_path):
    darkroom.validate(records, report_dir=tmp_path, required_splits=("train",))
    page = Page((tmp_path / "report.html").read_text("utf-8"))
    titles = [attributes for tag, attributes in page.elements if tag == "rect"]
    twin = [each for each in titles if each.get("height") == "51" and each["stroke"] == COLORS[0]]
    assert [(each["x"], each["y"], each["width"]) for each in twin] == [("10", "10", "50")]
    assert "10 objects written 1 objects rejected" in page.text
    assert "object 1 from (5, 5) to (7, 50) 2 x 45 pixels" in page.text
    assert "object 1 from (5, 5) to (7, 50)" in (tmp_path / "report.md").read_text("utf-8")
    lost, *_ = [each for each in titles if "stroke-dasharray" in each]
    assert [lost[name] for name in ("x", "y", "width", "height")] == ["150", "0", "50", "50"]


def test_the_contact_sheet_draws_boxes_in_the_colors_of_their_classes():
    picture = encode(Image.new("RGB", (WIDTH, HEIGHT), "white"), "PNG")
    corners = {"xmin": [0.25], "ymin": [0.25], "xmax": [0.75], "ymax": [0.75]}
    value = {"label": ["b"], **corners, "is_crowd": [False], "difficult": [False], "area": [1.0]}
    record = {
        name: each if isinstance(each, list) else [each]
        for name, each in KIND.encode(value, [1]).items()
    }
    sheet = draw_sheet([{**record, "image/encoded": [picture]}], KIND, ["a", "b"])
    with Image.open(io.BytesIO(sheet)) as image:
        pixels = np.asarray(image.convert("RGB"))
    color = [int(COLORS[1][place : place + 2], 16) for place in (1, 3, 5)]
    down, across = np.nonzero((pixels == color).all(axis=2))
    # A tile of 128 x 64 pixels, in the middle of a square of 128 with a margin of 8.
    assert (across.min() - 8, across.max() - 8) == (32, 95)
    assert (down.min() - 40, down.max() - 40) == (16, 47)
