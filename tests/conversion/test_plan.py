from __future__ import annotations

import pytest

from darkroom.conversion.beam.runners import LOCAL_RUNNER
from darkroom.conversion.output.output import Output
from darkroom.conversion.plan import plan_tasks
from darkroom.dataset.layout import Folders, index_file, shard_file
from darkroom.errors import UsageError
from darkroom.manifest.writer import write_manifest
from darkroom.options.conversion import RecordOptions, parse_shard_counts
from darkroom.options.manifest import ManifestOptions


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
    attempt = Output(folders).make_attempt(LOCAL_RUNNER, {})
    tasks = plan_tasks(folders, attempt, RecordOptions(find_decoded_copies=asked))
    assert {task.image.find_decoded_copies for task in tasks} == {planned}
