"""A dataset that is named with its fingerprint is read only if it is that one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import darkroom
from darkroom.dataset.named import find_named, name_dataset, split_name
from darkroom.errors import DataError, StorageError

A, B = "0f" * 32, "b7" * 32


@pytest.mark.parametrize(
    ("name", "place", "fingerprint"),
    [
        (f"s3://photos/flowers#{A}", "s3://photos/flowers", A),
        (f"s3://photos/flowers#{A.upper()}", "s3://photos/flowers", A),
        (f"photos#1#{A}", "photos#1", A),
        (f"{A}#{B}", A, B),
        ("photos#1", "photos#1", ""),
        (f"photos#{A[:-1]}", f"photos#{A[:-1]}", ""),
        (f"photos#{A}0", f"photos#{A}0", ""),
        (f"photos#{A}/more", f"photos#{A}/more", ""),
        (f"photos#g{A[1:]}", f"photos#g{A[1:]}", ""),
        (f"#{A}", f"#{A}", ""),
        (Path(f"photos#{A}"), "photos", A),
    ],
)
def test_only_64_digits_at_the_end_are_a_fingerprint(name, place, fingerprint):
    assert split_name(name) == (place, fingerprint)
    if fingerprint:
        assert split_name(name_dataset(place, fingerprint)) == (place, fingerprint)


def test_a_name_without_a_fingerprint_is_not_read():
    assert find_named("s3://nobody/has/this#1/") == "s3://nobody/has/this#1"
    assert find_named("minio://bucket/run/dataset") == "s3://bucket/run/dataset"
    assert find_named("photos") == str(Path("photos").absolute())


@pytest.fixture
def made(jpeg_set, tmp_path):
    """A dataset whose name has a `#`."""
    return darkroom.convert(jpeg_set.csv, tmp_path / "photos #1")


@pytest.mark.crosses
def test_the_dataset_that_was_named_is_found(made):
    named = name_dataset(made.output_dir, made.fingerprint)
    assert find_named(named) == find_named(made.output_dir) == made.output_dir
    assert darkroom.verify(named).is_sound
    assert darkroom.validate(named).blessed
    assert darkroom.verify(Path(named)).fingerprint == made.fingerprint


def test_another_dataset_there_is_an_error_of_the_environment(made):
    with pytest.raises(StorageError) as caught:
        find_named(name_dataset(made.output_dir, A))
    assert caught.value.exit_code == 3
    for said in (made.output_dir, made.fingerprint, A):
        assert said in caught.value.message
    with pytest.raises(StorageError):
        find_named(made.output_dir, known=A)
    assert find_named(name_dataset(made.output_dir, made.fingerprint), known=A) == made.output_dir


@pytest.mark.crosses
@pytest.mark.parametrize(
    "command",
    [
        ["verify", "{}"],
        ["validate", "{}"],
        ["duplicates", "{}", "--output", "list.parquet"],
        ["inspect", "{}", "--output-dir", "sheet"],
    ],
    ids=lambda command: command[0],
)
def test_each_command_compares_before_it_reads(made, command, monkeypatch, tmp_path, capsys):
    from darkroom.cli import main

    monkeypatch.chdir(tmp_path)
    before = sorted(tmp_path.rglob("*"))
    wrong, right = (name_dataset(made.output_dir, each) for each in (A, made.fingerprint))
    assert main([*(each.format(wrong) for each in command), "--json"]) == 3
    error = json.loads(capsys.readouterr().out)["error"]
    assert error["code"] == "environment"
    assert f"expected {A}" in error["message"]
    assert sorted(tmp_path.rglob("*")) == before
    assert main([*(each.format(right) for each in command), "--json"]) == 0


@pytest.mark.crosses
def test_data_is_that_of_the_dataset_that_was_named(made):
    from darkroom.data.open import open_data

    data = open_data([name_dataset(made.output_dir, made.fingerprint)])
    assert data.splits["train"].data[0]["fingerprint"] == made.fingerprint
    with pytest.raises(StorageError, match=A):
        open_data([name_dataset(made.output_dir, A)])


@pytest.mark.crosses
def test_the_reader_says_what_is_wrong_with_a_dataset(made):
    Path(made.output_dir, "dataset.json").write_text("{}")
    named = name_dataset(made.output_dir, made.fingerprint)
    [finding] = darkroom.verify(named).findings
    assert finding.path == "dataset.json"
    with pytest.raises(DataError, match="is damaged"):
        darkroom.validate(named)
