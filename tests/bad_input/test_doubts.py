"""What a source is read as, where it does not say that itself: a line, or a refusal."""

from __future__ import annotations

import base64
import json
import os
import pathlib
import random
from pathlib import Path

import numpy as np
import pandas as pd
import PIL.Image
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import darkroom
from darkroom.dataset.keys import make_key
from darkroom.dataset.read_as import read_read_as
from darkroom.dataset.splits import SplitRatios, parse_split
from darkroom.errors import DataError
from darkroom.manifest.writer import write_manifest
from darkroom.options.manifest import ManifestOptions
from darkroom.options.source import DOUBTS

HEADER = "image,label\n"
ROWS = "a.png,cat\nb.png,dog\n"


@pytest.fixture
def photos(tmp_path):
    """Makes a folder of files that are empty, or have a text."""

    def make(*names, **texts):
        for name in names:
            path = tmp_path / "photos" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(texts.get(path.suffix[1:], ""))
        return tmp_path / "photos"

    return make


@pytest.fixture
def read(plan):
    """Returns how a source is read, by what it says, and the names of its doubts."""

    def read(source, name="images.csv", **options):
        read_as = plan(source, name, **options).manifest.read_as
        return dict(read_as.to_rows()), [doubt.name for doubt in read_as.doubts]

    return read


def test_a_list_says_how_it_was_read_and_keeps_it_beside_the_manifest(plan, tmp_path):
    text = "id,path,species,age,ml_use\n1,a.png,cat,3,TRAIN\n2,b.png,dog,4,\n"
    columns = {"id": "id", "path": "image", "species": "string_label", "ml_use": "split"}
    found = plan(text, schema=columns).manifest.read_as
    assert found.to_rows() == [
        ("form", "CSV in UTF-8, header in line 1"),
        ("image", "column path"),
        ("label", "column species, numbered by sorted text"),
        ("split", "column ml_use; 1 row without one by hash, 80/10/10"),
        ("id", "column id"),
        ("not read", "age"),
    ]
    assert read_read_as(str(tmp_path / "manifest")) == found
    assert str(tmp_path) not in found.to_json()


def test_only_a_list_with_columns_names_them(plan, photos):
    images = [{"id": n, "file_name": f"{n}.png", "width": 9, "height": 9} for n in range(2)]
    objects = [{"image_id": n, "category_id": 1, "bbox": [1, 2, 3, 4]} for n in range(2)]
    coco = {"images": images, "annotations": objects, "categories": [{"id": 1, "name": "cat"}]}
    found = plan(photos("0.png", "1.png", "coco.json", json=json.dumps(coco)) / "coco.json")
    assert found.manifest.read_as.to_rows() == [
        ("form", "COCO"),
        ("label", "from the annotations, numbered by the order in the source"),
        ("split", "by hash, 80/10/10"),
    ]
    line = {"imageGcsUri": "photos/0.png", "dataItemResourceLabels": {}}
    line["classificationAnnotation"] = {"displayName": "cat"}
    read_as = plan(json.dumps(line), "vertex.jsonl").manifest.read_as
    assert dict(read_as.to_rows())["split"].startswith("from the annotations; 1 row without one")
    assert read_as.columns == {}


@pytest.mark.parametrize(
    ("ending", "form"), [("jsonl", "JSON Lines in UTF-8"), ("parquet", "Parquet")]
)
def test_files_of_a_pattern_are_read_as_one_source(read, tmp_path, ending, form):
    frame = pd.DataFrame({"image": ["a.png", "b.png"], "label": [2, 10], "age": [1.5, 2]})
    for number in (1, 2):
        path = tmp_path / f"{number}.{ending}"
        lines = {"orient": "records", "lines": True}
        frame.to_parquet(path) if ending == "parquet" else frame.to_json(path, **lines)
    rows, doubts = read(tmp_path / f"*.{ending}")
    assert rows["form"] == f"2 files of {form}"
    assert rows["features"] == "age (float)"
    assert doubts == ["number_order"]


def test_a_frame_says_what_numbers_its_labels(tmp_path):
    frame = pd.DataFrame({"image": ["a.png", "b.png"], "label": ["x", "y"]})
    for labels, said in ((None, "sorted text"), (("y", "x"), "the given label map")):
        options = ManifestOptions(labels=labels)
        found = write_manifest(frame, str(tmp_path), str(tmp_path), options).read_as
        assert dict(found.to_rows())["label"] == f"column label, numbered by {said}"


@pytest.mark.fault(
    85,
    "splits in a column of another name, as `phase`",
    "a feature, with a line that says so",
    code="`split_column`",
    hint="`--columns`, or `--accept split_column`",
)
@pytest.mark.parametrize(
    ("name", "cells"),
    [
        ("phase", "train valid"),
        ("data set", "TRAIN TEST"),
        ("it's", "training "),
        ("is_valid", "False True"),
        ("test", "0 1"),
        ("VALIDATION", "train test"),
        *(("Usage", "Training PublicTest"), ("part", "train_set 02_test")),
        *(("isTrain", "yes no"), ("is_train", "1.0 0.0")),
    ],
)
def test_a_column_of_splits_that_is_not_used_is_in_doubt(plan, name, cells):
    first, second = cells.split(" ")
    text = f"image,{name},label,note\na.png,{first},x,train\nb.png,{second},y,a\n"
    (doubt,) = plan(text).manifest.read_as.doubts
    assert repr(name) in doubt.text
    assert ("--columns" in doubt.hint) == all(map(parse_split, cells.split()))


def test_a_column_of_splits_that_is_accepted_named_or_of_other_words_is_not_in_doubt(read):
    text = "image,phase,label\na.png,train,x\nb.png,valid,y\n"
    assert read(text)[1] == ["split_column"]
    assert read(text, accept=("split_column",))[1] == []
    columns = {"image": "image", "phase": "string", "label": "string_label"}
    assert read(text, schema=columns)[1] == []
    assert read(text.replace("valid", "late"))[1] == []


@pytest.mark.fault(
    86,
    "labels that are whole numbers, so that sorted text is not their order",
    "numbered as text, with a line that gives the label map",
    code="`number_order`",
    hint="`--label-map`, or `--accept number_order`",
)
def test_numbers_that_are_sorted_as_text_are_in_doubt(plan, read):
    text = HEADER + "".join(f"{n}.png,{n}\n" for n in range(12))
    (doubt,) = plan(text).manifest.read_as.doubts
    assert "'10' is number 2." in doubt.text
    assert "seq 0 11 > labels.txt" in doubt.hint
    assert read(text, labels=tuple(map(str, range(12))))[1] == []
    assert read(text, accept=("number_order",))[1] == []
    assert read(text, schema={"image": "image", "label": "string_label"})[1] == []
    assert read(HEADER + "a.png,1\nb.png,2\n")[1] == []


@pytest.mark.fault(
    87,
    "one label alone, or labels that differ in quotes, case or the form of a number",
    "a line that says so",
    code="`one_class`, `similar_labels`",
    hint="write them the same way, or `--accept`",
)
@pytest.mark.parametrize(
    ("labels", "name"),
    [
        (["cat"], "one_class"),
        (["cat", "'cat'"], "similar_labels"),
        (["Cat", "cat"], "similar_labels"),
        (["1", "01"], "similar_labels"),
    ],
)
def test_labels_that_may_be_wrong_are_in_doubt(read, labels, name):
    text = HEADER + "".join(f"{n}.png,{label}\n" for n, label in enumerate(labels))
    assert name in read(text)[1]
    assert name in DOUBTS
    assert name not in read(text, accept=(name,))[1]


@pytest.mark.parametrize(
    "labels", [["label0", "label1"], ["images", "masks"], ["bus", "car", "train"]]
)
def test_classes_of_a_list_are_not_the_names_of_folders(read, labels):
    text = HEADER + "".join(f"{n}.png,{label}\n" for n, label in enumerate(labels))
    assert read(text)[1] == []


@pytest.mark.fault(
    94,
    "boxes of one list, folder or split that a tool wrote at half scale, shifted, or with x and y "
    "swapped",
    "a line that says so",
    code="`odd_boxes`",
    hint="correct the list, or `--accept odd_boxes`",
)
@pytest.mark.parametrize("name", ["lists", "shares"])
def test_a_list_whose_boxes_are_half_as_large_is_in_doubt(plan, tmp_path, name):
    """Two lists of one tool, of which one has the boxes of images at half their size."""
    chance = random.Random(0)
    for part, scale in (("day", 1), ("night", 0.5)):
        lines = ["filename,width,height,class,xmin,ymin,xmax,ymax"]
        for number in range(60):
            (tmp_path / f"{part}{number}.jpg").touch()
            left, top = chance.uniform(0, 560), chance.uniform(0, 400)
            corners = (left, top, left + chance.uniform(9, 80), top + chance.uniform(9, 80))
            said = [round(scale * corner, 1) for corner in corners]
            size = (640, 480)
            if name == "shares":
                sides = (640, 480, 640, 480)
                said = [value / side for value, side in zip(said, sides, strict=True)]
                size = (1, 1)
            texts = map(str, (f"{part}{number}.jpg", *size, f"c{number % 2}", *said))
            lines.append(",".join(texts))
        (tmp_path / f"{part}_boxes.csv").write_text("\n".join(lines))
    [doubt] = plan(tmp_path / "*_boxes.csv").manifest.read_as.doubts
    assert doubt.name == "odd_boxes"
    assert doubt.text == (
        "The 60 boxes of night_boxes.csv are half as large as the others, and none is beyond the "
        "middle of its image."
    )
    assert not plan(tmp_path / "*_boxes.csv", accept=("odd_boxes",)).manifest.read_as.doubts
    assert not plan(tmp_path / "day_boxes.csv").manifest.read_as.doubts


def test_the_option_about_turned_boxes_is_in_what_was_read(read, tmp_path):
    row = {"image": "a.png", "objects": [{"label": "cat", "box": [1, 2, 3, 4]}]}
    found = read(json.dumps(row), "list.jsonl", box_orientation="stored")[0]
    assert "boxes in the stored image by --box-orientation" in found["form"]


@pytest.mark.fault(
    88,
    "lines before the header, as `sep=,`, a comment or a title",
    "left out, which `Read as` says",
)
@pytest.mark.parametrize(
    ("before", "doubts"),
    [
        *(("sep=,\n", 0), ("# exported, by me\n", 0), ("\ufeffsep=,\n", 0)),
        *(("My list\nof 2024,,\n\n", 0), ("# see cover.png\n", 0), ("# more\n" * 30, 0)),
        *(("Photos of cover.png\n", 1), ("https://example.org/set,2024\n", 1)),
    ],
)
def test_lines_before_the_header_are_left_out(plan, before, doubts):
    found = plan(before + HEADER + ROWS)
    assert found.labels == ["cat", "dog"]
    assert [doubt.name for doubt in found.manifest.read_as.doubts] == ["first_line"] * doubts
    lines = before.count("\n") + 1
    assert found.manifest.read_as.header == lines


def test_lines_before_the_header_are_left_out_where_columns_are_named(plan):
    columns = {"image": "image", "label": "string_label"}
    found = plan("# see cover.png\nMy list\n\n" + HEADER + ROWS, schema=columns)
    assert found.labels == ["cat", "dog"]


def test_a_comment_is_left_out_where_there_is_no_header(plan):
    assert plan("# from a camera\n" + ROWS).labels == ["cat", "dog"]


@pytest.mark.fault(
    88,
    "a first line unlike all others",
    "read as a row, or left out as a title, with a line that says so",
    code="`first_line`",
    hint="delete it, or `--accept first_line`",
)
@pytest.mark.parametrize(
    ("first", "labels"),
    [
        *(("My list", ["cat", "dog"]), ("My list,", ["cat", "dog"]), ("cat", ["cat", "dog"])),
        *(("c.png", ["cat", "dog"]), ("path/to/image,class", ["class", "cat", "dog"])),
        ("image.jpg,LABEL", ["LABEL", "cat", "dog"]),
    ],
)
def test_a_first_line_unlike_all_others_is_in_doubt(plan, read, first, labels):
    text = f"{first}\na.png,cat\nb.png,dog\n"
    assert plan(text).labels == labels
    assert read(text)[1] == ["first_line"]
    assert read(text, accept=("first_line",))[1] == []


@pytest.mark.fault(88, "numbers of the rows in front, without a header", "left out")
def test_an_index_in_front_is_not_a_label(plan, read):
    text = "0,a.png,cat\n1,b.png,dog\n"
    assert plan(text).labels == ["cat", "dog"]
    assert read(text)[0]["form"].endswith("its columns are not read, image_uri, label")


@pytest.mark.fault(
    89, "spaces after the commas of a CSV", "left out where the header has them, or a quote follows"
)
@pytest.mark.parametrize(
    ("text", "labels", "said"),
    [
        ('image, label\na.png,"x"\nb.png, "y, z"\n', ["x", "y, z"], "left out"),
        ('image,label\na.png,x\nb.png, "y, z"\n', ["x", "y, z"], "left out"),
        (
            *("a.png, x\nb.png, y\n", ["x", "y"]),
            "left out, its columns are image_uri, label",
        ),
        ('image,label\n"a, ""x.png",x\nb.png,y\n', ["x", "y"], ""),
        ("label,image\nx, a.png\ny,b.png\n", ["x", "y"], "kept"),
    ],
)
def test_spaces_after_commas(plan, text, labels, said):
    found = plan(text)
    assert found.labels == labels
    assert ", ".join(found.manifest.read_as.remarks).removeprefix("spaces after commas ") == said
    name = " a.png" if said == "kept" else 'a, "x.png' if "x.png" in text else "a.png"
    assert found.rows[1].id == name


def test_a_quote_after_a_space_far_below_is_a_quote(plan):
    rows = "".join(f"{n}.png,x\n" for n in range(200))
    assert plan(f'{HEADER}{rows}a.png, "y, ""z"""\n').labels[-1] == 'y, "z"'


@pytest.mark.fault(89, "names that begin with a space", "are taken as they are")
def test_names_are_literal(plan, photos):
    found = plan(photos(" cat/ a.png", "cat/b.png"))
    assert [found.rows[row].id for row in (1, 2)] == [" cat/ a.png", "cat/b.png"]
    assert found.rows[1].uri.endswith("/photos/ cat/ a.png")
    assert found.labels == ["cat", "cat"]
    lines = '{"image": " a.png"}\n{"image": "b.png "}\n'
    assert [row.id for row in plan(lines, "list.jsonl").rows.values()] == [" a.png", "b.png "]


@pytest.mark.fault(
    90,
    "labels of whole numbers with a point, as pandas writes them beside gaps",
    "are the whole numbers, in a CSV as in JSON and Parquet",
)
def test_whole_numbers_with_a_point_are_whole_numbers(plan, tmp_path):
    frame = pd.DataFrame({"image": ["a.png", "b.png", "c.png"], "label": [1.0, 0.0, 2.5]})
    frame.to_csv(tmp_path / "a.csv", index=False)
    frame.to_parquet(tmp_path / "a.parquet")
    frame.to_json(tmp_path / "a.jsonl", orient="records", lines=True)
    for name in ("a.csv", "a.parquet", "a.jsonl"):
        assert plan(tmp_path / name).labels == ["1", "0", "2.5"]
    assert plan(HEADER + "a.png,1.0\n", schema={"image": "image", "label": "integer_label"}).labels
    separated = plan(HEADER + "a.png,1.0;v1.0\n", label_separator=";")
    assert separated.rows[1].label == ["1", "v1.0"]
    # A map that has it settles it.
    assert plan(HEADER + "a.png,1.0\n", labels=("1.0",)).labels == ["1.0"]
    assert plan('{"image": "a.png", "label": "1.0"}\n', "l.jsonl").labels == ["1.0"]


@pytest.mark.fault(
    91, "thumbnails and trash of a NAS or of Windows in a folder", "left out, which `Read as` says"
)
def test_names_that_are_left_out_are_counted(read, photos):
    folder = photos(
        *("cat/a.png", "dog/b.png", "owl/c.heics", "cat/@eaDir/a.png/SYNOPHOTO_THUMB_S.png"),
        *("@eaDir/x.png", "$RECYCLE.BIN/S-1/x.png", "#recycle/y.png", ".DS_Store", "notes.txt"),
        *("RECYCLER/x.png", "RECYCLED/x.png", "FOUND.000/x.png", "~snapshot/x.png", ".git/x.png"),
        *("@sharebin/x.png", "#thumbs/x.png", "dog/@__thumb/x.png"),
    )
    photos("recycled/d.png")
    os.symlink(folder / "cat", folder / "lynx")
    rows, doubts = read(folder)
    assert (rows["form"], doubts) == ("folder, as <label>/<file>", [])
    assert rows["left out"] == (
        "files without an ending of images 2, folders linked twice 1, "
        "folders of thumbnails or trash 11, hidden files 1, hidden folders 1"
    )
    assert rows["no image"] == "in lynx, owl"


@pytest.mark.fault(
    92,
    "class folders that are named after splits, as `train_set` and `test_set`",
    "refused; a line where others are beside them",
    code="exit 1, `split_class`",
    hint="name them train, eval and test, or `--accept split_class`",
)
@pytest.mark.parametrize("names", ["train_set test_set", "01_train 02_test", "TrainImages val"])
def test_folders_named_after_splits_are_not_classes(refuse, read, photos, names):
    first, second = sorted(names.split())
    folder = photos(f"{first}/cat/a.png", f"{second}/cat/b.png")
    error = refuse(folder)
    assert f"named after splits, and would be classes: {first}, {second}" in error.message
    assert "--accept split_class" in error.hint
    assert "split_class" not in read(folder, accept=("split_class",))[1]
    photos("bus/c.png")
    assert "split_class" in read(folder)[1]


@pytest.fixture
def lists(tmp_path):
    """Writes lists by their names, each with ten images, and returns the pattern of all."""

    def write(*names, pattern="*.csv", header="image,label"):
        for number, name in enumerate(names):
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            rows = "".join(f"/photos/{number}{n}.png,{'ab'[n % 2]}\n" for n in range(10))
            path.write_text(f"{header}\n{rows}")
        return tmp_path / pattern

    return write


@pytest.mark.fault(
    85,
    "lists that are named after splits, as `train.csv` and `val.csv`",
    "their names say the splits; a line where only some are",
    code="`split_names`",
    hint="name all of them, `--split-ratios`, or `--accept split_names`",
)
@pytest.mark.parametrize(
    ("names", "pattern"),
    [
        ("train.csv val.csv test.csv", "*.csv"),
        ("train/a.csv valid/a.csv test/a.csv", "*/a.csv"),
        ("split=train/a.csv split=val/a.csv split=test/a.csv", "split=*/a.csv"),
    ],
)
def test_lists_that_are_named_after_splits_keep_them(plan, lists, names, pattern):
    source = lists(*names.split(), pattern=pattern)
    found = plan(source)
    assert dict(found.manifest.read_as.to_rows())["split"] == "from the names of the files"
    by_split = {row.uri[8]: row.split for row in found.rows.values()}
    assert [by_split[n] for n in "012"] == ["train", "eval", "test"]
    assert not found.manifest.read_as.doubts
    divided = plan(source, split_ratios=SplitRatios())
    assert dict(divided.manifest.read_as.to_rows())["split"] == "by hash, 80/10/10"
    assert len({row.split for row in divided.rows.values() if row.uri[8] == "0"}) > 1
    assert not divided.manifest.read_as.doubts


def test_lists_of_which_some_are_named_after_splits_are_in_doubt(read, lists):
    source = lists("a.csv", "b_val.csv")
    rows, doubts = read(source)
    assert (rows["split"], doubts) == ("by hash, 80/10/10", ["split_names"])
    assert read(source, accept=("split_names",))[1] == []
    assert read(lists("a_labels.csv", "val_labels.csv", pattern="*_labels.csv"))[0]["split"] == (
        "from the names of the files; 10 rows without one by hash, 80/10/10"
    )


@pytest.mark.fault(
    94,
    "boxes in columns that darkroom does not read, as `bbox` or `left`, beside a label",
    "features, with a line that says so",
    code="`box_columns`",
    hint="write xmin, ymin, xmax and ymax, or `--accept box_columns`",
)
@pytest.mark.parametrize(
    ("names", "cells"),
    [
        ("bbox", '"[10, 12, 20, 30]"'),
        ("x,y,width,height", "10,12,20,30"),
        ("left,top,right,bottom", "10,12,30,42"),
        ("XMin,YMin,Width,Height", "10,12,20,30"),
    ],
)
def test_boxes_of_other_names_are_features_with_a_line(read, names, cells):
    text = f"image,label,{names}\na.png,cat,{cells}\nb.png,dog,{cells}\n"
    assert read(text)[1] == ["box_columns"]
    assert read(text, accept=("box_columns",))[1] == []


def test_rows_of_an_image_that_are_its_boxes_are_told_so(tmp_path):
    rows = "a.png,cat,1,2,30,40\na.png,dog,5,6,30,40\n"
    (tmp_path / "l.csv").write_text(f"image,label,left,top,right,bottom\n{rows}")
    with pytest.raises(DataError, match="row 1: conflict") as caught:
        darkroom.convert(tmp_path / "l.csv", tmp_path / "records")
    assert "To read boxes, write the columns xmin, ymin, xmax and ymax" in caught.value.hint


@pytest.mark.fault(
    94,
    "boxes in a CSV without header, or with unknown names",
    "refused, with the names that are read",
    code="exit 1",
)
@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a.png,1,2,30,40,cat\nb.png,,,,,\n", "image_uri,xmin,ymin,xmax,ymax,label"),
        ("a.png,cat,0.1,0.2,0.3,0.4\n", "image_uri,xmin,ymin,xmax,ymax,label"),
        ('image_id,w,h,bbox\na,80,60,"[1.0, 10.0, 20.0, 30.0]"\n', "These seem to be boxes"),
        ("ImageID,LabelName,XMin,XMax,YMin,YMax\na,/m/0c,0.1,0.5,0.2,0.6\n", "seem to be boxes"),
    ],
)
def test_boxes_without_names_that_are_known_are_told(refuse, text, said):
    assert said in refuse(text).hint


@pytest.mark.fault(
    93,
    "a split in which no image has an object",
    "its images are empty, with a line that says so",
    code="`no_objects`",
    hint="export it again, or `--accept no_objects`",
)
def test_a_split_without_objects_is_in_doubt(read):
    cat = [{"label": "cat", "box": [1, 2, 3, 4]}]
    rows = [("train", n, cat if n else []) for n in range(5)] + [("eval", n, []) for n in range(5)]
    rows += [("test", n, None) for n in range(9)]
    lines = [{"image": f"{split}{n}.png", "split": split, "objects": o} for split, n, o in rows]
    text = "\n".join(map(json.dumps, lines))
    assert read(text, "list.jsonl")[1] == ["no_objects"]
    assert read(text, "list.jsonl", accept=("no_objects",))[1] == []


def test_a_column_of_splits_is_asked_before_the_names_of_lists(plan, lists, tmp_path):
    for split in ("train", "val"):
        (tmp_path / f"{split}.csv").write_text(f"image,split\n{split}.png,test\n{split}2.png,\n")
    found = plan(tmp_path / "*.csv")
    assert dict(found.manifest.read_as.to_rows())["split"].startswith("column split; 2 rows")
    assert [found.rows[row].split for row in (1, 3)] == ["test", "test"]


def test_folders_are_splits_also_with_a_year(read, photos):
    folder = photos("train2017/cat/a.png", "val2017/cat/b.png", "train2017/dog/c.png")
    assert read(folder)[0]["form"] == "folder, as <split>/<label>/<file>"


def test_a_class_called_train_is_honest(read, photos):
    folder = photos("bus/a.png", "car/b.png", "train/c.png")
    assert read(folder)[1] == ["split_class"]


def test_one_other_folder_does_not_hide_the_splits(plan, photos):
    found = plan(photos("train/cat/a.png", "test/cat/b.png", "more/c.png"))
    assert found.labels == ["cat", "cat"]
    (reject,) = found.rejects.values()
    assert reject.detail == ("more/c.png is not in <split>/<label>/<file>, as more is not a split")


VOC = "<annotation><filename>a.png</filename><object/></annotation>"


@pytest.mark.fault(
    93,
    "a folder with masks, or with annotations that are not read, as of CVAT or YOLO without names",
    "refused, with the form by its name",
    code="exit 1, `task_class`",
    hint="a list with labels, or `--accept task_class`",
)
@pytest.mark.parametrize(
    ("names", "said"),
    [
        ("images/a.png masks/a.png", "the files in masks have the names of those in images"),
        ("x/a.png mask/a_mask.png", "the files in mask have the names of those in x"),
        ("train/images/a.png train/masks/a.png", "those in train/images,"),
        ("train/a.jpg train_masks/a_mask.png", "in train_masks have the names of those in train,"),
        ("images/a.png masks/a.png overlays/a.png", "have the names of those in images,"),
        ("images/a.png mask_images/a.png", "the files in mask_images have the names"),
        ("images/image_1.png masks/mask_1.png", "the files in masks have"),
        ("color/a.png ground_truth/a.png", "the files in ground_truth have"),
        ("imagesTr/a.png labelsTr/a.png", "the files in labelsTr have"),
        (
            "leftImg8bit/val/x/a_leftImg8bit.png gtFine/val/x/a_gtFine_color.png",
            "the files in gtFine/val/x have",
        ),
        ("images/a.png labels/a.txt", "a.txt is a file of YOLO"),
        ("images/train/a.png images/val/b.png labels/train/a.txt labels/val/b.txt", "YOLO"),
        ("train/a.png train/metadata.jsonl", "metadata.jsonl is a list of Hugging Face"),
    ],
)
def test_a_folder_of_another_task_is_not_one_of_classes(refuse, photos, names, said):
    folder = photos(*names.split(), txt="0 0.5 0.5 0.1 0.1\n")
    assert said in refuse(folder).message


def test_labels_of_yolo_without_classes_are_told_what_they_lack(refuse, photos):
    folder = photos("images/a.png", "labels/a.txt", txt="0 0.5 0.5 0.1 0.1\n")
    assert "Put data.yaml, or classes.txt" in refuse(folder).hint


def test_a_refusal_begins_with_the_doubts_of_its_source(photos, tmp_path):
    names = {"txt": "1 0.5 0.5 0.1 0.1\n2 0.5 0.5 0.1 0.1", "yaml": "train: images\nnames: [a, b]"}
    folder = photos("images/a.png", "labels/a.txt", "data.yaml", **names)
    PIL.Image.new("RGB", (8, 8)).save(folder / "images/a.png")
    with pytest.raises(DataError) as caught:
        darkroom.convert(folder, tmp_path / "out")
    hint = caught.value.hint
    assert hint.index("Doubt: No object has class 0, 'a'.") < hint.index("unknown_class: ")


def test_an_export_of_cvat_is_told_to_be_exported_as_coco(refuse):
    text = "<?xml version='1.0'?>\n<annotations>\n<image id='0' name='a.jpg'/></annotations>"
    assert "as COCO 1.0" in refuse(text, 2, "annotations.xml").hint


def test_a_dataset_of_fiftyone_is_told_how_to_become_coco(refuse, photos):
    folder = photos("data/a.png", "labels.json", json=FIFTYONE)
    error = refuse(folder)
    assert "labels.json is a file of annotations of FiftyOne" in error.message
    assert "COCODetectionDataset" in error.hint


def test_classes_that_are_numbered_alike_are_honest(read, photos):
    folder = photos(*(f"{name}/{n}.png" for name in ("hats", "masks", "gloves") for n in (1, 2)))
    assert read(folder)[1] == ["task_class"]
    photos("ground/1.png", "truth/1.png")
    assert "masks." in read(folder)[0]["doubt"]


def test_classes_whose_files_have_their_names_are_honest(read, photos):
    folder = photos(*(f"{name}/a_{name}_{n}.png" for name in ("hats", "masks") for n in (1, 2)))
    assert read(folder)[1] == ["task_class"]
    assert read(folder, accept=("task_class",))[1] == []


VERTEX = {
    "imageGcsUri": "a.png",
    "classificationAnnotation": {"displayName": "cat"},
    "dataItemResourceLabels": {"aiplatform.googleapis.com/ml_use": "test"},
}
SAGEMAKER = {
    "source-ref": "a.png",
    "kind": 0,
    "kind-metadata": {"class-name": "cat", "confidence": 1, "type": "groundtruth"},
}
COCO_BOX = {"id": 1, "image_id": 1, "category_id": 1, "bbox": [0, 0, 1, 1]}
# Its key `images` is in the middle of more than is looked into, and all is one line.
LARGE_COCO = json.dumps(
    {
        "annotations": [COCO_BOX] * 3_000,
        "images": [{"id": n, "file_name": f"{n}.png"} for n in range(30_000)],
    }
)
FIFTYONE = json.dumps(
    {
        "classes": ["cat"],
        "labels": {"a": [{"label": 0, "bounding_box": [0.1, 0.2, 0.3, 0.4], "confidence": 0.9}]},
    }
)
TASK = {"data": {"image": "a.png"}, "annotations": []}


@pytest.mark.fault(
    93,
    "a file of COCO, Pascal VOC, YOLO, VGG Image Annotator, Labelme, Create ML or SageMaker as "
    "the source",
    "refused, with the form by its name",
    code="exit 1 or 2",
    hint="what to do with it",
)
@pytest.mark.parametrize(
    ("name", "text", "code", "said"),
    [
        ("a.json", LARGE_COCO, 1, "The images of"),
        ("a.jsonl", LARGE_COCO, 1, "The images of"),
        ("a.json", json.dumps([COCO_BOX], indent=1), 1, "a list, as one of results of a model"),
        ("a.jsonl", json.dumps(TASK), 1, "Label Studio"),
        ("a.json", '{"a.png9": {"filename": "a.png", "regions": []}}', 2, "VGG Image Annotator"),
        ("a.json", '{"shapes": [],\n "imagePath": "a.png"}', 2, "an annotation of Labelme"),
        ("a.json", '[{"image": "a", "annotations": [{"coordinates": {}}]}]', 2, "Create ML"),
        ("a.manifest", json.dumps(SAGEMAKER), 2, "a manifest of SageMaker with classes"),
        ("a.jsonl", '{"source-ref": "a", "b": {"image_size": []}}', 1, "SageMaker with boxes"),
        ("a.tsv", "image\tlabel\n", 2, "is separated by tabs"),
        ("a.json", json.dumps(VERTEX, indent=1), 2, "Vertex AI, but not one object a line"),
        ("a.json", '[{"image": "a", "annotator": 1, "annotation_id": 2}]', 2, "Label Studio"),
        ("a.json", '[{"image": "a.png", "label": "cat"}]', 2, "an array of JSON"),
        ("a.txt", '{"image": "a.png", "label": "cat"}\n', 2, "JSON Lines"),
        ("a.csv", '{"image": "a.png", "label": "cat"}\n', 1, "JSON Lines"),
        ("a.jsonl", '[{"image": "a.png",\n "label": "cat"}]\n', 1, "an array of JSON"),
        ("a.xml", VOC, 2, "an annotation of Pascal VOC"),
        ("a.xml", "<annotations>\n<image id='0'/></annotations>", 2, "CVAT"),
        ("labels.json", FIFTYONE, 2, "a file of annotations of FiftyOne"),
    ],
)
def test_a_known_form_is_named(refuse, name, text, code, said):
    assert said in refuse(text, code, name).message


def test_the_advice_for_classes_works(refuse, plan, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    lines = f"{json.dumps(SAGEMAKER)}\n{json.dumps({**SAGEMAKER, 'source-ref': 'b.png'})}\n"
    hint = refuse(lines, name="a.jsonl").hint
    code = "\n".join(line.strip() for line in hint.splitlines()[1:])
    exec(code, {"json": json, "pandas": pd})
    assert plan(tmp_path / "flat.csv").labels == ["cat", "cat"]


def test_the_advice_for_json_over_several_lines_works(refuse, plan, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("a.png").touch()
    hint = refuse(json.dumps([VERTEX, VERTEX], indent=1), name="a.jsonl").hint
    exec("\n".join(line.strip() for line in hint.splitlines()[1:]), {"json": json})
    found = plan(tmp_path / "list.jsonl")
    assert [(row.label, row.split) for row in found.rows.values()] == [("cat", "test")]


def test_a_list_of_images_is_not_called_a_known_form(refuse):
    # The beginning of a COCO file has lists of objects, and a list of images has texts.
    for row in ({"images": "a.png", "categories": "cat"}, {"images": ["a"], "categories": ["b"]}):
        assert "Did you mean 'images'?" in refuse(json.dumps(row), name="a.jsonl").message
    long = "{}\n" + "x" * ((1 << 20) + 1)
    assert "line 2" in refuse(long, name="a.jsonl").message


@pytest.mark.fault(
    93,
    "a table with the images in its cells",
    "refused; where these are files, with the lines of Python that write them",
    code="exit 1",
)
@pytest.mark.parametrize("form", ["bytes", "struct", "other struct", "base64", "data"])
def test_images_in_cells_are_named_and_the_advice_works(refuse, plan, tmp_path, monkeypatch, form):
    monkeypatch.chdir(tmp_path)
    Path("images").mkdir()
    image = b"\xff\xd8\xff\xfb" + bytes(500)
    cells = {
        "bytes": image,
        "struct": {"bytes": image, "path": None},
        "other struct": {"data": image},
        "base64": base64.b64encode(image).decode(),
        "data": "data:image/png;base64," + base64.b64encode(image).decode(),
    }
    frame = pd.DataFrame({"image": [None, cells[form], cells[form]], "label": ["x", "y", "y"]})
    pq.write_table(pa.Table.from_pandas(frame), tmp_path / "a.parquet")
    frame.to_csv(tmp_path / "a.csv", index=False)
    is_text = isinstance(cells[form], str)
    for source in (frame, tmp_path / "a.parquet", *([tmp_path / "a.csv"] if is_text else [])):
        with pytest.raises(DataError, match="the column 'image' holds images, not their") as caught:
            write_manifest(source, str(tmp_path), str(tmp_path))
        assert len(str(caught.value)) < 600
    lines = [line.strip() for line in caught.value.hint.splitlines()[1:-1]]
    frame = frame.dropna().reset_index(drop=True)
    names = {"df": frame, "pandas": pd, "base64": base64, "pathlib": pathlib}
    exec("\n".join(lines[-2:]), names)
    assert list(names["df"]["image"]) == ["images/0.png", "images/1.png"]
    assert (tmp_path / "images/1.png").read_bytes() == image


@pytest.mark.parametrize(
    "cell", [np.zeros((2, 3, 3), np.uint8), [0] * 18, PIL.Image.new("L", (2, 2)), "ffd8" * 2_000]
)
def test_pixels_and_other_texts_of_images_in_cells_are_named(tmp_path, cell):
    frame = pd.DataFrame({"image": [None, cell, cell], "label": ["x", "y", "y"]})
    with pytest.raises(DataError, match="the column 'image' holds images, not their") as caught:
        write_manifest(frame, str(tmp_path), str(tmp_path))
    assert caught.value.hint == 'Write them into a folder, as "images", and name the files.'


@pytest.mark.fault(
    93,
    "cells of Hugging Face that only name the file: `{'bytes': None, 'path': '0.png'}`",
    "refused, with the line of Python that takes the paths out, in the folder of the list",
    code="exit 1",
)
def test_names_of_files_in_cells_are_named_and_the_advice_works(refuse, tmp_path):
    cells = [{"bytes": None, "path": f"{n}.png"} for n in range(2)]
    text = "".join(f"{json.dumps({'image': cell, 'label': 'x'})}\n" for cell in cells)
    error = refuse(text, name="list.jsonl")
    assert "'image' holds images, not their paths" in error.message
    names = {"pandas": pd, "os": os}
    exec("\n".join(line.strip() for line in error.hint.splitlines()[1:-1]), names)
    assert list(names["df"]["image"]) == [str(tmp_path / f"{n}.png") for n in range(2)]


def test_images_further_down_or_as_labels_are_named(refuse, plan):
    image = base64.b64encode(b"GIF89a" + bytes(50)).decode()
    paths = "".join(f"{n}.png,{n}\n" for n in range(4))
    text = HEADER + paths + 4 * f"{image},x\n"
    assert "'image' holds images, not their paths" in refuse(text).message
    assert "'label' holds images, not labels" in refuse(f"{HEADER}a.png,{image}\n").message
    # A few of many are rows that are rejected.
    assert plan(text + "a.png,x\n").manifest.rows == 9


@pytest.mark.parametrize(
    "name", ["BMW/1.jpg", "/9j/1", "/work/" + 50 * "a", "ffd8ff/" + 50 * "a", "b'a.png'"]
)
def test_paths_that_begin_like_images_are_paths(plan, tmp_path, name):
    # Some writers of Parquet know no text.
    pq.write_table(pa.table({"image": [name.encode()], "label": ["x"]}), tmp_path / "a.parquet")
    assert plan(tmp_path / "a.parquet").rows[1].id == name


@pytest.mark.fault(
    94, "equal relative names in the lists of several folders", "are different images"
)
def test_equal_names_of_several_lists_are_different_images(plan, tmp_path):
    for day in ("day1", "day2"):
        (tmp_path / day).mkdir()
        (tmp_path / day / "l.csv").write_text(f"{HEADER}a.png,x\n{day}.png,y\n")
    found = plan(tmp_path / "day*" / "l.csv")
    # What is told apart by its own list keeps its key.
    ids = ["day1/a.png", "day1.png", "day2/a.png", "day2.png"]
    assert [found.rows[row].id for row in (1, 2, 3, 4)] == ids
    assert found.rows[1].key == make_key("day1/a.png")
    # The new key of one was that of another.
    (tmp_path / "day1" / "l.csv").write_text(f"{HEADER}a.png,x\nday1.png,y\nday2/a.png,y\n")
    found = plan(tmp_path / "day*" / "l.csv")
    assert [found.rows[row].id for row in (1, 3, 4)] == ["day1/a.png", "day1/day2/a.png", ids[2]]
    (tmp_path / "day2" / "l.csv").write_text(f"{HEADER}../day1/a.png,x\n")
    assert plan(tmp_path / "day*" / "l.csv").manifest.deduplicated == 1
