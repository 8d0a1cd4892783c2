"""What lists say that images are labelled with: every form, its faults, and what is joined."""

from __future__ import annotations

import json
import re
import shlex
import shutil
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

import darkroom
from darkroom.dataset.rejects import read_rejects
from darkroom.errors import DataError, UsageError
from darkroom.manifest.writer import write_manifest
from darkroom.options.conversion import ConversionOptions
from darkroom.options.manifest import ManifestOptions

SEPARATED = {"label_separator": ";"}
LISTS = {"label_kind": "labels"}
MARKED = {"label_columns": ("red", "round")}
NUMBERS = {"target_columns": ("w", "h")}


class Planned:
    """A manifest: what each image is labelled with, and the rejects by their rows."""

    def __init__(self, root, source, options) -> None:
        if isinstance(source, str):
            is_csv = not source.startswith("{")
            path = root / ("list.csv" if is_csv else "list.jsonl")
            path.write_text(source)
            source = path
        folder = root / "out"
        self.manifest = write_manifest(
            source, str(folder), str(folder), ManifestOptions.parse(**options)
        )
        rows = pq.read_table(folder / "manifest.parquet").to_pylist()
        self.labels = {row["id"]: row["label"] for row in rows}
        self.numbers = {row["id"]: row["label_id"] for row in rows}
        self.rejects = {
            each.row: (each.reason, each.label)
            for each in read_rejects(str(folder / "rejects.parquet"))
        }
        self.folder = folder
        counted = len(rows) + len(self.rejects) + self.manifest.deduplicated
        assert counted == self.manifest.rows


@pytest.fixture
def plan(tmp_path):
    return lambda source, options, **more: Planned(tmp_path, source, {**options, **more})


def test_a_cell_with_a_separator_holds_labels(plan):
    found = plan("image_uri,label\na.jpg,dog; cat\nb.jpg,cat;cat\nc.jpg,owl\n", SEPARATED)
    assert found.labels == {"a.jpg": ["cat", "dog"], "b.jpg": ["cat"], "c.jpg": ["owl"]}
    assert found.numbers == {"a.jpg": [0, 1], "b.jpg": [0], "c.jpg": [2]}
    assert found.manifest.labels == ["cat", "dog", "owl"]
    assert found.manifest.target.kind == "labels"


def test_labels_have_the_order_of_a_given_map(plan):
    found = plan("image_uri,label\na.jpg,cat;dog\n", SEPARATED, label_map=["dog", "owl", "cat"])
    assert (found.labels, found.numbers) == ({"a.jpg": ["dog", "cat"]}, {"a.jpg": [0, 2]})


@pytest.mark.parametrize(
    ("empty", "expected"), [("unannotated", None), ("none", []), ("reject", "empty_label")]
)
@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("image_uri,label\na.jpg,\nb.jpg,cat\n", SEPARATED),
        ("image_uri,red,round\na.jpg,,\nb.jpg,1,0\n", MARKED),
        ('{"image_uri": "a.jpg", "label": null}\n{"image_uri": "b.jpg", "label": ["x"]}\n', LISTS),
    ],
)
def test_an_empty_cell_means_what_the_user_says(plan, text, options, empty, expected):
    found = plan(text, options, empty_labels=empty)
    if empty == "reject":
        assert found.rejects[1][0] == expected
    else:
        assert found.labels["a.jpg"] == expected
    assert plan(text, options).labels["a.jpg"] is None


def test_an_empty_list_always_means_none_of_the_labels(plan):
    found = plan('{"image_uri": "a.jpg", "label": []}\n', LISTS, empty_labels="reject")
    assert found.labels == {"a.jpg": []}


@pytest.mark.fault(
    73, "several rows of an image", "joined: the record has the labels of all of them"
)
def test_rows_of_an_image_are_joined(plan):
    text = "image_uri,label\na.jpg,dog\nb.jpg,owl\na.jpg,cat\na.jpg,dog\nc.jpg,\nc.jpg,cat\n"
    found = plan(text, LISTS)
    assert found.labels == {"a.jpg": ["cat", "dog"], "b.jpg": ["owl"], "c.jpg": ["cat"]}
    assert found.manifest.deduplicated == 3
    assert not found.rejects


@pytest.mark.fault(
    73,
    "rows of an image in two splits",
    "all its rows are rejected",
    code="`conflict`",
    hint="keep one split",
)
def test_rows_in_two_splits_conflict(plan):
    found = plan("split,image_uri,label\nTRAIN,a.jpg,dog\nTEST,a.jpg,cat\n", LISTS)
    assert found.rejects == {1: ("conflict", '["dog"]'), 2: ("conflict", '["cat"]')}


def test_further_labels_of_automl_are_labels(plan):
    text = "TRAIN,a.jpg,cat,dog\nTRAIN,b.jpg,owl\nTEST,c.jpg,cat,dog,owl\n"
    found = plan(text, LISTS)
    assert [*found.labels.values()].count(["cat", "dog", "owl"]) == 1
    assert sorted(map(len, found.labels.values())) == [1, 2, 3]


def test_lists_of_parquet_and_frames_hold_labels(plan, tmp_path):
    values = {"image_uri": ["a.jpg", "b.jpg", "c.jpg"], "label": [["x", "y"], [], None]}
    pq.write_table(pa.table(values), tmp_path / "l.parquet")
    expected = {"a.jpg": ["x", "y"], "b.jpg": [], "c.jpg": None}
    assert plan(tmp_path / "l.parquet", LISTS).labels == expected
    assert plan(pd.DataFrame(values), LISTS).labels == expected


def test_columns_mark_labels(plan):
    found = plan("image_uri,red,round\na.jpg,1,0\nb.jpg,0,0\nc.jpg,1,1\n", MARKED)
    assert found.labels == {"a.jpg": ["red"], "b.jpg": [], "c.jpg": ["red", "round"]}
    # Also those that no image has, in the order in which they were named.
    marked = {"label_columns": ("round", "red")}
    assert plan("image_uri,red,round\na.jpg,1,0\n", marked).manifest.labels == ["round", "red"]


def test_columns_hold_numbers(plan):
    found = plan("image_uri,w,h,label\na.jpg,1.5,2,x\nb.jpg,,-1e3,\nc.jpg,,,\n", NUMBERS)
    assert found.labels["a.jpg"] == [1.5, 2]
    assert found.labels["b.jpg"][1] == -1000
    assert found.labels["b.jpg"][0] != found.labels["b.jpg"][0]
    assert found.labels["c.jpg"] is None
    assert found.manifest.target.names == ("w", "h")
    assert found.manifest.inputs == {"label": "string"}


@pytest.mark.fault(
    73,
    "rows of an image with other numbers",
    "all its rows are rejected",
    code="`conflict`",
    hint="keep one row",
)
def test_rows_with_other_numbers_conflict(plan):
    found = plan("image_uri,w,h\na.jpg,1,2\na.jpg,1,3\nb.jpg,1,2\nb.jpg,1.0,2\n", NUMBERS)
    assert found.rejects == {1: ("conflict", "[1.0, 2.0]"), 2: ("conflict", "[1.0, 3.0]")}
    assert found.manifest.deduplicated == 1


# Number in the page of bad input, what is wrong, the cell, and the reason of its reject.
FAULTS = [
    (69, "a separator twice: `a;;b`", "a;;b", "empty_label"),
    (69, "a separator at the end: `a;`", "a;", "empty_label"),
    (69, "a separator alone", ";", "empty_label"),
    (69, "one of the labels with an invisible character", "a;b\u202e", "bad_label"),
    (69, "one of the labels too long", "a;LONG", "bad_label"),
    (69, "one of the labels not in a given label map", "a;c", "unknown_label"),
    (69, "another separator, with a label map: `a,b`", "a,b", "unknown_label"),
    (69, "nothing, with `--empty-labels reject`", " ", "empty_label"),
    (70, "a list in the list", [["a"]], "bad_value"),
    (70, "null in the list", ["a", None], "bad_value"),
    (70, "an object in the list", [{"name": "a"}], "bad_value"),
    (70, "an object instead of the list", {"a": 1}, "bad_value"),
    (70, "an empty label in the list", ["a", ""], "empty_label"),
    (70, "an invisible character in the list", ["a", "b\u200b"], "bad_label"),
    (70, "a label too long in the list", ["a", "LONG"], "bad_label"),
    (70, "a label in the list that a given label map lacks", ["a", "c"], "unknown_label"),
    (71, "2 where 0 or 1 is expected", "2", "bad_value"),
    (71, "`yes`", "yes", "bad_value"),
    (71, "-1", "-1", "bad_value"),
    (71, "an empty cell beside others that are not", "", "bad_value"),
    (71, "a probability: 0.5", "0.5", "bad_value"),
    (71, "`true` as text", "true", "bad_value"),
    (71, "two values: `1;0`", "1;0", "bad_value"),
    (71, "`nan`", "nan", "bad_value"),
    (72, "text instead of a number", "wide", "bad_value"),
    (72, "an infinite number", "inf", "bad_value"),
    (72, "`nan`", "nan", "bad_value"),
    (72, "a number too large for 32 bits: `1e39`", "1e39", "bad_value"),
    (72, "two numbers: `1;2`", "1;2", "bad_value"),
    (72, "a unit: `3 mm`", "3 mm", "bad_value"),
    (72, "a decimal comma: `1,5`", "1,5", "bad_value"),
    (72, "nothing, with `--empty-labels reject`", "", "empty_label"),
]
FORMS = {
    69: ("label", {**SEPARATED, "label_map": ["a", "b"], "empty_labels": "reject"}),
    70: ("label", {**LISTS, "label_map": ["a", "b"]}),
    71: ("red", MARKED),
    72: ("w", {**NUMBERS, "empty_labels": "reject"}),
}


@pytest.mark.parametrize(("form", "_", "cell", "reason"), FAULTS)
def test_a_wrong_cell_rejects_its_row_alone(plan, form, _, cell, reason):
    column, options = FORMS[form]
    right = {"label": ["a"] if form == 70 else "a", "red": "1", "round": "0", "w": "1", "h": "2"}
    names = {"red": ["red", "round"], "w": ["w", "h"]}.get(column, ["label"])
    long = json.loads(json.dumps(cell).replace("LONG", "x" * 1001))
    rows = [
        {"image_uri": "a.jpg", **{name: right[name] for name in names}},
        {"image_uri": "b.jpg", **{name: right[name] for name in names}, column: long},
    ]
    lines = "".join(f"{json.dumps(row)}\n" for row in rows)
    text = lines if form == 70 else pd.DataFrame(rows).to_csv(index=False)
    found = plan(text, options)
    assert [*found.labels] == ["a.jpg"]
    assert {number: fault for number, (fault, _) in found.rejects.items()} == {2: reason}


@pytest.mark.parametrize("options", [SEPARATED, LISTS, MARKED, NUMBERS])
def test_rejects_are_a_list_that_can_be_read_again(plan, options, tmp_path):
    forms = {"label_columns": ("red,round", "1,0", "1,7"), "target_columns": ("w,h", "1,2", "1,x")}
    names, good, bad = forms.get(next(iter(options)), ("label", "a", ""))
    text = f"split,image_uri,{names}\nTRAIN,a.jpg,{good}\nTRAIN,b.jpg,{bad}\nTEST,a.jpg,{good}\n"
    more = {"empty_labels": "reject"}
    found = plan(text, options, **more)
    assert sorted(found.rejects) == [1, 2, 3]
    again = plan(found.folder / "rejects.jsonl", options, **more)
    assert sorted(again.rejects.values()) == sorted(found.rejects.values())


@pytest.mark.fault(
    73,
    "a column of `--label-columns` that is not there",
    "refused",
    code="exit 1",
)
def test_what_the_options_name_must_be_there(plan):
    with pytest.raises(DataError, match=r"Columns \['rde'\] are missing.*Did you mean 'red'"):
        plan("image_uri,red\na.jpg,1\n", {"label_columns": ("rde",)})
    with pytest.raises(UsageError, match="labelled in one way"):
        plan("image_uri,red,w\na.jpg,1,2\n", {"label_columns": ("red",), "target_columns": ("w",)})
    with pytest.raises(UsageError, match="label_separator is empty"):
        plan("image_uri,label\na.jpg,1\n", {"label_separator": ""})


@pytest.fixture
def photos(tmp_path):
    """Folders of labels: an image in two of them, and two others of the same name."""
    bodies = {"cat/1.bmp": 1, "dog/1.bmp": 1, "cat/a/2.bmp": 2, "dog/a/2.bmp": 22, "dog/3.bmp": 3}
    for name, number in bodies.items():
        path = tmp_path / "photos" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (8, 8 + number // 10), (number, 0, 0)).save(path)
    return tmp_path / "photos"


def test_an_image_in_several_folders_has_the_labels_of_all(plan, photos):
    found = plan(photos, LISTS)
    alone = {"cat/a/2.bmp": ["cat"], "dog/a/2.bmp": ["dog"], "dog/3.bmp": ["dog"]}
    assert found.labels == {"cat/1.bmp": ["cat", "dog"], **alone}
    assert (found.manifest.rows, found.manifest.deduplicated) == (5, 1)
    assert not found.rejects
    # One label an image: they are two.
    assert len(plan(photos, {}).labels) == 5
    splits = photos / "splits"
    for split, label in (("train", "cat"), ("train", "dog"), ("test", "cat")):
        shutil.copytree(photos / label, splits / split / label)
    found = plan(splits, LISTS)
    assert found.labels["train/cat/1.bmp"] == ["cat", "dog"]
    assert found.labels["test/cat/1.bmp"] == ["cat"]
    assert found.manifest.deduplicated == 1


@pytest.mark.fault(
    73,
    "in two folders of labels, other images of the same name and size",
    "its rows are rejected when the images are read",
    code="`conflict`",
    hint="rename one",
)
def test_other_images_of_the_same_name_and_size_are_rejected(photos, tmp_path):
    Image.new("RGB", (8, 8), (9, 0, 0)).save(photos / "cat" / "3.bmp")
    options = ConversionOptions(**LISTS)
    result = darkroom.convert(photos, tmp_path / "records", max_rejects=1, options=options)
    [reject] = read_rejects(str(tmp_path / "records" / "rejects.parquet"))
    assert (reject.reason, reject.label) == ("conflict", '["cat", "dog"]')
    assert "dog/3.bmp has the same name and size, but is another image" in reject.detail
    assert (result.rows, result.written, result.deduplicated) == (6, 3, 2)


def _list_examples():
    """Yields the examples of the guide: what is in the source, and the options."""
    text = (Path(__file__).parents[2] / "docs" / "guides" / "labels.md").read_text("utf-8")
    for _, examples, flags in re.findall(
        r"^\| (an? |one|several|numbers)[^|]*\|(.*)\|(.*)\|$", text, re.M
    ):
        if found := re.findall("`([^`]+)`", examples):
            words = shlex.split(" ".join(re.findall("`([^`]+)`", flags)))
            names = (each[2:].replace("-", "_") for each in words[::2])
            yield found, dict(zip(names, words[1::2], strict=True))


@pytest.mark.parametrize(("lines", "options"), [*_list_examples()])
def test_each_example_of_the_guide_is_a_source(plan, photos, lines, options):
    given = {name: tuple(v.split(",")) if "columns" in name else v for name, v in options.items()}
    is_row = lines[0].startswith("a.jpg")
    source = "\n".join(["image_uri,label"] * is_row + lines) + "\n"
    found = plan(photos if "/" in lines[0] else source, given)
    several, numbers = ["cat", "dog"], [12.5, 30]
    first = next(iter(sorted(found.labels)))
    expected = {"label_columns": ["cat"], "target_columns": numbers}.get(
        next(iter(options), ""), several if options else "cat"
    )
    assert found.labels[first] == expected
    assert not found.rejects


@pytest.mark.parametrize("form", ["frame", "parquet", "jsonl", "csv"])
@pytest.mark.parametrize("name", ["annotations", "ground_truth"])
def test_boxes_in_a_column_of_another_name_are_not_lost(plan, tmp_path, form, name):
    objects = [[], [{"label": "cat", "box": [1, 2, 3, 4]}]]
    frame = pd.DataFrame({"split": "train", "image": ["a.jpg", "b.jpg"], name: objects})
    source = frame if form == "frame" else tmp_path / f"a.{form}"
    if form == "parquet":
        frame.to_parquet(source)
    elif form == "jsonl":
        frame.to_json(source, orient="records", lines=True)
    elif form == "csv":
        frame.assign(**{name: [*map(json.dumps, objects)]}).to_csv(source, index=False)
    with pytest.raises(DataError, match=f"the column '{name}' has boxes") as caught:
        plan(source, {})
    # The advice works, either way.
    columns = json.loads(re.search("--columns '(.*)' ", caught.value.hint)[1])
    found = plan(source, {"columns": columns}).labels
    assert [each["label"] for each in found["b.jpg"]["objects"]] == ["cat"]
    assert plan(source, {"columns": columns | {name: "ignored"}}).labels == {
        "a.jpg": None,
        "b.jpg": None,
    }
