"""Bad inputs 22 and 62 to 68: splits without rows, labels and the dataset as a whole."""

from __future__ import annotations

import shutil

import pytest

from darkroom.conversion.convert import convert
from darkroom.dataset import labels
from darkroom.dataset.commit import read_dataset
from darkroom.dataset.labels import list_lookalikes
from darkroom.dataset.rejects import read_rejects
from darkroom.errors import OutputError
from darkroom.manifest.writer import write_manifest
from darkroom.options.manifest import ManifestOptions
from darkroom.options.validation import FAIL, WARN, ValidationOptions
from darkroom.runtime import progress
from darkroom.validation.judge import JudgedFiles, judge_dataset

pytestmark = pytest.mark.slow

HEADER = "split,image_uri,label\n"


def _judge(images, tmp_path, **options):
    """Converts a set of images and judges it; returns the findings by check."""
    folder = str(tmp_path / "manifest")
    write_manifest(images.csv, folder, folder, ManifestOptions())
    out = tmp_path / "out"
    convert(images.csv, out, max_rejects=1, overwrite=True)
    inputs = JudgedFiles(str(out / "index"), str(out / "rejects.parquet"), folder)
    options = {"min_class_images": 2, "max_rejects": 1, **options}
    report = judge_dataset(inputs, ValidationOptions(**options))
    return {each.check: each for each in report.findings}


@pytest.mark.fault(
    22,
    "a split with rejected rows only, or no row in train or eval",
    "the pipeline's gate stops (`missing_splits`, policy fail)",
    code="finding",
    hint="add rows of the split",
)
def test_a_split_without_records_stops_the_gate(jpeg_set, tmp_path):
    jpeg_set.rows = [row for row in jpeg_set.rows if row[0] == "TRAIN"]
    jpeg_set.add("TEST", "gone.jpg", "cat", None)
    finding = _judge(jpeg_set, tmp_path)["missing_splits"]
    assert (finding.policy, finding.count) == (FAIL, 2)
    assert [row["split"] for row in finding.rows] == ["eval", "test"]
    assert "Add rows of this split" in finding.hint
    assert "missing_splits" not in _judge(
        jpeg_set, tmp_path, required_splits=("train",), policies={"missing_splits": "off"}
    )


@pytest.mark.fault(
    62,
    "control characters, zero-width and bidirectional ones in a label",
    "rejected, the character shown by its code",
    code="`bad_label`",
    hint="write it without them",
)
@pytest.mark.parametrize("character", "\n\t\x1b\x7f\u00ad\u200b\u202e\u2028\u2066\u3164\ufeff")
def test_labels_with_invisible_characters_are_rejected(plan, character):
    planned = plan(f'{HEADER}TRAIN,a.jpg,"ca{character}t"\nTRAIN,b.jpg,cat\n')
    assert planned.reasons == {1: "bad_label"}
    assert repr(f"ca{character}t") in planned.rejects[1].detail
    assert planned.manifest.labels == ["cat"]


@pytest.mark.fault(62, "one label in two Unicode forms (NFC, NFD)", "one label, in NFC")
def test_labels_are_composed(plan):
    text = f"{HEADER}TRAIN,a.jpg,Bro\u0308tchen\nTRAIN,b.jpg,Br\u00f6tchen\n"
    assert plan(text).manifest.labels == ["Brötchen"]


@pytest.mark.fault(
    62,
    "letters of other scripts that look the same (`c\u0430t`, Cyrillic, for `cat`)",
    "accepted with a warning (`similar_labels`) that shows their codes",
    code="finding",
    hint="write them the same way",
)
def test_lookalikes_are_reported(jpeg_set, tmp_path):
    jpeg_set.rows[0] = (*jpeg_set.rows[0][:2], "c\u0430t")
    finding = _judge(jpeg_set, tmp_path)["similar_labels"]
    assert (finding.policy, finding.count) == (WARN, 1)
    assert finding.rows == ({"label": "'cat' (13)", "looks_like": "'c\u0430t' = 'c\\u0430t' (1)"},)


class _Notes:
    """A listener that keeps the lines worth a line of their own."""

    def __init__(self):
        self.lines = []

    def note(self, text):
        self.lines.append(text)

    def open(self):
        pass

    def close(self):
        pass

    def start_step(self, label):
        pass

    def advance(self, done, total, unit, before, detail=""):
        pass

    def remark(self, text):
        pass

    def finish_step(self, *, failed):
        pass


@pytest.mark.fault(
    63,
    "`Cat`, `cat`, `cat ` as labels",
    "white space around is left out; the rest is two classes, with a warning (`similar_labels`) "
    "that names the more frequent one; never merged silently",
    code="finding",
    hint="write all as the first one",
)
def test_labels_that_differ_in_case_are_reported_not_merged(jpeg_set, tmp_path):
    jpeg_set.rows[0] = (*jpeg_set.rows[0][:2], "Cat")
    jpeg_set.rows[3] = (*jpeg_set.rows[3][:2], " cat ")
    finding = _judge(jpeg_set, tmp_path)["similar_labels"]
    assert finding.rows == ({"label": "'cat' (13)", "looks_like": "'Cat' (1)"},)
    assert "write all of them in the source like the first one" in finding.hint
    with progress.use(_Notes()) as notes:
        result = convert(jpeg_set.csv, tmp_path / "other")
    assert result.labels == ("Cat", "cat", "dog", "owl")
    assert [line for line in notes.lines if "'Cat', 'cat'" in line] == [
        "Doubt: Labels look alike: 'Cat', 'cat'. Write them the same way if they mean the same. If "
        "they differ: --accept similar_labels (accept= in Python)."
    ]


def test_many_lookalikes_are_cut_short():
    found = [label for letter in "abcdefghijklmnop" for label in (letter, letter.upper())]
    *groups, last = list_lookalikes(found).split("; ")
    assert len(groups) == 10
    assert last == "and 6 more groups"


@pytest.mark.fault(
    64,
    "a class that eval lacks, a class with one image",
    "accepted with warnings (`missing_classes`, `small_classes`), or stopped by their policies",
    code="finding",
    hint="add images of it",
)
def test_rare_classes_are_reported(jpeg_set, tmp_path):
    jpeg_set.rows[0] = (*jpeg_set.rows[0][:2], "emu")
    findings = _judge(jpeg_set, tmp_path, policies={"small_classes": "fail"})
    assert findings["missing_classes"].rows == ({"split": "eval", "label": "emu"},)
    assert findings["missing_classes"].policy == WARN
    assert findings["small_classes"].rows == ({"split": "train", "label": "emu", "records": 1},)
    assert findings["small_classes"].policy == FAIL


def _copy(images, split, name, label):
    shutil.copy(images.folder / "00.jpg", images.folder / name)
    images.add(split, name, label, None)


@pytest.mark.fault(
    65,
    "the same image under two names with two labels",
    "written, then stopped by the gate (`label_conflicts`): both rows are named",
    code="finding",
    hint="keep the row with the right label",
)
def test_one_image_with_two_labels_stops_the_gate(jpeg_set, tmp_path):
    _copy(jpeg_set, "TRAIN", "copy.jpg", "dog")
    finding = _judge(jpeg_set, tmp_path)["label_conflicts"]
    assert (finding.policy, finding.count) == (FAIL, 1)
    (row,) = finding.rows
    assert (row["row"], row["label"], row["other_row"], row["other_label"]) == (1, "cat", 41, "dog")


@pytest.mark.fault(
    66,
    "the same image under two names in train and eval",
    "written, then stopped by the gate (`leakage`): both rows are named",
    code="finding",
    hint="keep it in one split",
)
def test_one_image_in_two_splits_stops_the_gate(jpeg_set, tmp_path):
    _copy(jpeg_set, "VALIDATION", "copy.jpg", "cat")
    findings = _judge(jpeg_set, tmp_path)
    assert (findings["leakage"].policy, findings["leakage"].count) == (FAIL, 1)
    (row,) = findings["leakage"].rows
    assert (row["row"], row["split"], row["other_row"], row["other_split"]) == (
        41,
        "eval",
        1,
        "train",
    )


@pytest.mark.fault(
    67,
    "labels that come and go between runs",
    "numbers are those of the sorted labels, whatever the order of the rows; with `--label-map` "
    "those of the map, and the rows of a label that it lacks are rejected",
    code="`unknown_label`",
    hint="correct the label, or add it to the map",
)
def test_a_pinned_map_keeps_the_numbers(jpeg_set, tmp_path):
    first = convert(jpeg_set.csv, tmp_path / "first")
    jpeg_set.rows.reverse()
    assert convert(jpeg_set.csv, tmp_path / "again").labels == first.labels
    jpeg_set.rows[0] = (*jpeg_set.rows[0][:2], "ant")
    pinned = tmp_path / "first" / "labels.txt"
    second = convert(jpeg_set.csv, tmp_path / "second", label_map=pinned, max_rejects=1)
    assert second.labels == first.labels == ("cat", "dog", "owl")
    (reject,) = read_rejects(f"{second.output_dir}/rejects.parquet")
    assert (reject.row, reject.reason, reject.label) == (1, "unknown_label", "ant")
    assert read_dataset(second.output_dir).labels == first.labels


@pytest.mark.fault(
    67,
    "another label map for the same output",
    "refused, the dataset stays",
    code="exit 4",
    hint="another folder, or `--overwrite`",
)
def test_a_map_in_another_order_is_another_dataset(jpeg_set, tmp_path):
    convert(jpeg_set.csv, tmp_path / "out")
    before = (tmp_path / "out" / "dataset.json").read_bytes()
    with pytest.raises(OutputError, match="holds another dataset") as caught:
        convert(jpeg_set.csv, tmp_path / "out", label_map=["owl", "dog", "cat"])
    assert "--overwrite" in caught.value.hint
    assert (tmp_path / "out" / "dataset.json").read_bytes() == before


@pytest.mark.fault(
    68,
    "more than 65,536 classes, as from a column of ids",
    "refused, with two of them",
    code="exit 1",
    hint="name the column that holds the label",
)
def test_more_classes_than_numbers_are_an_error(refuse, monkeypatch):
    assert labels.MAX_CLASSES == 65_536
    monkeypatch.setattr(labels, "MAX_CLASSES", 1_000)
    error = refuse(HEADER + "".join(f"TRAIN,{i}.jpg,id {i}\n" for i in range(1_001)))
    assert "1,001 different labels, at most 1,000" in error.message
    assert "'id 0', 'id 1'" in error.message


@pytest.mark.fault(
    68,
    "several labels in one text, as `pants;outdoor`, in more than half of the labels or rows",
    "refused, with one of them",
    code="exit 1",
    hint="one label an image, or `--label-kind label`",
)
def test_several_labels_in_one_text_are_an_error(refuse):
    error = refuse(f"{HEADER}TRAIN,a.jpg,pants;outdoor\nTRAIN,b.jpg,hat\nTRAIN,c.jpg,hat|indoor\n")
    assert "2 of 3 labels have a ';' or '|', as 'hat|indoor'" in error.message


@pytest.mark.fault(
    68,
    "more than 20 labels, nine tenths of them numbers, and more than half as many as the rows",
    "refused, with one of them",
    code="exit 1",
    hint="name the column of the classes, or `--label-kind label`",
)
def test_amounts_as_labels_are_an_error(refuse):
    error = refuse(HEADER + "".join(f"TRAIN,{i}.jpg,{i}.99\n" for i in range(120)))
    assert "120 labels in 120 rows, and 120 are numbers, as '0.99'" in error.message


@pytest.mark.fault(
    68,
    "two rows of one image that differ in further columns, as two boxes in it",
    "refused, with both rows",
    code="exit 1",
    hint="one row an image, or `--merge-rows first`",
)
def test_two_boxes_in_one_image_are_an_error(refuse):
    rows = "TRAIN,b.jpg,cat,1\nTRAIN,a.jpg,cat,2\nTRAIN,a.jpg,cat,3\n"
    error = refuse(f"split,image_uri,label,box\n{rows}")
    assert "Rows 2 and 3 name the same image, and further columns differ" in error.message


@pytest.mark.fault(
    68,
    "a label of more than 1,000 characters",
    "rejected",
    code="`bad_label`",
    hint="1,000 characters at most",
)
@pytest.mark.parametrize("characters", [1_001, 1_000_000])
def test_a_label_of_a_megabyte_is_rejected(plan, characters):
    planned = plan(f"{HEADER}TRAIN,a.jpg,{'x' * characters}\nTRAIN,b.jpg,{'y' * 1_000}\n")
    assert planned.reasons == {1: "bad_label"}
    assert "more than 1,000 characters" in planned.rejects[1].detail
    assert len(planned.rejects[1].detail) < 200
    assert planned.manifest.labels == ["y" * 1_000]


@pytest.mark.fault(
    68,
    "an integer label beyond 65,535",
    "rejected",
    code="`bad_value`",
    hint="correct it",
)
def test_a_class_number_has_a_limit(plan):
    schema = {"image_uri": "image", "label": "integer_label"}
    planned = plan("image_uri,label\na.jpg,65535\nb.jpg,65536\nc.jpg,-1\n", schema=schema)
    assert planned.reasons == {2: "bad_value", 3: "bad_value"}
    assert "a whole number from 0 to 65535" in planned.rejects[2].detail
