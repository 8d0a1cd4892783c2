"""Labels that look like several in one, or like numbers, are refused until they are confirmed."""

from __future__ import annotations

import re

import pytest

from darkroom.dataset.manifest import Manifest
from darkroom.errors import DataError
from darkroom.manifest.classes import check_are_classes
from darkroom.manifest.writer import write_manifest
from darkroom.options.manifest import ManifestOptions

PRICES = [f"{i}.99" for i in range(21)]


def plan(tmp_path, labels, **options) -> Manifest:
    rows = "".join(f"{i}.jpg,{label}\n" for i, label in enumerate(labels))
    (tmp_path / "m.csv").write_text(f"image_uri,label\n{rows}")
    out = str(tmp_path / "out")
    return write_manifest(tmp_path / "m.csv", out, out, ManifestOptions.parse(**options))


@pytest.mark.parametrize(
    ("labels", "said"),
    [
        (["pants;outdoor", "pants", "hat|indoor"], "2 of 3 labels have a ';' or '|', as 'hat|ind"),
        # Most rows have one of a few texts.
        (["a;b"] * 5 + ["a", "b", "c"], "1 of 4 labels has a ';' or '|', as 'a;b'"),
        # Most texts are joined, in a few rows.
        (["a"] * 9 + ["a;b", "a;c"], "2 of 3 labels"),
        (PRICES, "21 labels in 21 rows, and 21 are numbers, as '0.99'"),
        ([*PRICES, *PRICES[:20]], "21 labels in 41 rows"),
        ([f"-1,{i}e5" for i in range(30)], "30 labels in 30 rows"),
        ([*PRICES, "N/A", "?"], "23 labels in 23 rows, and 21 are numbers, as '0.99'"),
        *(
            ([form.format(i) for i in range(30)], "and 30 are numbers")
            for form in ("${}.51", "-${}", "{},00 €", "{} EUR", "USD {}", "{}.3%", "{} kg")
        ),
    ],
)
def test_labels_that_look_like_no_classes_are_refused(labels, said):
    with pytest.raises(DataError, match=re.escape(said)) as caught:
        check_are_classes({label: labels.count(label) for label in labels})
    assert "--label-kind label (label_kind= in Python)" in caught.value.hint


@pytest.mark.parametrize(
    "labels",
    [
        ["a;b", "a"],
        ["a;b", "a", "a", "b"],
        PRICES[:20],
        [*PRICES, *PRICES],  # each twice
        [*PRICES, "none", "n/a", "unknown"],  # more than one in ten
        [f"{i:03}x" for i in range(50)],
        [f"n{i:08}" for i in range(50)],
        [f"{i} oaks" for i in range(50)],
    ],
)
def test_other_labels_are_classes(labels):
    check_are_classes({label: labels.count(label) for label in labels})


def test_labels_are_refused_until_they_are_confirmed(tmp_path):
    labels = ["pants;outdoor", "pants", "hat|indoor"]
    with pytest.raises(DataError, match="2 of 3 labels"):
        plan(tmp_path, labels)
    assert plan(tmp_path, labels, label_kind="label").labels == sorted(labels)


def test_integers_are_refused_like_their_texts(tmp_path):
    columns = {"image_uri": "image", "label": "integer_label"}
    with pytest.raises(DataError, match="30 are numbers"):
        plan(tmp_path, range(30), columns=columns)
    manifest = plan(tmp_path, range(30), columns=columns, label_kind="label")
    assert manifest.num_examples == 30


def test_a_label_map_says_that_its_texts_are_labels(tmp_path):
    assert plan(tmp_path, PRICES, label_map=PRICES).labels == PRICES
    assert plan(tmp_path, ["a;b", "a;b"], label_map=["a;b"]).labels == ["a;b"]


def test_rejected_rows_do_not_count(tmp_path):
    # The same image with two labels is a conflict, and none of them is a class.
    (tmp_path / "m.csv").write_text("image_uri,label\na.jpg,x;y\na.jpg,z;y\nb.jpg,cat\n")
    out = str(tmp_path / "out")
    assert write_manifest(tmp_path / "m.csv", out, out).labels == ["cat"]
