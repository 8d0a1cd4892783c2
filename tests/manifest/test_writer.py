import errno
import json
import random
import shutil

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from darkroom import storage
from darkroom.dataset.keys import make_key, make_order_hash
from darkroom.dataset.manifest import (
    MAX_ROW_GROUP_ROWS,
    read_manifest,
    read_manifest_rows,
)
from darkroom.dataset.rejects import read_rejects
from darkroom.dataset.schema import Schema
from darkroom.dataset.splits import SPLITS, SplitRatios
from darkroom.errors import DataError, StorageError
from darkroom.manifest.fingerprint import fingerprint_source
from darkroom.manifest.writer import write_manifest
from darkroom.options.manifest import ManifestOptions
from darkroom.runtime import progress

HEADER = "split,image_uri,label\n"


class Planned:
    """What `write_manifest` wrote, read again."""

    def __init__(self, folder, manifest):
        self.folder, self.manifest = folder, manifest
        assert read_manifest(str(folder)) == manifest
        self.rows = pq.read_table(folder / "manifest.parquet").to_pylist()
        self.rejects = list(read_rejects(str(folder / "rejects.parquet")))
        assert len(self.rows) == manifest.num_examples
        assert len(self.rejects) == manifest.rejected
        assert manifest.rows == len(self.rows) + len(self.rejects) + manifest.deduplicated

    def get(self, *names):
        return [tuple(row[name] for name in names) for row in self.rows]

    def reasons(self):
        return {reject.row: reject.reason for reject in self.rejects}


def plan(root, source, schema=None, **options):
    """Writes the manifest of a path, or of the text of a CSV."""
    if isinstance(source, str):
        (root / "m.csv").write_text(source)
        source = root / "m.csv"
    schema = None if schema is None else Schema.parse(schema)
    options = ManifestOptions(schema=schema, **options)
    return Planned(root / "out", write_manifest(source, f"{root}/out", f"{root}/out", options))


def test_rows_are_ordered_by_split_and_hash(tmp_path):
    names = ["TRAIN", "TEST", "VALIDATION"]
    text = HEADER + "".join(f"{names[i % 3]},{i}.jpg,l{i % 2}\n" for i in range(90))

    planned = plan(tmp_path, text, seed=7)

    expected = [
        (split, f"{i}.jpg")
        for place, split in ((0, "train"), (2, "eval"), (1, "test"))
        for i in sorted(range(place, 90, 3), key=lambda i: make_order_hash(7)(make_key(f"{i}.jpg")))
    ]
    assert planned.get("split", "id") == expected
    assert planned.get("id") != sorted(planned.get("id"))
    assert {row["label_id"] for row in planned.rows if row["label"] == "l1"} == {1}
    assert planned.manifest.labels == ["l0", "l1"]
    assert planned.manifest.splits == dict.fromkeys(SPLITS, 30)
    assert [planned.manifest.first_row(split) for split in SPLITS] == [0, 30, 60]


def test_rows_sorted_in_parts_are_sorted(tmp_path, monkeypatch):
    text = HEADER + "".join(f"{'TRAIN' if i % 3 else 'TEST'},{i}.jpg,cat\n" for i in range(90))
    whole = plan(tmp_path, text)
    monkeypatch.setattr("darkroom.manifest.writer._SORTED_ROWS", 7)
    assert plan(tmp_path, text).rows == whole.rows


def test_nothing_depends_on_the_order_of_the_source(tmp_path):
    rows = [
        f"{s},{i}.jpg,{x},{i}" for i, (s, x) in enumerate(zip("TVE" * 30, "abc" * 30, strict=True))
    ]
    rows = [row.replace("T,", "TRAIN,").replace("V,", "TEST,").replace("E,", ",") for row in rows]
    # The same image with another number, and an image in conflict.
    rows += ["TRAIN,0.jpg,a,7", "TRAIN,0.jpg,a,1000", ",2.jpg,other,1", "TEST,x.jpg,,7"]
    results = []
    for seed in range(3):
        random.Random(seed).shuffle(rows)
        root = tmp_path / str(seed)
        root.mkdir()
        planned = plan(root, "split,image_uri,label,n\n" + "\n".join(rows), merge_rows="first")
        kept = planned.get("key", "id", "split", "label", "label_id", "extra")
        refused = sorted((r.id, r.split, r.label, r.reason) for r in planned.rejects)
        results.append((kept, refused, planned.manifest.deduplicated))
    assert results[0] == results[1] == results[2]
    assert results[0][2] == 2
    assert [reason for *_, reason in results[0][1]] == ["conflict", "conflict", "empty_label"]


def test_a_moved_folder_gives_the_same_manifest(tmp_path):
    folder = tmp_path / "here"
    for label in ("cat", "dog"):
        (folder / label).mkdir(parents=True)
        for i in range(10):
            (folder / label / f"{i}.jpg").write_bytes(b"x" * i)
    first = plan(tmp_path, folder)
    shutil.copytree(folder, tmp_path / "there")
    second = plan(tmp_path, tmp_path / "there")
    names = ("key", "id", "split", "label", "size")
    assert first.get(*names) == second.get(*names)
    assert first.get("uri") != second.get("uri")
    assert sum(first.get("size"), ()) == sum(second.get("size"), ())


@pytest.mark.parametrize("ratios", [(0.8, 0.1, 0.1), (0.5, 0.2, 0.3)])
def test_rows_without_split_are_spread_and_others_are_not(tmp_path, ratios):
    text = HEADER + "".join(f"{'UNASSIGNED' * (i % 2)},{i}.jpg,cat\n" for i in range(3000))
    text += "".join(f"test,t{i}.jpg,cat\n" for i in range(100))
    splits = plan(tmp_path, text, split_ratios=SplitRatios(*ratios)).manifest.splits
    shares = [(splits[split] - 100 * (split == "test")) / 3000 for split in SPLITS]
    assert shares == pytest.approx(ratios, abs=0.03)


@settings(max_examples=15)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["TRAIN", "TEST", ""]),
            st.sampled_from(["", "a.jpg", "b.jpg", "./a.jpg", "c.jpg", "http://h/a.jpg"]),
            st.sampled_from(["", "cat", "dog"]),
            st.sampled_from(["", "1", "2"]),
        ),
        min_size=1,
        max_size=12,
    )
)
def test_every_row_is_kept_rejected_or_dropped(tmp_path_factory, rows):
    root = tmp_path_factory.mktemp("count")
    text = "split,image_uri,label,number\n" + "".join(",".join(row) + "\n" for row in rows)
    schema = {"split": "split", "image_uri": "image", "label": "string_label", "number": "id"}
    planned = plan(root, text, schema=schema)  # adds up the rows
    assert planned.manifest.rows == len(rows)
    assert len({row["key"] for row in planned.rows}) == len(planned.rows)
    assert len({row["uri"] for row in planned.rows}) == len(planned.rows)


def test_the_same_row_twice_is_dropped(tmp_path):
    planned = plan(tmp_path, HEADER + "TRAIN,a.jpg,cat\nTRAIN,./a.jpg,cat\ntrain,a.jpg, cat\n")
    assert planned.get("id", "row") == [("a.jpg", 1)]
    assert (planned.manifest.deduplicated, planned.manifest.rejected) == (2, 0)


@pytest.mark.parametrize(
    "others", [["TRAIN,a.jpg,dog"], ["TEST,a.jpg,cat"], [",a.jpg,cat"], ["TRAIN,a.jpg,dog"] * 2]
)
def test_all_rows_of_an_image_with_two_labels_or_splits_are_rejected(tmp_path, others):
    rows = ["TRAIN,a.jpg,cat", "TRAIN,b.jpg,cat", *others]
    planned = plan(tmp_path, HEADER + "\n".join(rows))
    assert planned.get("id") == [("b.jpg",)]
    assert planned.reasons() == dict.fromkeys([1, *range(3, len(rows) + 1)], "conflict")
    first, *_, last = planned.rejects
    assert first.detail == f"row {len(rows)} gives the same image another split or label"
    assert last.detail == "row 1 gives the same image another split or label"
    assert planned.manifest.labels == ["cat"]


def test_rows_in_conflict_keep_their_span(tmp_path):
    text = "image_uri,label,day\na.jpg,cat,5\na.jpg,dog,6\nb.jpg,cat,6\n"
    planned = plan(tmp_path, text, span_column="day")
    assert [(reject.row, reject.span) for reject in planned.rejects] == [(1, 5), (2, 6)]


IDS = {"image_uri": "image", "label": "string_label", "number": "id"}


def test_an_id_of_two_images_is_a_conflict(tmp_path):
    text = "image_uri,label,number\na.jpg,cat,7\nb.jpg,cat,7\nc.jpg,cat,8\n"
    planned = plan(tmp_path, text, schema=IDS)
    assert planned.get("id", "key") == [("8", make_key("8"))]
    assert [r.detail for r in planned.rejects] == ["another row has the id '7'"] * 2
    assert [r.id for r in planned.rejects] == ["7", "7"]


def test_an_image_with_two_ids_is_written_once(tmp_path):
    text = "image_uri,label,number\na.jpg,cat,7\na.jpg,cat,8\na.jpg,cat,9\nb.jpg,cat,9\n"
    planned = plan(tmp_path, text, schema=IDS)
    assert len(planned.rows) == 1
    assert planned.manifest.deduplicated == 1
    assert planned.reasons() == {3: "conflict", 4: "conflict"}


def exclude(root, text, name="list.txt"):
    (root / name).write_text(text)
    return str(root / name)


def test_excluded_images_are_left_out_and_counted(tmp_path):
    text = HEADER + "".join(f"TRAIN,{name}.jpg,l{name}\n" for name in "abcdef")
    names = [make_key("a.jpg"), f"{tmp_path}/b.jpg", "c.jpg", "unknown.jpg", "d.jpg ", "./e.jpg"]
    planned = plan(tmp_path, text, exclude=exclude(tmp_path, "\n".join(names)))
    assert sorted(planned.get("id")) == [("e.jpg",), ("f.jpg",)]
    assert planned.manifest.labels == ["le", "lf"]
    assert (planned.manifest.excluded, planned.manifest.deduplicated) == (4, 4)


def test_of_the_names_of_an_image_in_a_table_one_is_enough(tmp_path, monkeypatch):
    said = []
    monkeypatch.setattr(progress, "note", said.append)
    text = HEADER + "".join(f"TRAIN,{name}.jpg,l{name}\n" for name in "abc")
    path = f"{tmp_path}/list.parquet"
    names = {"key": [make_key("a.jpg"), make_key("x.jpg")], "uri": ["/moved/a.jpg", "/x.jpg"]}
    pq.write_table(pa.table(names), path)
    assert sorted(plan(tmp_path, text, exclude=path).get("id")) == [("b.jpg",), ("c.jpg",)]
    assert said[0].startswith(f"Warning: 1 name in {path} not found in the source, as '/x.jpg'.")


def test_a_list_of_all_images_is_named(tmp_path):
    text = HEADER + "TRAIN,a.jpg,l\nTRAIN,b.jpg,l\nTRAIN,,l\n"
    with pytest.raises(DataError, match=r"All 2 rows that can be used .* by [^ ]*list.txt, so"):
        plan(tmp_path, text, exclude=exclude(tmp_path, "a.jpg\nb.jpg\n"))


def test_an_excluded_row_conflicts_with_no_other(tmp_path):
    text = "image_uri,label,number\na.jpg,cat,7\na.jpg,dog,8\nb.jpg,cat,8\n,cat,9\n"
    planned = plan(tmp_path, text, schema=IDS, exclude=exclude(tmp_path, "8\n9\n"))
    assert planned.get("id", "uri", "label") == [("7", f"{tmp_path}/a.jpg", "cat")]
    assert planned.reasons() == {4: "no_image"}
    assert planned.manifest.excluded == 2


def test_columns_keep_their_types(tmp_path):
    schema = {"image_uri": "image", "x": "integer", "y": "float", "z": "string"}
    planned = plan(tmp_path, "image_uri,x,y,z\na.jpg,7,1.5,007\nb.jpg,,,\n", schema=schema)
    assert {row["id"]: row["extra"] for row in planned.rows} == {
        "a.jpg": {"x": 7, "y": 1.5, "z": "007"},
        "b.jpg": {"x": None, "y": None, "z": None},
    }
    assert planned.manifest.inputs == {"x": "integer", "y": "float", "z": "string"}
    assert (planned.manifest.has_images, planned.manifest.has_labels) == (True, False)
    assert planned.manifest.labels == []


def test_rows_need_no_image(tmp_path):
    schema = {"x": "integer", "label": "string_label"}
    planned = plan(tmp_path, "x,label\n1,a\n1,a\n2,b\n1,a\n", schema=schema)
    assert sorted((row["extra"]["x"], row["label"], row["uri"]) for row in planned.rows) == [
        (1, "a", ""),
        (1, "a", ""),
        (1, "a", ""),
        (2, "b", ""),
    ]
    assert len({row["key"] for row in planned.rows}) == 4
    assert not planned.manifest.has_images


def test_integer_labels_are_their_own_numbers(tmp_path):
    schema = {"image_uri": "image", "label": "integer_label"}
    planned = plan(tmp_path, "image_uri,label\na.jpg,3\nb.jpg,007\nc.jpg,-1\n", schema=schema)
    assert sorted(planned.get("label", "label_id")) == [("3", 3), ("7", 7)]
    assert planned.manifest.labels == [str(i) for i in range(8)]
    assert planned.reasons() == {3: "bad_value"}


def test_a_given_label_map_numbers_the_labels(tmp_path):
    text = HEADER + ",a.jpg,cat\n,b.jpg,dog\n,c.jpg,cow\n"
    planned = plan(tmp_path, text, labels=("dog", "unseen", "cat"))
    assert sorted(planned.get("label", "label_id")) == [("cat", 2), ("dog", 0)]
    assert planned.manifest.labels == ["dog", "unseen", "cat"]
    assert planned.reasons() == {3: "unknown_label"}


def test_several_files_are_one_manifest(tmp_path):
    (tmp_path / "1.csv").write_text(HEADER + "TRAIN,a.jpg,cat\nTEST,b.jpg,dog\n")
    (tmp_path / "2.csv").write_text("label,image_uri\ncow,c.jpg\ncat,a.jpg\n")
    planned = plan(tmp_path, tmp_path / "?.csv")
    assert planned.get("id") == [("c.jpg",)] or planned.get("id")[1:] == [("b.jpg",)]
    assert planned.reasons() == {1: "conflict", 4: "conflict"}


def test_a_folder_counts_what_it_ignores(tmp_path):
    (tmp_path / "in" / "cat").mkdir(parents=True)
    for name in ("cat/a.jpg", "cat/notes.txt", "README", "b.jpg"):
        (tmp_path / "in" / name).touch()
    planned = plan(tmp_path, tmp_path / "in")
    assert planned.get("id", "label") == [("cat/a.jpg", "cat")]
    assert planned.reasons() == {1: "outside_layout"} or planned.reasons() == {2: "outside_layout"}
    assert planned.manifest.ignored == 2


def test_names_that_are_not_utf8_are_rejected(tmp_path):
    (tmp_path / "in" / "cat").mkdir(parents=True)
    (tmp_path / "in" / "cat" / "a.jpg").touch()
    (tmp_path / "in" / "cat" / "\udcff.jpg").touch()
    planned = plan(tmp_path, tmp_path / "in")
    assert planned.get("id") == [("cat/a.jpg",)]
    (reject,) = planned.rejects
    assert reject.reason == "not_unicode"
    assert reject.uri.endswith("/cat/\\udcff.jpg")


def test_row_groups_are_small_enough_to_be_a_shard_s(tmp_path):
    text = "image_uri\n" + "".join(f"{i}.jpg\n" for i in range(20_000))
    planned = plan(tmp_path, text, split_ratios=SplitRatios(1, 0, 0))
    metadata = pq.ParquetFile(planned.folder / "manifest.parquet").metadata
    sizes = [metadata.row_group(i).num_rows for i in range(metadata.num_row_groups)]
    assert max(sizes) <= MAX_ROW_GROUP_ROWS
    assert len(sizes) <= 5
    part = read_manifest_rows(str(planned.folder), 8_000, 9_000)
    assert [row.key for row in part] == [row["key"] for row in planned.rows[8_000:17_000]]


def test_the_sizes_of_remote_images_come_from_listings_and_look_ups(tmp_path, monkeypatch):
    asked = []

    def stat_file(uri):
        asked.append(uri)
        if uri.endswith("missing.jpg"):
            raise FileNotFoundError
        return storage.FileInfo(7, "1")

    def list_states(folder, first):
        assert folder == "gs://b/many"
        yield {f"{n:03d}.jpg": storage.FileInfo(1_000 + n, "2") for n in range(500)}

    monkeypatch.setattr(storage, "stat_file", stat_file)
    monkeypatch.setattr(storage, "list_remote_states", list_states)
    text = HEADER + "".join(f"TRAIN,gs://b/many/{n:03d}.jpg,cat\n" for n in range(500))
    planned = plan(tmp_path, text + "TEST,gs://b/few/a.jpg,cat\nTEST,gs://b/few/missing.jpg,cat\n")
    sizes = {row["uri"]: row["size"] for row in planned.rows}
    assert sizes["gs://b/many/017.jpg"] == 1_017
    assert (sizes["gs://b/few/a.jpg"], sizes["gs://b/few/missing.jpg"]) == (7, None)
    assert sorted(filter(storage.is_remote, asked)) == [
        "gs://b/few/a.jpg",
        "gs://b/few/missing.jpg",
    ]


def test_the_manifest_says_the_same_to_a_person(tmp_path):
    planned = plan(tmp_path, HEADER + "TRAIN,a.jpg,cat\nTRAIN,a.jpg,cat\nTEST,b.jpg,\n")
    info = json.loads((planned.folder / "manifest.json").read_text())
    assert {name: info[name] for name in ("rows", "deduplicated", "rejected", "splits")} == {
        "rows": 3,
        "deduplicated": 1,
        "rejected": 1,
        "splits": {"train": 1},
    }
    assert (planned.folder / "labels.txt").read_text() == "cat\n"


def test_a_source_with_rejected_rows_only_has_a_manifest(tmp_path):
    planned = plan(tmp_path, HEADER + "TRAIN,a.jpg,\n")
    assert planned.rows == []
    assert planned.manifest.splits == {}


def test_frames_files_and_lines_give_the_same_rows(tmp_path):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(
        {
            "split": ["TRAIN", "TEST", None],
            "image_uri": [f"{tmp_path}/{name}.jpg" for name in "abc"],
            "label": ["007", "NA", "cat"],
            "age": pd.Series([7, None, 9], dtype="Int64"),
        }
    )
    frame.to_parquet(tmp_path / "m.parquet", index=False)
    frame.to_csv(tmp_path / "m.csv")
    lines = frame.to_json(orient="records", lines=True)
    (tmp_path / "m.jsonl").write_text(lines)
    schema = {"split": "split", "image_uri": "image", "label": "string_label", "age": "integer"}

    files = [
        plan(tmp_path, tmp_path / f"m.{end}", schema=schema) for end in ("parquet", "csv", "jsonl")
    ]
    from_frame = plan(tmp_path, frame, schema=schema)

    names = ("key", "id", "uri", "split", "label", "label_id", "row", "extra")
    assert len(files[0].rows) == 3
    assert files[0].get(*names) == files[1].get(*names) == files[2].get(*names)
    # A frame has no folder, so its images are known by their whole paths.
    assert sorted(from_frame.get("id")) == [(f"{tmp_path}/{name}.jpg",) for name in "abc"]
    assert sorted(from_frame.get("label", "extra"), key=str) == sorted(
        files[0].get("label", "extra"), key=str
    )


def test_the_fingerprint_of_a_manifest_has_the_versions_of_remote_images(tmp_path, monkeypatch):
    states = {"gs://bucket/a.jpg": (100, "v1"), "gs://bucket/b.jpg": (None, None)}
    monkeypatch.setattr("darkroom.manifest.chunks.stat_image", states.__getitem__)
    source = tmp_path / "images.csv"
    source.write_text("".join(f"TRAIN,{uri},cat\n" for uri in states))

    def write():
        return write_manifest(source, str(tmp_path / "m"), str(tmp_path / "m")).fingerprint

    first = write()
    assert first == fingerprint_source(source) == write()
    states["gs://bucket/a.jpg"] = (100, "v2")
    assert write() not in ("", first)


def test_too_many_columns_say_what_to_do(tmp_path, monkeypatch):
    monkeypatch.setattr("darkroom.storage.database._MEMORY", "16MB")
    header = HEADER.strip() + "".join(f",c{n}" for n in range(1_000))
    (tmp_path / "m.csv").write_text(f"{header}\nTRAIN,a.jpg,cat{',1' * 1_000}\n")
    with pytest.raises(DataError, match=r"1,000 further columns, .* --columns"):
        write_manifest(tmp_path / "m.csv", f"{tmp_path}/out", f"{tmp_path}/out")


def test_a_full_folder_of_temporary_files_is_named(tmp_path, monkeypatch):
    def fail(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    (tmp_path / "m.csv").write_text(f"{HEADER}TRAIN,a.jpg,cat\n")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr("darkroom.manifest.writer.stage_rows", fail)
    with pytest.raises(StorageError, match=rf"no space left in {tmp_path}, .*TMPDIR=/DIR"):
        write_manifest(tmp_path / "m.csv", f"{tmp_path}/out", f"{tmp_path}/out")


def test_many_long_labels_need_no_more_memory_than_short_ones(tmp_path, monkeypatch):
    monkeypatch.setattr("darkroom.storage.database._MEMORY", "32MB")
    labels = [f"{number % 5_000:0300}" for number in range(20_000)]
    rows = "".join(f"TRAIN,{n}.jpg,{label}x\n" for n, label in enumerate(labels))
    planned = plan(tmp_path, HEADER + rows)
    assert len(planned.manifest.labels) == 5_000
    found = {(row["row"], row["label"], row["label_id"]) for row in planned.rows}
    assert found == {(n, f"{label}x", int(label)) for n, label in enumerate(labels, start=1)}


def test_memory_that_is_too_small_is_blamed_on_columns_only_where_there_are_some(
    tmp_path, monkeypatch
):
    def fail(*_):
        cause = duckdb.OutOfMemoryException("Out of Memory Error")
        raise StorageError("DuckDB cannot continue") from cause

    monkeypatch.setattr("darkroom.manifest.writer.stage_rows", fail)
    with pytest.raises(StorageError, match="not enough memory to compare and sort the rows"):
        plan(tmp_path, f"{HEADER}TRAIN,a.jpg,cat\n")
    with pytest.raises(DataError, match="1 further column, which is too many"):
        plan(tmp_path, "split,image_uri,label,caption\nTRAIN,a.jpg,cat,x\n")


def test_rows_of_one_image_with_other_values_are_merged_only_if_that_is_asked_for(tmp_path):
    rows = ["a.jpg,cat,one", "a.jpg,cat,one", "a.jpg,cat,two", "b.jpg,cat,x", "b.jpg,cat,x"]
    text = "image_uri,label,caption\n" + "\n".join(rows) + "\n"
    with pytest.raises(DataError, match=r"Rows 1 and 3 name the same image, .* 1 row ") as caught:
        plan(tmp_path, text)
    assert "--merge-rows first (merge_rows= in Python)" in caught.value.hint
    # The second row is the one that would be kept.
    with pytest.raises(DataError, match=r"Rows 1 and 2 name .* 2 rows "):
        plan(tmp_path, "image_uri,label,n\na.jpg,cat,2\na.jpg,cat,1\na.jpg,cat,2\n")
    with pytest.raises(DataError, match="Rows 1 and 2 name") as caught:
        plan(tmp_path, "image_uri,label,bbox\na.jpg,cat,1 2 3 4\na.jpg,cat,2 3 4 5\n")
    assert "Write them into a column objects" in caught.value.hint

    planned = plan(tmp_path, text, merge_rows="first")
    assert (planned.manifest.deduplicated, planned.manifest.merged) == (3, 1)
    assert sorted(planned.get("id", "extra")) == [
        ("a.jpg", {"caption": "one"}),
        ("b.jpg", {"caption": "x"}),
    ]
