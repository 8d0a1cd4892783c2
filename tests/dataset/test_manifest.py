import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from darkroom.dataset.manifest import (
    Manifest,
    names_only_jpegs,
    read_manifest,
    read_manifest_rows,
    read_manifest_tables,
    write_manifest_info,
)
from darkroom.errors import DataError
from darkroom.storage import parquet
from darkroom.storage.parquet import KeptTables

MANIFEST = Manifest(
    rows=10,
    deduplicated=1,
    rejected=2,
    splits={"train": 4, "test": 3},
    labels=["007", "ä b"],
    inputs={"age": "integer"},
    has_images=True,
    has_labels=True,
    seed=3,
    ignored=5,
    fingerprint="ff",
)


def test_the_facts_about_a_manifest_are_read_as_written(tmp_path):
    write_manifest_info(str(tmp_path), MANIFEST)
    assert read_manifest(str(tmp_path)) == MANIFEST
    assert "labels" not in json.loads((tmp_path / "manifest.json").read_text())


def test_splits_follow_each_other():
    assert MANIFEST.num_examples == 7
    assert [MANIFEST.first_row(split) for split in ("train", "eval", "test")] == [0, 4, 4]


def test_a_folder_without_manifest_is_named(tmp_path):
    with pytest.raises(DataError, match=f"There is no manifest in {tmp_path}"):
        read_manifest(str(tmp_path))


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"splits": 1}'])
def test_a_damaged_manifest_is_named(tmp_path, text):
    write_manifest_info(str(tmp_path), MANIFEST)
    (tmp_path / "manifest.json").write_text(text)
    with pytest.raises(DataError, match="There is no manifest in"):
        read_manifest(str(tmp_path))


@pytest.mark.parametrize("data", [b"", b"no", b"PAR1" + bytes(100) + b"PAR1"])
def test_damaged_rows_are_named(tmp_path, data):
    path = tmp_path / "manifest.parquet"
    path.write_bytes(data)
    for read in (names_only_jpegs, lambda folder: list(read_manifest_rows(folder, 0, 1))):
        with pytest.raises(DataError, match=f"{path} is damaged: .") as error:
            read(str(tmp_path))
        assert "ManifestGen" in error.value.hint


def test_a_manifest_of_another_format_is_refused(tmp_path):
    write_manifest_info(str(tmp_path), MANIFEST)
    path = tmp_path / "manifest.json"
    path.write_text(path.read_text().replace('"format_version": 2', '"format_version": 1'))
    with pytest.raises(DataError, match="has format 1, expected 2") as caught:
        read_manifest(str(tmp_path))
    assert "again" in caught.value.hint


@pytest.mark.parametrize(
    ("uris", "expected"),
    [
        (["a.jpg", "b.JPEG", "gs://c/d.jpe", "e.f.jfif"], True),
        (["a.jpg", "b.png"], False),
        (["a.jpg.webp"], False),
        (["a jpg"], False),
        (["a.jpg", "without"], False),
        (["a.jpg"] * 9_000 + ["b.png"], False),
    ],
)
def test_the_endings_of_jpegs_are_known(tmp_path, uris, expected):
    table = pa.table({"key": uris, "uri": uris})
    pq.write_table(table, tmp_path / "manifest.parquet", row_group_size=8_192)
    assert names_only_jpegs(str(tmp_path)) == expected


def test_rows_are_read_as_written_with_their_gaps(tmp_path):
    rows = [
        {"key": "a", "row": 1, "span": 0, "size": 1 << 60, "mtime": None, "label": ["x", "y"]},
        {"key": "ä", "row": 2, "span": 0, "size": None, "mtime": "7", "label": None},
    ]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "manifest.parquet")
    found = read_manifest_rows(str(tmp_path), 0, 2)
    assert [{name: getattr(row, name) for name in rows[0]} for row in found] == rows
    (last,) = read_manifest_rows(str(tmp_path), 1, 5)
    assert (last.key, last.row, type(last.row), last.uri) == ("ä", 2, int, None)


def test_neighbours_read_a_row_group_once(tmp_path, monkeypatch):
    pq.write_table(pa.table({"row": range(50)}), tmp_path / "manifest.parquet", row_group_size=20)
    groups, read = [], pq.ParquetFile.read_row_group
    monkeypatch.setattr(
        pq.ParquetFile,
        "read_row_group",
        lambda file, group: groups.append(group) or read(file, group),
    )
    kept, found = KeptTables(), []
    for first in range(0, 50, 5):
        for table in read_manifest_tables(str(tmp_path), first, 5, kept):
            found += table["row"].to_pylist()
    assert (found, groups) == ([*range(50)], [0, 1, 2])


def test_tables_are_kept_while_they_take_little_memory(monkeypatch):
    table, read = pa.table({"row": range(100)}), []
    monkeypatch.setattr(parquet, "_MAX_KEPT_BYTES", 2 * table.nbytes)
    kept = KeptTables()
    for key in (1, 2, 1, 3, 1, 2):
        assert kept.read(key, lambda key=key: read.append(key) or table) is table
    assert read == [1, 2, 3, 2]
    monkeypatch.setattr(parquet, "_MAX_KEPT_BYTES", 0)
    for key in (2, 2, 1, 1):
        kept.read(key, lambda key=key: read.append(key) or table)
    assert read == [1, 2, 3, 2, 1]
