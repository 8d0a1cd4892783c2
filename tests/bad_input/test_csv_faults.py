"""Bad inputs 1 to 26: CSV and other lists."""

from __future__ import annotations

import codecs
import csv
import json
import os
import tracemalloc

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from darkroom import storage
from darkroom.audit.contact_sheet import format_csv, inspect
from darkroom.cli import main
from darkroom.conversion.convert import convert
from darkroom.errors import DataError, RejectError
from darkroom.manifest.cells import check_form
from darkroom.manifest.opening import open_sources

pytestmark = pytest.mark.slow

HEADER = "split,image_uri,label\n"
ROWS = "TRAIN,a.jpg,cat\nTEST,b.jpg,dog\n"


@pytest.mark.fault(1, "UTF-8 byte order mark", "left out")
@pytest.mark.parametrize("name", ["images.csv", "images.jsonl"])
def test_a_byte_order_mark_is_left_out(plan, name):
    lines = '{"image_uri": "a.jpg", "label": "cat"}\n{"image_uri": "b.jpg", "label": "dog"}\n'
    text = HEADER + ROWS if name.endswith("csv") else lines
    planned = plan(codecs.BOM_UTF8 + text.encode(), name=name)
    assert planned.labels == ["cat", "dog"]


@pytest.mark.fault(2, "CRLF, CR, or both and LF in one file", "each is a line break")
@pytest.mark.parametrize(
    "ends", [("\r\n",) * 3, ("\r",) * 3, ("\r\n", "\n", "\r"), ("\n", "\r", "\r\n")]
)
def test_any_line_break_ends_a_row(plan, ends):
    lines = (HEADER + ROWS).splitlines()
    planned = plan("".join(line + end for line, end in zip(lines, ends, strict=True)))
    assert (planned.labels, planned.reasons) == (["cat", "dog"], {})


@pytest.mark.fault(
    3,
    "quoted commas, quotes and line breaks",
    "cells are taken exactly; a label with line breaks rejects its row (see 62)",
)
def test_quoted_cells_are_exact(plan):
    label = 'say "cat", or not'
    text = f'{HEADER}TRAIN,"a,\n1.jpg","{label.replace(chr(34), chr(34) * 2)}"\n'
    (row,) = plan(text).rows.values()
    assert (row.label, row.id) == (label, "a,\n1.jpg")


@pytest.mark.fault(
    4,
    "a quote that is never closed",
    "refused, with the line in which its record begins",
    code="exit 1",
    hint="check the quotes there",
)
@pytest.mark.parametrize("rest", ["", "TRAIN,c.jpg,cat\n" * 90_000], ids=["short", "long"])
def test_the_record_of_the_open_quote_is_named(refuse, rest):
    error = refuse(f'{HEADER}{ROWS}TRAIN,"c\n\n.jpg","cat\n{rest}')
    assert "record that begins in line 4 " in error.message
    assert "Check the quotes there" in error.hint


@pytest.mark.fault(
    5,
    "no header, or a column missing or misspelt",
    "refused, with the columns found, and a similar name if there is one",
    code="exit 1",
    hint="`--columns` with names that exist",
)
def test_a_missing_column_is_an_error_with_a_suggestion(refuse, plan, tmp_path):
    error = refuse("split,image_url,label\n" + ROWS)
    assert "found ['split', 'image_url', 'label']. Did you mean 'image_url'?" in error.message
    columns = {"split": "split", "label": "string_label", "image_url": "image"}
    assert f"--columns '{json.dumps(columns)}'" in error.hint
    assert plan(tmp_path / "images.csv", schema=columns).labels == ["cat", "dog"]


@pytest.mark.fault(
    5,
    "a label or split column with a typing error",
    "refused, because nothing could be learnt without it",
    code="exit 1",
    hint="`--columns` with names that exist",
)
@pytest.mark.parametrize(("wrong", "right"), [("lable", "label"), ("spilt", "split")])
def test_a_misspelt_column_is_not_lost(refuse, wrong, right):
    error = refuse(HEADER.replace(right, wrong) + ROWS)
    assert f"Did you mean '{wrong}'?" in error.message


@pytest.mark.fault(
    6,
    "the header again in the middle, as in joined files",
    "rejected",
    code="`repeated_header`",
    hint="remove the line",
)
def test_a_repeated_header_is_rejected(plan):
    planned = plan(HEADER + ROWS + HEADER + "TRAIN,c.jpg,cat\n")
    assert planned.reasons == {3: "repeated_header"}
    assert planned.rejects[3].detail == "line 4 repeats the header"
    assert planned.rows[4].id == "c.jpg"


@pytest.mark.fault(7, "a column name twice", "refused", code="exit 1", hint="rename one of them")
@pytest.mark.parametrize("header", ["image_uri,label,label", "image_uri,label, label "])
def test_a_duplicate_column_is_an_error(refuse, header):
    error = refuse(f"{header}\na.jpg,cat,dog\n")
    assert "Columns occur twice: ['label']" in error.message


@pytest.mark.fault(8, "columns that darkroom does not know", "kept, as features under their names")
def test_further_columns_are_kept_with_their_types(plan):
    text = "image_uri,label,age,note\na.jpg,cat,7,\nb.jpg,cat,x,y\n"
    assert plan(text).rows[2].extra == {"age": "x", "note": "y"}
    schema = {"image_uri": "image", "label": "string_label", "age": "integer"}
    planned = plan(text, schema=schema)
    assert planned.rows[1].extra == {"age": 7}
    assert planned.reasons == {2: "bad_value"}
    assert "column 'age': expected integer, got 'x'" in planned.rejects[2].detail


@pytest.mark.fault(9, "columns in another order, letter case, or padded", "recognised")
def test_columns_may_have_any_order_and_case(plan):
    planned = plan(" Label , IMAGE_URI,Split\ncat,a.jpg,TRAIN\ndog,b.jpg,TEST\n")
    assert planned.labels == ["cat", "dog"]
    assert planned.rows[2].split == "test"


@pytest.mark.fault(
    9,
    "two columns whose names differ in letter case only",
    "refused",
    code="exit 1",
    hint="rename one, or `--columns`",
)
def test_names_that_differ_in_case_only_are_ambiguous(refuse):
    error = refuse("image_uri,label,Label\na.jpg,cat,dog\n")
    assert "'label' and 'Label' have the same name" in error.message


@pytest.mark.fault(
    10,
    "an unknown split (`tran`)",
    "refused, never used as train",
    code="exit 1",
    hint="a similar name if there is one, and all known names",
)
def test_an_unknown_split_is_an_error_with_a_suggestion(refuse):
    error = refuse(HEADER + ROWS + "tran,c.jpg,cat\n")
    assert "row 3: unknown split 'tran'. Did you mean TRAIN?" in error.message
    assert "Known: TRAIN, TRAINING" in error.hint


@pytest.mark.fault(
    11, "an empty split", "assigned by the hash of the key; stays when rows are added"
)
def test_empty_splits_are_assigned_by_hash(plan):
    lines = [f",{i}.jpg,cat\n" for i in range(300)]
    before = plan(HEADER + "".join(lines[:200])).rows.values()
    after = plan(HEADER + "".join(lines[::-1])).rows.values()
    found = {row.id: row.split for row in after}
    assert {row.id: row.split for row in before}.items() <= found.items()
    assert set(found.values()) == {"train", "eval", "test"}


@pytest.mark.fault(
    12,
    "an empty label, or only white space",
    "rejected",
    code="`empty_label`",
    hint="give it a label",
)
def test_an_empty_label_rejects_its_row(plan):
    planned = plan(HEADER + "TRAIN,a.jpg,\nTRAIN,b.jpg,  \nTRAIN,c.jpg,\u00a0\nTRAIN,d.jpg,x\n")
    assert planned.reasons == dict.fromkeys((1, 2, 3), "empty_label")
    assert planned.rejects[1].uri.endswith("/a.jpg")


@pytest.mark.fault(13, "labels like `NA`, `null`, `007`, `1e3`, `True`", "are text")
def test_a_label_is_text(plan):
    labels = ["NA", "null", "007", "1e3", "True", "None", "nan", "-0"]
    text = "".join(f"TRAIN,{i}.jpg,{label}\n" for i, label in enumerate(labels))
    assert plan(HEADER + text).labels == labels


@pytest.mark.fault(14, "the same row again", "dropped, and counted as deduplicated")
def test_a_duplicate_row_is_dropped(plan):
    planned = plan(HEADER + ROWS + "TRAIN,./x/../a.jpg,cat\n" + ROWS)
    assert planned.manifest.deduplicated == 3
    assert (sorted(planned.rows), planned.reasons) == ([1, 2], {})


@pytest.mark.fault(
    15,
    "one image with two labels",
    "all its rows are rejected: the last one does not win",
    code="`conflict`",
    hint="keep one row",
)
def test_two_labels_of_an_image_reject_both_rows(plan):
    planned = plan(HEADER + ROWS + "TRAIN,a.jpg,dog\n")
    assert planned.reasons == {1: "conflict", 3: "conflict"}
    assert "row 3 gives the same image another split or label" in planned.rejects[1].detail


@pytest.mark.fault(16, "a NUL byte", "rejected", code="`nul_byte`", hint="remove it")
@pytest.mark.parametrize("name", ["images.csv", "images.jsonl"])
def test_a_nul_byte_rejects_its_row(plan, name):
    text = HEADER + "TRAIN,a.jpg,c\0at\n" + "TEST,b.jpg,dog\n"
    if name.endswith("jsonl"):
        rows = ({"image_uri": "a.jpg", "label": "c\0at"}, {"image_uri": "b.jpg", "label": "dog"})
        text = "\n".join(map(json.dumps, rows))
    planned = plan(text, name=name)
    assert planned.reasons == {1: "nul_byte"}
    assert planned.labels == ["dog"]


@pytest.mark.fault(
    17,
    "a line of 10 MB",
    "refused by the limit of 1,048,576 characters, in memory that does not grow with it",
    code="exit 1",
    hint="check the line breaks",
)
@pytest.mark.parametrize("name", ["images.csv", "images.jsonl"])
def test_a_huge_line_is_an_error_in_constant_memory(tmp_path, name):
    path = tmp_path / name
    path.write_text(f"{HEADER}TRAIN,a.jpg,{'x' * 10_000_000}\n")
    tracemalloc.start()
    try:
        with pytest.raises(DataError, match=r"line 2: longer than 1,048,576 characters"):
            open_sources(path)
        assert tracemalloc.get_traced_memory()[1] < 9_000_000
    finally:
        tracemalloc.stop()


@pytest.mark.fault(17, "a cell of 200 kB", "taken as it is")
def test_a_long_cell_is_a_cell(plan):
    text = "x" * 200_000
    assert plan(f"image_uri,label,note\na.jpg,cat,{text}\n").rows[1].extra == {"note": text}


@pytest.mark.fault(
    18,
    "text that is not UTF-8",
    "refused: line, byte, and the text around it, also as windows-1252",
    code="exit 1",
    hint="`--source-encoding windows-1252`",
)
@pytest.mark.parametrize("name", ["images.csv", "images.jsonl"])
def test_another_encoding_is_shown_and_can_be_set(refuse, plan, tmp_path, name):
    text = HEADER + "TRAIN,a.jpg,Brötchen\nTRAIN,b.jpg,Käse\n"
    if name.endswith("jsonl"):
        rows = ({"image_uri": "a.jpg", "label": "Brötchen"}, {"image_uri": "b", "label": "Käse"})
        text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    content = text.encode("windows-1252")
    error = refuse(content, name=name)
    assert f"byte {content.index(0xF6)}: " in error.message
    assert "Br\\xf6tchen" in error.message
    assert "--source-encoding windows-1252" in error.hint
    planned = plan(tmp_path / name, source_encoding="windows-1252")
    assert planned.labels == ["Brötchen", "Käse"]


@pytest.mark.fault(18, "the same with `--source-encoding windows-1252`", "read in that encoding")
def test_the_command_line_takes_an_encoding(jpeg_set, tmp_path, capsys):
    jpeg_set.rows = [(split, name, "Käse") for split, name, _ in jpeg_set.rows]
    path = jpeg_set.csv
    path.write_bytes(path.read_text().encode("windows-1252"))
    command = ["convert", str(path), "--output-dir", str(tmp_path / "out")]
    assert main(command) == 1
    assert "--source-encoding windows-1252" in capsys.readouterr().err
    assert main([*command, "--source-encoding", "windows-1252"]) == 0
    assert (tmp_path / "out" / "labels.txt").read_text(encoding="utf-8") == "Käse\n"


@pytest.mark.fault(
    18, "an encoding that does not exist", "refused", code="exit 2", hint="a name that does"
)
def test_an_unknown_encoding_is_an_error(refuse):
    assert (
        "no text encoding 'utf-9'"
        in refuse(HEADER + ROWS, exit_code=2, source_encoding="utf-9").message
    )


@pytest.mark.fault(
    19,
    "UTF-16, as some spreadsheets export it, or UTF-32",
    "refused",
    code="exit 1",
    hint="`--source-encoding utf-16`, or the `iconv` command that converts it",
)
@pytest.mark.parametrize("order", ["", "-le", "-be"])
@pytest.mark.parametrize("kind", ["utf-16", "utf-32"])
def test_utf16_is_known_and_can_be_named(refuse, plan, tmp_path, kind, order):
    encoding = kind + order
    error = refuse((HEADER + ROWS).encode(encoding))
    assert f"is {kind.upper()}." in error.message
    assert f"--source-encoding {encoding}," in error.hint
    assert f"iconv -f {kind.upper()}{order[1:].upper()} -t UTF-8" in error.hint
    assert plan(tmp_path / "images.csv", source_encoding=encoding).labels == ["cat", "dog"]


@pytest.mark.fault(
    20,
    "a row with too few or too many cells",
    "rejected",
    code="`ragged_row`",
    hint="as many cells as the header",
)
def test_a_ragged_row_is_rejected(plan):
    planned = plan(HEADER + "TRAIN,a.jpg\n" + ROWS.replace("a.", "c.") + "TRAIN,d.jpg,cat,x,\n")
    assert planned.reasons == {1: "ragged_row", 4: "ragged_row"}
    assert planned.rejects[4].detail == "line 5 has 5 cells, the header 3"
    assert planned.rejects[4].uri.endswith("/d.jpg")


@pytest.mark.fault(
    21, "no bytes, or a header and no row", "refused", code="exit 1", hint="one row for each image"
)
@pytest.mark.parametrize(
    ("content", "said"),
    [("", "is empty"), ("\n\r\n", "is empty"), ("\ufeff", "is empty"), (HEADER, "has no rows")],
)
def test_a_list_without_rows_is_an_error(refuse, content, said):
    assert f"images.csv {said}" in refuse(content).message


@pytest.mark.fault(
    22,
    "a split folder without an image",
    "refused",
    code="exit 1",
    hint="put images into it, or delete it",
)
def test_an_empty_split_folder_is_an_error(refuse, tmp_path):
    for split in ("train", "val"):
        (tmp_path / "data" / split / "cat").mkdir(parents=True)
    (tmp_path / "data" / "train" / "cat" / "a.jpg").touch()
    error = refuse(tmp_path / "data")
    assert "data/val, which has the name of a split" in error.message


@pytest.mark.fault(
    23,
    "Windows paths: `C:\\x\\a.jpg`, backslashes",
    "rejected, unless a file with exactly that name exists",
    code="`windows_path`",
    hint="`/`, relative to the folder of the list",
)
def test_windows_paths_are_rejected(plan, tmp_path):
    (tmp_path / "here\\b.jpg").touch()
    # After a row of the same label, for which there is a short cut.
    paths = [
        "good.jpg",
        "C:\\x\\a.jpg",
        "x\\a.jpg",
        "D:/x/a.jpg",
        "\\\\host\\a.jpg",
        "here\\b.jpg",
        "a:b.jpg",
    ]
    planned = plan(HEADER + "".join(f"TRAIN,{path},cat\n" for path in paths))
    assert planned.reasons == dict.fromkeys(range(2, 6), "windows_path")
    assert [planned.rows[row].id for row in (1, 6, 7)] == [paths[0], *paths[5:]]


def test_in_a_store_a_backslash_is_a_character(monkeypatch):
    monkeypatch.setattr(storage, "exists", lambda path: pytest.fail("it was looked up"))
    check_form("x\\a.jpg", "gs://bucket/x\\a.jpg")
    with pytest.raises(RejectError, match="a Windows path"):
        check_form("C:\\a.jpg", "gs://bucket/C:\\a.jpg")


@pytest.mark.fault(
    24,
    "cells that a spreadsheet would run: `=`, `+`, `-`, `@`, tab",
    "stored as they are; in the CSV that darkroom writes they begin with `'`",
)
def test_formulas_are_data_here_and_text_in_a_spreadsheet(jpeg_set, tmp_path):
    label = '=HYPERLINK("x")'
    jpeg_set.rows = [(split, name, label) for split, name, _ in jpeg_set.rows]
    result = convert(jpeg_set.csv, tmp_path / "out")
    assert result.labels == (label,)
    with open(inspect(tmp_path / "out", output_dir=tmp_path / "look").csv, newline="") as file:
        rows = list(csv.DictReader(file))
    assert {row["image/class/text"] for row in rows} == {f"'{label}"}


@pytest.mark.fault(24, "the same in a feature of text", "the same")
@pytest.mark.parametrize("start", ["=", "+", "-", "@", "\t", "\r"])
def test_no_cell_of_a_report_is_a_formula(start):
    text = format_csv([{"note": [f"{start}1".encode()]}], ["note"])
    assert next(csv.DictReader(text.splitlines(keepends=True)))["note"] == f"'{start}1"


@pytest.mark.fault(
    25,
    "`;`, tab or `|` between the cells",
    "refused, with the delimiter that was found",
    code="exit 1",
    hint="save it with commas",
)
@pytest.mark.parametrize("delimiter", [";", "\t", "|"])
def test_another_delimiter_is_named(refuse, delimiter):
    error = refuse((HEADER + ROWS).replace(",", delimiter))
    assert f"separated by {delimiter!r}" in error.message


@pytest.mark.fault(
    26,
    "a list that changes while it is read",
    "refused",
    code="exit 1",
    hint="wait until it is complete",
)
@pytest.mark.parametrize("name", ["images.csv", "images.jsonl", "images.parquet"])
def test_a_list_that_changes_while_it_is_read_is_refused(tmp_path, name):
    path = tmp_path / name
    if name.endswith("parquet"):
        pq.write_table(pa.table({"image_uri": ["a.jpg", "b.jpg"]}), path)
    else:
        rows = range(2_000)  # lines are read by blocks
        lines = (f'{{"image_uri": "{i}.jpg"}}' if "json" in name else f"{i}.jpg" for i in rows)
        path.write_text("image_uri\n" * name.endswith("csv") + "\n".join(lines) + "\n")
    (source,) = open_sources(path)
    rows = source.rows()
    next(rows)
    info = storage.stat_file(str(path))
    os.utime(path, ns=(0, int(info.version) + 1))
    with pytest.raises(DataError, match=rf"{name} was changed while it was read") as caught:
        list(rows)
    assert "start again" in caught.value.hint
