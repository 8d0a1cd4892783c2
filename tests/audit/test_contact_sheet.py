from __future__ import annotations

import csv
import io

import numpy as np
import pytest
from PIL import Image

from darkroom.audit.contact_sheet import draw_sheet, format_csv, inspect
from darkroom.cli import main
from darkroom.conversion.convert import convert
from darkroom.errors import DataError, OutputError, UsageError
from darkroom.targets.kind import find_kind
from darkroom.targets.labels.kind import LABELS_KNOWN


def test_the_table_has_the_features_without_the_image(jpeg_set, converted_jpegs, tmp_path):
    found = inspect(converted_jpegs, "eval", 8, tmp_path / "look")
    with open(found.csv, newline="") as file:
        rows = list(csv.DictReader(file))
    expected = {name: label for split, name, label in jpeg_set.rows if split == "VALIDATION"}
    assert {row["image/filename"]: row["image/class/text"] for row in rows} == expected
    assert {row["image/height"] for row in rows} == {"9"}
    assert "image/encoded" not in rows[0]


def test_the_sheet_shows_the_pixels(converted_jpegs, tmp_path):
    found = inspect(converted_jpegs, "train", 10, tmp_path / "look")
    with Image.open(found.sheet) as sheet:
        # Eight columns, two rows, each tile 128 pixels with its caption and margins.
        assert sheet.size == (8 * 136 + 8, 2 * 152 + 8)


def test_the_hint_of_a_damaged_record_repairs_the_dataset(converted_jpegs, jpeg_records, tmp_path):
    for file in (jpeg_records / "Split-train").iterdir():
        data = bytearray(file.read_bytes())
        data[20] ^= 4
        file.write_bytes(data)
    with pytest.raises(DataError, match="record 0 is damaged") as caught:
        inspect(jpeg_records, "train", 10, tmp_path / "look")
    # Without it, a conversion says that the dataset is complete.
    assert "overwrite (--overwrite) into the same folder" in caught.value.hint
    convert(converted_jpegs.parent / "images/images.csv", jpeg_records, overwrite=True)
    inspect(jpeg_records, "train", 10, tmp_path / "look")


def test_a_label_is_centred_below_its_image():
    buffer = io.BytesIO()
    Image.new("RGB", (2, 2)).save(buffer, "PNG")
    record = {"image/encoded": [buffer.getvalue()], "image/class/text": [b"cat"]}
    with Image.open(io.BytesIO(draw_sheet([record], find_kind("label")))) as sheet:
        caption = np.asarray(sheet.convert("L"))[136:152]
    dark = np.flatnonzero((caption < 128).any(axis=0))
    assert abs((dark[0] + dark[-1]) / 2 - (8 + 64)) < 4


def test_a_long_caption_is_wrapped():
    buffer = io.BytesIO()
    Image.new("RGB", (2, 2)).save(buffer, "PNG")
    names = [b"circle", b"square", b"triangle", b"star"]
    known = {LABELS_KNOWN: [1], "image/class/text": names}
    record = {"image/encoded": [buffer.getvalue()], **known}
    with Image.open(io.BytesIO(draw_sheet([record], find_kind("labels")))) as sheet:
        lines = np.asarray(sheet.convert("L"))[136:165]
    assert sheet.height == 8 + 128 + 16 + 13 + 8
    assert (lines[:15] < 128).any()
    assert (lines[16:] < 128).any()


def test_a_small_image_is_enlarged_without_smoothing():
    pixels = np.zeros((2, 2, 3), np.uint8)
    pixels[0, 0] = (250, 0, 0)
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, "PNG")
    record = {"image/encoded": [buffer.getvalue()], "image/class/text": [b"cat"]}
    with Image.open(io.BytesIO(draw_sheet([record], find_kind("label")))) as sheet:
        found = np.asarray(sheet)[8:136, 8:136]
    assert {tuple(color) for color in found[:64, :64].reshape(-1, 3)} == {(250, 0, 0)}
    assert {tuple(color) for color in found[64:].reshape(-1, 3)} == {(0, 0, 0)}


@pytest.mark.parametrize("cell", ["=1+1", "+1", "-1", "@SUM(A1)"])
def test_a_cell_that_a_spreadsheet_would_run_is_quoted(cell):
    text = format_csv([{"name": [cell.encode()], "number": [-1]}], ["name", "number"])
    assert list(csv.reader(io.StringIO(text)))[1] == [f"'{cell}", "-1"]


def test_records_without_images_have_a_table_only(tmp_path):
    (tmp_path / "rows.csv").write_text("split,height\nTRAIN,3\n")
    schema = {"split": "split", "height": "integer"}
    convert(tmp_path / "rows.csv", tmp_path / "out", columns=schema)
    found = inspect(tmp_path / "out", output_dir=tmp_path / "look")
    assert found.sheet is None
    with open(found.csv, newline="") as file:
        assert list(csv.reader(file)) == [["height"], ["3"]]


@pytest.mark.parametrize("n", [0, -1, "x", 1.5])
def test_a_wrong_number_of_records_is_an_error(converted_jpegs, n):
    with pytest.raises(UsageError, match=f"positive whole number, got {n!r}"):
        inspect(converted_jpegs, n=n)


def test_other_records_replace_those_that_were_shown_before(converted_jpegs, tmp_path):
    for split, n in (("train", 3), ("train", 3), ("eval", 2)):
        found = inspect(converted_jpegs, split, n, tmp_path / "look")
    with open(found.csv, newline="") as file:
        assert len(list(csv.DictReader(file))) == 2


@pytest.mark.parametrize("name", ["contact-sheet.png", "records.csv"])
def test_no_file_of_the_user_is_replaced(converted_jpegs, tmp_path, capsys, name):
    mine = tmp_path / "look" / name
    mine.parent.mkdir()
    mine.write_bytes(b"mine")
    assert main(["inspect", str(converted_jpegs), "--output-dir", str(mine.parent)]) == 4
    said = capsys.readouterr().err
    assert f"holds 1 file that darkroom did not write, or that changed since: {name}." in said
    assert "Move it elsewhere, or choose another folder." in said
    assert [path.name for path in mine.parent.iterdir()] == [name]
    assert mine.read_bytes() == b"mine"


def test_a_file_cannot_be_the_folder_of_the_contact_sheet(converted_jpegs, tmp_path):
    (tmp_path / "thesis.txt").write_bytes(b"mine")
    with pytest.raises(OutputError, match=r"thesis\.txt is a file\. Choose a folder\."):
        inspect(converted_jpegs, output_dir=tmp_path / "thesis.txt")
    assert (tmp_path / "thesis.txt").read_bytes() == b"mine"


def test_no_file_of_the_user_is_replaced_through_a_link(converted_jpegs, tmp_path):
    (tmp_path / "mine.csv").write_bytes(b"mine")
    (tmp_path / "look").mkdir()
    (tmp_path / "look/records.csv").symlink_to(tmp_path / "mine.csv")
    with pytest.raises(OutputError, match=r"records\.csv"):
        inspect(converted_jpegs, output_dir=tmp_path / "look")
    assert (tmp_path / "mine.csv").read_bytes() == b"mine"
    assert (tmp_path / "look/records.csv").is_symlink()


@pytest.mark.parametrize("name", ["", "look"])
def test_a_contact_sheet_is_not_put_into_the_dataset(jpeg_records, name):
    before = sorted(jpeg_records.rglob("*"))
    with pytest.raises(OutputError, match="would be in the dataset"):
        inspect(jpeg_records, output_dir=jpeg_records / name)
    assert sorted(jpeg_records.rglob("*")) == before
