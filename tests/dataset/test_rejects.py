import json
from datetime import date

import pyarrow.parquet as pq
import pytest

from darkroom.dataset.checksums import sum_bytes
from darkroom.dataset.objects import ObjectCounts
from darkroom.dataset.rejects import (
    Reject,
    RejectsWriter,
    are_too_many,
    format_hint,
    format_row,
    format_target,
    list_rejects,
    read_first_rejects,
    read_rejects,
    write_rejects,
)
from darkroom.dataset.schema import Schema
from darkroom.manifest.writer import write_manifest
from darkroom.options.manifest import ManifestOptions

REJECT = Reject(7, "/d/ä.jpg", "train", "007", "convert", "truncated", "cut", "ä.jpg", {"n": 1})


def write(path, *rejects):
    with RejectsWriter(str(path)) as writer:
        for reject in rejects:
            writer.add(reject)
    return str(path)


def test_many_rejects_are_counted_and_kept(tmp_path):
    many = [REJECT._replace(row=row) for row in range(20_000)]
    path = write(tmp_path / "rejects.parquet", *many)
    assert [reject.row for reject in read_rejects(path)] == list(range(20_000))
    assert pq.ParquetFile(path).metadata.num_row_groups == 3


def test_the_first_rejects_are_those_of_the_first_rows(tmp_path):
    rows = [5, 30, *range(29, 15, -1), 2]
    write(tmp_path / "rejects.parquet", *(REJECT._replace(row=row, uri="a") for row in rows))
    first, *lines = list_rejects(str(tmp_path)).splitlines()
    assert first == "The first:"
    assert lines == [
        *(f"  row {row}: truncated (cut) a" for row in (2, 5, *range(16, 24))),
        "  ...",
    ]
    found = read_first_rejects(str(tmp_path / "rejects.parquet"), 3)
    assert [each.row for each in found] == [2, 5, 16]


def test_a_uri_of_any_length_is_shown_in_a_line(tmp_path):
    write(tmp_path / "rejects.parquet", REJECT._replace(uri="a" * 5_000))
    shown = "a" * 133 + "…" + "a" * 66
    assert list_rejects(str(tmp_path)) == f"The first:\n  row 7: truncated (cut) {shown}"


def test_the_hint_has_a_line_for_each_reason_the_most_frequent_first():
    found = {"empty": 1, "truncated": 2, "new": 3, "missing": 1, "animated": 1}
    assert format_hint(found).splitlines() == [
        "truncated: Copy the file again: its end is missing.",
        "animated: Save one frame as a separate file.",
        "empty: Copy the file again: it has no bytes.",
        "missing: Relative paths start at the folder of the list: put the file there, or correct "
        "the path.",
    ]
    assert format_hint({}) == ""


@pytest.mark.parametrize(
    ("limit", "rejected", "total", "objects", "are_over"),
    [
        # 0.29 * 100 is less than 29, as floating-point numbers are.
        (0.29, 29, 100, None, False),
        (0.29, 30, 100, None, True),
        (0.0, 0, 0, None, False),
        (0.0, 1, 1000, None, True),
        (0.1, 0, 10, ObjectCounts(written=8, rejected=2), True),
        (0.2, 0, 10, ObjectCounts(written=8, rejected=2), False),
    ],
)
def test_more_than_the_share_of_rows_or_objects_are_too_many(
    limit, rejected, total, objects, are_over
):
    assert are_too_many(limit, rejected, total, objects) is are_over


def test_names_that_are_not_utf8_are_escaped(tmp_path):
    path = write(tmp_path / "rejects.parquet", REJECT._replace(uri="/d/\udcff.jpg"))
    (reject,) = read_rejects(path)
    assert reject.uri == "/d/\\udcff.jpg"


def test_parts_are_joined_for_programs_and_for_people(tmp_path):
    parts = [
        write(tmp_path / "1.parquet", REJECT),
        write(tmp_path / "2.parquet"),
        write(tmp_path / "3.parquet", REJECT._replace(label=None, extra={})),
    ]

    rows, sums = write_rejects(str(tmp_path), parts)

    assert rows == 2
    for name in ("rejects.parquet", "rejects.jsonl"):
        assert sums[name] == sum_bytes((tmp_path / name).read_bytes())

    assert len(list(read_rejects(str(tmp_path / "rejects.parquet")))) == 2
    first, second = (tmp_path / "rejects.jsonl").read_text("utf-8").splitlines()
    assert '"image_uri": "/d/ä.jpg"' in first
    assert json.loads(first) == {
        "split": "train",
        "image_uri": "/d/ä.jpg",
        "label": "007",
        "id": "ä.jpg",
        "row": 7,
        "span": 0,
        "stage": "convert",
        "reason": "truncated",
        "detail": "cut",
        "extra": {"n": 1},
    }
    assert {"label", "extra"}.isdisjoint(json.loads(second))


def plan(source, folder, **options):
    manifest = write_manifest(source, str(folder), str(folder), ManifestOptions(**options))
    return manifest, pq.read_table(folder / "manifest.parquet").to_pylist()


def rerun(tmp_path, text, fix, **options):
    """Plans a source, fixes all its rejects, plans those; returns both runs' rows."""
    source = tmp_path / "data" / "m.csv"
    source.parent.mkdir()
    source.write_text(text)
    _, good = plan(source, tmp_path / "first", **options)
    lines = (tmp_path / "first" / "rejects.jsonl").read_text("utf-8").splitlines()
    fixed = [json.loads(line) for line in lines]
    for line in fixed:
        fix(line)
    again = tmp_path / "fixed.jsonl"
    again.write_text("\n".join(map(json.dumps, fixed)), "utf-8")
    manifest, rows = plan(again, tmp_path / "second", **options)
    return good, rows, manifest


def test_fixed_rejects_keep_keys_splits_and_columns(tmp_path):
    text = "image_uri,label,note\n" + "".join(f"{i}.jpg,,n{i}\n" for i in range(40))

    _, rows, manifest = rerun(tmp_path, text, lambda line: line.update(label="cat"))

    fixed = text.replace(",,", ",cat,")
    (tmp_path / "data" / "m.csv").write_text(fixed)
    _, direct = plan(tmp_path / "data" / "m.csv", tmp_path / "direct")
    for row in (*rows, *direct):
        del row["row"]
    assert len(rows) == 40
    assert rows == direct
    assert {row["split"] for row in rows} == {"train", "eval", "test"}
    assert manifest.inputs == {"note": "string"}


def test_fixed_images_keep_their_keys(tmp_path):
    def fix(line):
        line["image_uri"] = line["image_uri"] or "new.jpg"

    text = "split,image_uri,label\nTEST,,cat\nTRAIN,http://h/a.jpg,cat\n"
    _, rows, manifest = rerun(tmp_path, text, fix)
    assert [(row["split"], row["uri"]) for row in rows] == [("test", f"{tmp_path}/new.jpg")]
    assert manifest.rejected == 1


def test_rejects_without_labels_are_a_manifest_without_labels(tmp_path):
    def fix(line):
        line["extra"]["age"] = 7

    schema = Schema.parse({"image_uri": "image", "age": "integer"})
    text = "image_uri,age\na.jpg,seven\n"
    _, rows, manifest = rerun(tmp_path, text, fix, schema=schema)
    assert [(row["id"], row["extra"]) for row in rows] == [("a.jpg", {"age": 7})]
    assert not manifest.has_labels


def test_rejects_keep_cells_that_could_not_be_read(tmp_path):
    def fix(line):
        assert line["extra"] == {"x": "seven", "y": "a"}
        line["extra"]["x"] = 7

    schema = Schema.parse({"x": "integer", "y": "string", "klass": "integer_label"})
    text = "x,y,klass\nseven,a,3\n7,a,3\n"
    good, rows, manifest = rerun(tmp_path, text, fix, schema=schema)
    assert [(row["extra"], row["label"]) for row in rows] == [({"x": 7, "y": "a"}, "3")]
    assert rows[0]["key"] != good[0]["key"]
    assert manifest.labels == ["0", "1", "2", "3"]


@pytest.mark.parametrize("label", ["", "c\ta"])
def test_the_whole_source_may_be_renamed(tmp_path, label):
    schema = Schema.parse({"photo": "image", "klass": "string_label", "part": "split"})
    text = f"part,photo,klass\nTRAIN,a.jpg,{label}\n"
    _, rows, _ = rerun(tmp_path, text, lambda line: line.update(label="cat"), schema=schema)
    assert [(row["id"], row["label"], row["split"]) for row in rows] == [("a.jpg", "cat", "train")]


@pytest.mark.parametrize(
    ("label", "has_objects", "said"),
    [
        ('{"x": 1}', False, {"label": '{"x": 1}'}),
        (None, False, {}),
        ('{"objects": []}', True, {"objects": {"objects": []}}),
        ("no objects", True, {"objects": "no objects"}),
        ("", True, {"objects": ""}),
        (None, True, {"objects": None}),
    ],
)
def test_only_objects_are_in_a_column_of_their_own(label, has_objects, said):
    row = json.loads(format_row(REJECT._replace(label=label), {}, has_objects=has_objects))
    assert {name: row[name] for name in row.keys() & {"label", "objects"}} == said


def test_what_json_does_not_have_is_text():
    assert format_target([{"label": "cat", "when": date(2026, 1, 2)}]) == (
        '[{"label": "cat", "when": "2026-01-02"}]'
    )


def test_lone_surrogates_are_escaped(tmp_path):
    source = tmp_path / "m.jsonl"
    source.write_text('{"image_uri": "a.jpg", "note": "\\ud800"}')
    manifest, _ = plan(source, tmp_path / "out")
    assert manifest.rejected == 1
    line = json.loads((tmp_path / "out" / "rejects.jsonl").read_text("utf-8"))
    assert line["extra"] == {"note": "\ud800"}
