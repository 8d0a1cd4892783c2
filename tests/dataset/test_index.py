"""Counts of classes, from the record index."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from darkroom.dataset.index import IndexRow, IndexWriter, read_index
from darkroom.dataset.index_queries import count_classes
from darkroom.errors import DataError
from darkroom.runtime.class_table import format_missing_classes
from darkroom.storage.parquet import BATCH_ROWS
from darkroom.targets.kind import find_kind


def test_classes_are_counted_by_split_over_all_files_and_row_groups(tmp_path: Path):
    for number, split in enumerate(("eval", "train", "train")):
        path = str(tmp_path / f"index-0000{number}-of-00003.parquet")
        with IndexWriter(path, number, {}, "source", pa.string()) as writer:
            # Each call is a row group, with other labels than the one before.
            for label in ("owl", None, "cat"):
                row = IndexRow("key", "id", 1, "uri", split, 0, label)
                writer.add([row] * (BATCH_ROWS + number))
    counts = count_classes(str(tmp_path), ["owl", "cat", "dog"], find_kind("label").list_names)
    assert list(counts) == ["train", "eval"]
    assert counts["eval"] == {"": BATCH_ROWS, "owl": BATCH_ROWS, "cat": BATCH_ROWS}
    assert counts["train"] == dict.fromkeys(("", "owl", "cat"), 2 * BATCH_ROWS + 3)
    assert [*counts["train"]] == ["", "owl", "cat"]


def test_a_split_whose_images_show_nothing_has_records(tmp_path: Path):
    kind = find_kind("labels")
    path = str(tmp_path / "index-00000-of-00001.parquet")
    with IndexWriter(path, 0, {}, "source", kind.column) as writer:
        for split, labels in (("train", ["cat"]), ("eval", [])):
            writer.add([IndexRow("key", "id", 1, "uri", split, 0, labels)])
    counts = count_classes(str(tmp_path), ["cat"], kind.list_names)
    assert counts == {"train": {"cat": 1}, "eval": {}}
    assert format_missing_classes(counts, ["cat"]) == "No records of cat in eval."


def test_a_folder_without_an_index_has_no_counts(tmp_path: Path):
    assert count_classes(str(tmp_path), ["cat"], find_kind("label").list_names) == {}


@pytest.mark.parametrize("data", [b"", b"PAR1", b"PAR1" + bytes(100) + b"PAR1"])
def test_a_damaged_index_is_named(tmp_path: Path, data: bytes):
    path = tmp_path / "index-00000-of-00001.parquet"
    path.write_bytes(data)
    with pytest.raises(DataError, match=f"{path} is damaged"):
        read_index(str(tmp_path), ["changes"])
    with pytest.raises(DataError, match=f"{path} is damaged"):
        count_classes(str(tmp_path), ["cat"], find_kind("label").list_names)
