"""`darkroom.convert` from end to end: what is written, what is rejected, when nothing is done."""

from __future__ import annotations

import io
import math
import os
import pickle
import shutil
import subprocess
import sys
import threading
from contextlib import nullcontext
from pathlib import Path

import apache_beam as beam
import numpy as np
import pytest
from apache_beam.pipeline import PipelineVisitor

from darkroom import storage
from darkroom.conversion.beam.transforms import WriteDataset
from darkroom.conversion.convert import convert
from darkroom.conversion.output.output import Output
from darkroom.conversion.plan import plan_job
from darkroom.conversion.result import ConversionResult, TooManyRejectsError
from darkroom.dataset import commit as datasets
from darkroom.dataset.example import decode_example
from darkroom.dataset.index import read_index
from darkroom.dataset.layout import Folders
from darkroom.dataset.opening import check_shard_files
from darkroom.dataset.tfrecord import read_records
from darkroom.errors import DataError, OutputError, UsageError
from darkroom.manifest.writer import write_manifest
from darkroom.options.conversion import ConversionOptions, RecordOptions
from darkroom.options.runners import LOCAL_RUNNER
from darkroom.runtime import progress
from darkroom.runtime.display import PlainProgress
from darkroom.storage.stores import retries

from ..pictures import encode

pytestmark = [pytest.mark.heavy, pytest.mark.usefixtures("decoder_process")]


def _read(result: ConversionResult) -> dict[str, list[dict]]:
    """Reads the records of every split back from the files that the commit names."""
    dataset = datasets.read_dataset(result.output_dir)
    check_shard_files(result.output_dir, dataset)
    return {
        name: [
            decode_example(record)
            for shard in split.shards
            for record in read_records(f"{result.output_dir}/{shard.file}")
        ]
        for name, split in dataset.splits.items()
    }


def _fixed_files(folder: Path) -> dict[str, bytes]:
    """Returns the files that must be equal for equal data: shards, labels, commit."""
    paths = [*folder.glob("Split-*/*"), folder / "labels.txt", folder / "dataset.json"]
    return {str(path.relative_to(folder)): path.read_bytes() for path in paths}


def test_every_row_is_written_rejected_or_counted_as_a_duplicate(faulty_set, tmp_path):
    result = convert(faulty_set.csv, tmp_path / "out", max_rejects=1)
    assert result.rows == len(faulty_set.rows) == 47
    assert result.rejected == {
        "conflict": 2,
        "empty": 1,
        "empty_label": 1,
        "missing": 1,
        "not_an_image": 1,
        "truncated": 1,
    }
    assert result.deduplicated == 1
    assert result.rows == result.written + result.num_rejected + result.deduplicated

    records = _read(result)
    assert {name: len(found) for name, found in records.items()} == dict(result.splits)
    assert sum(result.splits.values()) == result.written == 39
    lines = Path(result.rejects_path).read_text().splitlines()
    assert len(lines) == result.num_rejected
    assert read_index(result.index_dir).num_rows == result.written


def test_records_hold_the_files_and_the_index_has_a_row_for_each(jpeg_set, tmp_path):
    result = convert(jpeg_set.csv, tmp_path / "out", num_shards=3)
    rows = read_index(result.index_dir).to_pylist()
    assert len({(row["split"], row["shard"]) for row in rows}) == 6
    expected = {name: (split, label) for split, name, label in jpeg_set.rows}
    for row in rows:
        path = f"{result.output_dir}/Split-{row['split']}/data_tfrecord-0000{row['shard']}-of-00003"
        record = decode_example(list(read_records(path))[row["position"]])
        name = record["image/filename"][0].decode()
        declared, label = expected.pop(name)
        data = (jpeg_set.folder / name).read_bytes()
        assert {"TRAIN": "train", "VALIDATION": "eval"}[declared] == row["split"]
        assert record["image/encoded"] == [data]
        assert record["image/class/text"] == [label.encode()]
        assert result.labels[record["image/class/label"][0]] == label
        assert [record[f"image/{n}"] for n in ("height", "width", "channels")] == [[9], [7], [3]]
        assert record["image/format"] == [b"jpeg"]
        assert record["image/source_id"] == [row["key"].encode()]
        assert record["image/key/sha256"] == [row["sha256"].encode()]
        assert jpeg_set.rows[row["row"] - 1][1] == name
        assert (row["size_bytes"], row["uri"]) == (len(data), str(jpeg_set.folder / name))
    assert expected == {}


@pytest.fixture
def reference(converted_jpegs) -> dict[str, bytes]:
    return _fixed_files(converted_jpegs)


def test_the_command_loads_no_pandas(jpeg_set, tmp_path):
    command = [sys.executable, "-X", "importtime", "-m", "darkroom.cli", "convert", jpeg_set.csv]
    done = subprocess.run(
        [*command, "--output-dir", tmp_path / "out"], stderr=subprocess.PIPE, text=True, check=True
    )
    assert "pyarrow" in done.stderr
    assert "pandas.core" not in done.stderr


def test_a_conversion_on_this_machine_loads_no_beam(jpeg_set, tmp_path, reference, monkeypatch):
    for name in ("apache_beam", "darkroom.runtime.plain_beam"):
        monkeypatch.setitem(sys.modules, name, None)
    convert(jpeg_set.csv, tmp_path / "out")
    assert _fixed_files(tmp_path / "out") == reference


@pytest.mark.long
def test_locale_hash_seed_and_time_zone_do_not_matter(jpeg_set, tmp_path, reference):
    environment = {"PYTHONHASHSEED": "77", "LC_ALL": "C", "TZ": "Asia/Kolkata"}
    code = "import sys\nfrom darkroom.cli import main\nassert main(sys.argv[1:]) == 0\n"
    command = [sys.executable, "-c", code, "convert", jpeg_set.csv, "--output-dir"]
    environment = {**os.environ, **environment}
    subprocess.run([*command, tmp_path / "other"], env=environment, check=True, capture_output=True)
    assert _fixed_files(tmp_path / "other") == reference


def test_over_budget_rejects_are_written_and_nothing_is_committed(faulty_set, tmp_path):
    with pytest.raises(TooManyRejectsError) as error:
        convert(faulty_set.csv, tmp_path / "out")
    result = error.value.result
    assert (result.num_rejected, result.written, result.fingerprint) == (7, 0, "")
    assert error.value.exit_code == 1
    text = str(error.value)
    assert "7 of 47 rows were rejected, more than the 1.00% allowed" in text
    assert "row 41: not_an_image" in text
    assert result.rejects_path in text
    assert not (tmp_path / "out" / "dataset.json").exists()
    assert len(Path(result.rejects_path).read_text().splitlines()) == 7


class _Counts(PlainProgress):
    """Keeps the counts of rows: done, total, and before."""

    def __init__(self) -> None:
        super().__init__(io.StringIO())
        self.rows = []

    def advance(self, done, total, unit, before, detail=""):
        if unit == "rows":
            self.rows.append((done, total, before))


def test_a_run_after_one_that_failed_counts_from_the_start(jpeg_set, tmp_path, monkeypatch):
    def fail(self, reports):
        raise OSError("no more")

    options = {"num_shards": {"train": 4, "eval": 1}}
    with monkeypatch.context() as patch, progress.use(_Counts()) as first:
        patch.setattr("darkroom.conversion.output.commit.Commit.__call__", fail)
        with pytest.raises(OSError, match="no more"):
            convert(jpeg_set.csv, tmp_path / "out", **options)
    with progress.use(_Counts()) as second:
        convert(jpeg_set.csv, tmp_path / "out", **options)
    assert max(first.rows) == (40, 40, 0)
    assert max(second.rows) == (40, 40, 40)


def test_a_source_without_a_good_row_is_not_committed_however_many_rejects_are_allowed(tmp_path):
    (tmp_path / "rows.csv").write_text("image_uri,label\nnone.jpg,a\n")
    with pytest.raises(TooManyRejectsError) as error:
        convert(tmp_path / "rows.csv", tmp_path / "out", max_rejects=1)
    assert str(error.value).startswith("1 of 1 row was rejected, so none is left. The first:")
    with pytest.raises(DataError, match=r"no dataset\.json"):
        datasets.read_dataset(str(tmp_path / "out"))


def test_fixed_images_are_converted_from_the_file_of_rejects(faulty_set, tmp_path):
    faulty_set.rows = faulty_set.rows[:43]
    first = convert(faulty_set.csv, tmp_path / "first", max_rejects=1)
    assert first.num_rejected == 3
    for name in ("page.jpg", "none.jpg", "gone.jpg"):
        shutil.copy(faulty_set.folder / "00.jpg", faulty_set.folder / name)
    whole = convert(faulty_set.csv, tmp_path / "whole")
    fixed = convert(
        first.rejects_path, tmp_path / "fixed", label_map=tmp_path / "first" / "labels.txt"
    )
    found = {r["image/source_id"][0]: r for rows in _read(fixed).values() for r in rows}
    expected = {r["image/source_id"][0]: r for rows in _read(whole).values() for r in rows}
    assert len(found) == 3
    assert {key: expected[key] for key in found} == found


def _read_times(folder: Path) -> dict[Path, int]:
    # The folder itself, too: its parent may be read-only.
    return {path: path.stat().st_mtime_ns for path in (folder, *folder.rglob("*"))}


@pytest.mark.parametrize("seconds", [None, 7])
def test_a_second_run_touches_nothing_also_with_other_patience(converted_jpegs, seconds):
    before = _read_times(converted_jpegs)
    options = ConversionOptions(store_patience_seconds=seconds) if seconds else None
    source = converted_jpegs.parent / "images" / "images.csv"
    again = convert(source, converted_jpegs, options=options)
    assert again.already_complete
    assert again.fingerprint == datasets.read_dataset(str(converted_jpegs)).fingerprint
    assert _read_times(converted_jpegs) == before


def test_a_second_run_judges_the_rejects_by_its_own_share(faulty_set, tmp_path):
    faulty_set.rows = faulty_set.rows[:41]
    options = {"source": faulty_set.csv, "output_dir": tmp_path / "out"}
    first = convert(**options, max_rejects=np.float32(0.05))
    before = _read_times(tmp_path / "out")
    said = "1 of 41 rows was rejected, more than the 1.00% allowed. The first:"
    with pytest.raises(TooManyRejectsError, match=said) as caught:
        convert(**options, max_rejects=0.01)
    assert caught.value.result.num_rejected == 1
    assert f"All are listed in {first.rejects_path}. Fix them, or allow" in caught.value.hint
    with pytest.raises(TooManyRejectsError) as fresh:
        convert(faulty_set.csv, tmp_path / "fresh", max_rejects=0.01)
    assert fresh.value.message == caught.value.message
    for allowed in ({}, {"max_rejects": 0.5}):
        assert convert(**options, **allowed).already_complete
    assert _read_times(tmp_path / "out") == before


def test_images_that_can_be_read_now_are_converted(jpeg_set, reference, tmp_path, monkeypatch):
    read_bytes = storage.read_bytes

    def deny(path, *args, **options):
        if path.endswith("/03.jpg"):
            raise PermissionError(13, "Permission denied", path)
        return read_bytes(path, *args, **options)

    with monkeypatch.context() as patched:
        patched.setattr(storage, "read_bytes", deny)
        first = convert(jpeg_set.csv, tmp_path / "out", max_rejects=1)
        assert first.rejected == {"permission_denied": 1}
        assert convert(jpeg_set.csv, tmp_path / "out", max_rejects=1).already_complete
    second = convert(jpeg_set.csv, tmp_path / "out")
    assert (second.already_complete, second.written, second.rejected) == (False, 40, {})
    assert _fixed_files(tmp_path / "out") == reference


def test_another_source_or_option_needs_overwrite(jpeg_set, jpeg_records):
    before = _fixed_files(jpeg_records)
    options = ConversionOptions(compression="gzip")
    with pytest.raises(OutputError, match="holds another dataset"):
        convert(jpeg_set.csv, jpeg_records, options=options)
    jpeg_set.rows[0] = (*jpeg_set.rows[0][:2], "owl")
    with pytest.raises(OutputError, match="holds another dataset"):
        convert(jpeg_set.csv, jpeg_records)
    assert _fixed_files(jpeg_records) == before
    assert convert(jpeg_set.csv, jpeg_records, overwrite=True, options=options).written == 40
    assert all(name.endswith(".gz") for name in _fixed_files(jpeg_records) if "tfrecord" in name)


SHARD = "Split-eval/data_tfrecord-00000-of-00001"


@pytest.mark.parametrize(
    ("name", "change"),
    [
        (SHARD, lambda data: data[:-1]),
        ("labels.txt", lambda data: b"other"),
        ("SHA256SUMS", lambda data: b"other"),
        ("index/index-00000-of-00003.parquet", lambda data: None),
        ("rejects.jsonl", lambda data: None),
    ],
)
def test_a_finished_dataset_with_a_damaged_file_is_not_called_complete(
    converted_jpegs, jpeg_records, name, change
):
    path = jpeg_records / name
    data = change(path.read_bytes())
    path.unlink()
    if data is not None:
        path.write_bytes(data)
    with pytest.raises(DataError, match=name):
        convert(converted_jpegs.parent / "images" / "images.csv", jpeg_records)


def test_of_two_runs_at_once_one_commits(jpeg_set, tmp_path, reference):
    outcomes: list[object] = []
    path = jpeg_set.csv

    def run() -> None:
        try:
            outcomes.append(convert(path, tmp_path / "out").already_complete)
        except OutputError as error:
            outcomes.append(error.exit_code)

    threads = [threading.Thread(target=run) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert outcomes.count(False) == 1
    assert set(outcomes) <= {False, True, 4}
    assert _fixed_files(tmp_path / "out") == reference


def test_a_file_cannot_be_the_output_folder(jpeg_set, tmp_path):
    (tmp_path / "out").write_text("x")
    with pytest.raises(OutputError, match="is a file"):
        convert(jpeg_set.csv, tmp_path / "out")


def test_rows_without_images_become_records(tmp_path):
    (tmp_path / "rows.csv").write_text(
        "split,height,weight,name,kind\nTRAIN,3,0.5,a,1\nTRAIN,3,0.5,a,1\nTEST,,x,b,0\nTEST,-4,,,0\n"
    )
    schema = {
        "split": "split",
        "height": "integer",
        "weight": "float",
        "name": "string",
        "kind": "integer_label",
    }
    result = convert(tmp_path / "rows.csv", tmp_path / "out", columns=schema, max_rejects=1)
    assert result.rejected == {"bad_value": 1}
    records = _read(result)
    first = {
        "height": [3],
        "weight": [0.5],
        "name": [b"a"],
        "image/class/label": [1],
        "image/class/text": [b"1"],
    }
    assert records["train"] == [first, first]
    [last] = records["test"]
    assert last == {"height": [-4], "image/class/label": [0], "image/class/text": [b"0"]}
    assert result.labels == ("0", "1")


def test_a_label_map_gives_the_numbers(jpeg_set, tmp_path):
    (tmp_path / "map.txt").write_text("owl\ndog\ncat\nfox\n")
    result = convert(jpeg_set.csv, tmp_path / "out", label_map=tmp_path / "map.txt")
    assert result.labels == ("owl", "dog", "cat", "fox")
    numbers = {
        (r["image/class/text"][0], r["image/class/label"][0])
        for rows in _read(result).values()
        for r in rows
    }
    assert numbers == {(b"owl", 0), (b"dog", 1), (b"cat", 2)}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"image_check": "some"}, "image_check is 'some', expected one of full, header"),
        ({"num_shards": 0.5}, "num_shards"),
        ({"max_rejects": 7}, "share from 0 to 1"),
        ({"resize_short_side": "x"}, "resize_short_side is 'x', expected a whole number"),
        ({"jpeg_quality": 80}, "80, but no image is stored as a reduced JPEG"),
        ({"jpeg_quality": 80, "resize_short_side": 8, "encoding": "raw"}, "as a reduced JPEG"),
        ({"split_ratios": "1/2"}, "three numbers"),
        ({"runner": "Direkt"}, "Unknown runner"),
        ({"project": "p"}, "DataflowRunner"),
        ({"beam_options": {"direct_num_worker": 2}}, "Did you mean direct_num_workers"),
        ({"beam_options": {"flink_master": "h:1"}}, "'flink_master' is for a runner, and none is"),
        ({"beam_options": ["direct_num_workers=2"]}, "beam_options must map names to values"),
        ({"columns": "{"}, "is not JSON"),
        ({"label_map": 5}, "label_map must be a list of labels"),
        ({"label_map": []}, "is empty"),
        ({"acept": "one_class"}, "convert has no option 'acept'"),
    ],
)
def test_a_wrong_option_is_reported_before_anything_is_written(
    jpeg_set, tmp_path, options, message
):
    with pytest.raises(UsageError, match=message):
        convert(jpeg_set.csv, tmp_path / "out", **options)
    assert not (tmp_path / "out").exists()


def test_no_image_crosses_a_stage(tmp_path, jpeg_set):
    pixels = np.random.default_rng(5).integers(0, 256, (300, 300, 3), np.uint8)
    data = encode(pixels, "JPEG", quality=95)
    assert len(data) > 100_000
    jpeg_set.add("TRAIN", "large.jpg", "cat", data)
    manifest, out = str(tmp_path / "manifest"), str(tmp_path / "out")
    write_manifest(jpeg_set.csv, manifest, manifest)
    output = Output(Folders.of_dataset(out, manifest))
    attempt = output.make_attempt(LOCAL_RUNNER)
    write = plan_job(output.folders, attempt, RecordOptions())
    output.begin(attempt, write.tasks)
    seen = []

    def check_size(value):
        size = len(pickle.dumps(value))
        if size > 64_000:
            raise ValueError(f"a value of {size} bytes crosses a stage")
        return size

    class CollectValues(PipelineVisitor):
        def enter_composite_transform(self, transform_node):
            self.visit_transform(transform_node)

        def visit_transform(self, transform_node):
            # Beam rewrites what is below these.
            if transform_node.full_label.count("/") == 1:
                seen.extend(transform_node.outputs.values())

    with beam.Pipeline("FnApiRunner") as pipeline:
        pipeline | WriteDataset(write)
        pipeline.visit(CollectValues())
        for number, value in enumerate(seen):
            value | f"CheckSize{number}" >> beam.Map(check_size)
    assert len(seen) == 5
    assert datasets.read_dataset(out).written == 41


@pytest.mark.parametrize("known_to", ["client", "worker"])
def test_the_client_and_each_worker_hold_out_for_a_store(jpeg_set, tmp_path, monkeypatch, known_to):
    """Runners start workers in other processes, so the tasks carry the option."""
    before, found, read_bytes = retries._shared, [], storage.read_bytes

    def read(path: str, limit_bytes: int | None = None) -> bytes:
        if path.endswith((".jpg", ".png")):
            found.append(retries._own.get() or retries._shared)
        return read_bytes(path, limit_bytes)

    monkeypatch.setattr(storage, "read_bytes", read)
    if known_to == "client":
        monkeypatch.setattr(storage, "set_patience", lambda seconds: None)
    else:
        monkeypatch.setattr(storage, "be_patient", lambda seconds: nullcontext())
        monkeypatch.setattr(retries, "_shared", before)  # set again afterwards
    convert(jpeg_set.csv, tmp_path / "out", options=ConversionOptions(store_patience_seconds=7))
    written = [limits for limits in found if limits.stopped]
    assert written
    assert {limits[:2] for limits in written} == {(7, math.inf)}
    assert known_to == "worker" or retries._shared == before
