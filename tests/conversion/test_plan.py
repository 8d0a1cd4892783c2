from __future__ import annotations

import pyarrow as pa
import pytest

from darkroom.conversion.output.output import Output
from darkroom.conversion.plan import find_same_shard, plan_tasks
from darkroom.dataset.commit import Shard, SplitShards
from darkroom.dataset.layout import Folders, index_file, shard_file
from darkroom.errors import UsageError
from darkroom.manifest.writer import write_manifest
from darkroom.options.conversion import RecordOptions, parse_shard_counts
from darkroom.options.manifest import ManifestOptions
from darkroom.options.runners import LOCAL_RUNNER


def test_files_have_the_names_that_tfx_expects():
    assert shard_file("train", 3, 16) == "Split-train/data_tfrecord-00003-of-00016"
    assert shard_file("eval", 0, 1, ".gz") == "Split-eval/data_tfrecord-00000-of-00001.gz"
    assert index_file(7, 20) == "index-00007-of-00020.parquet"


@pytest.mark.parametrize(
    ("given_counts", "expected"),
    [
        (None, {}),
        (4, {"train": 4, "eval": 4, "test": 4}),
        ({"train": 4}, {"train": 4}),
    ],
)
def test_counts_may_be_one_for_all_or_by_split(given_counts, expected):
    assert parse_shard_counts(given_counts) == expected


@pytest.mark.parametrize("wrong", [-1, {"train": 0}, {"tran": 3}, "many", 2.5])
def test_a_wrong_count_is_an_error(wrong):
    with pytest.raises(UsageError):
        parse_shard_counts(wrong)


@pytest.mark.parametrize(
    ("names", "asked", "planned"),
    [
        (("a.jpg", "b.JPEG"), "auto", "never"),
        (("a.jpg", "b.png"), "auto", "always"),
        (("a.jpg", "b.jpg"), "always", "always"),
        (("a.jpg", "b.png"), "never", "never"),
    ],
)
def test_jpegs_are_decoded_again_where_the_source_has_other_files(tmp_path, names, asked, planned):
    (tmp_path / "m.csv").write_text("image_uri\n" + "\n".join(names) + "\n")
    folders = Folders.of_dataset(str(tmp_path / "out"), str(tmp_path / "manifest"))
    write_manifest(
        str(tmp_path / "m.csv"), folders.manifest, folders.manifest_rejects, ManifestOptions()
    )
    attempt = Output(folders).make_attempt(LOCAL_RUNNER)
    tasks = plan_tasks(folders, attempt, RecordOptions(find_decoded_copies=asked))
    assert {task.image.find_decoded_copies for task in tasks} == {planned}


@pytest.mark.parametrize(
    ("changes", "is_same"),
    [
        ({}, True),
        ({"split": ["eval", "eval", "train"]}, False),
        ({"shard": [1, 1, 0]}, False),
        ({"position": [0, 2, 1]}, False),
        ({"is_same": [True, True, False]}, False),
        ({name: [None] * 3 for name in ("split", "shard", "position", "is_same")}, False),
        ({"shard": [0, 0, 0]}, False),  # It has more records.
    ],
)
def test_only_a_whole_old_shard_is_linked(changes, is_same):
    places = {"split": ["eval"] * 3, "shard": [1] * 3, "position": [0, 1, 2], "is_same": [True] * 3}
    types = [pa.string(), pa.int64(), pa.int64(), pa.bool_()]
    rows = pa.table({**places, **changes}, pa.schema(zip(places, types, strict=True)))
    shards = tuple(Shard(f"{number}", count, 1, "0") for number, count in enumerate((4, 3)))
    found = find_same_shard(rows, dict.fromkeys(("train", "eval"), SplitShards(7, shards)))
    assert found == (shards[1] if is_same else None)
