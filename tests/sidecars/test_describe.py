"""Sidecars in a dataset: who owns them, when they are written, replaced and removed."""

from __future__ import annotations

import errno
import json
import shutil
from pathlib import Path

import pytest

import darkroom
from darkroom import storage
from darkroom.cli import main
from darkroom.conversion import describe as describing
from darkroom.conversion.output import additions
from darkroom.dataset import checksums
from darkroom.dataset.layout import READ_AS_FILE
from darkroom.errors import DataError, OutputError, StorageError, UsageError
from darkroom.options.conversion import ConversionOptions

from ..trees import read_files
from .datasets import make_dataset

CARD = ("README.md", "croissant.json")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("made") / "plain"
    make_dataset(folder, "raw")
    return folder


@pytest.fixture
def records(made: Path, tmp_path: Path) -> Path:
    shutil.copytree(made, tmp_path / "copy")
    return tmp_path / "copy" / "records"


def convert(records: Path, **options):
    columns = {"split": "split", "path": "image", "label": "string_label"}
    overwrite = options.pop("overwrite", False)
    return darkroom.convert(
        records.parent / "list.csv",
        records,
        columns=columns,
        num_shards=2,
        overwrite=overwrite,
        options=ConversionOptions(encoding="raw", **options),
    )


def list_sidecars(records: Path) -> set[str]:
    """Returns the sidecars for others that are listed, after all listed files were checked."""
    assert darkroom.verify(records).findings == ()
    return checksums.list_summed_sidecars(str(records)) - {READ_AS_FILE}


def test_the_commit_is_the_same_with_and_without(records, tmp_path):
    before = read_files(records)
    found = darkroom.describe(records, "huggingface,tfds")
    assert found.readers == ("tfds", "huggingface")
    after = read_files(records)
    assert after.keys() - before.keys() == set(found.files)
    assert found.bytes == sum(len(after[name]) for name in found.files)
    assert {name for name in before if after[name] != before[name]} == {"SHA256SUMS"}
    assert list_sidecars(records) == set(found.files)
    made = make_dataset(tmp_path / "again", "raw", describe=("tfds", "huggingface"))
    assert {**read_files(made.output_dir)}.keys() == after.keys()
    again = read_files(made.output_dir)
    for name in ("dataset.json", *found.files):
        assert again[name] == after[name]


def test_what_is_there_already_is_not_written_again(records, monkeypatch):
    darkroom.describe(records, ["croissant"])
    before = read_files(records)
    monkeypatch.setattr(additions, "FolderLock", None)
    darkroom.describe(records, ["croissant"])
    assert read_files(records) == before


def test_a_finished_dataset_gets_what_convert_is_asked_for(records):
    convert(records, overwrite=True)
    assert convert(records, describe=("croissant",)).already_complete
    assert list_sidecars(records) == {"croissant.json"}
    assert convert(records, describe=("huggingface",)).already_complete
    assert list_sidecars(records) == set(CARD)


@pytest.mark.parametrize("readers", [(), ("huggingface", "dali")])
@pytest.mark.parametrize("how", ["overwrite", "update"])
def test_a_new_dataset_has_only_what_was_asked_for(records, readers, how):
    darkroom.describe(records, ["tfds", "huggingface", "dali"])
    lines = (records.parent / "list.csv").read_text().splitlines()
    (records.parent / "list.csv").write_text("\n".join(lines[:-1]) + "\n")
    convert(records, describe=readers, **{how: True})
    expected = {"README.md"} if readers else set()
    listed = list_sidecars(records)
    assert {name for name in listed if "/" not in name} == expected
    assert len(listed) == len(expected) * 5
    assert set(read_files(records / "dali-index")) == {
        name.removeprefix("dali-index/") for name in listed - expected
    }
    assert (records / "dali-index").exists() == bool(readers)
    assert (records / "README.md").exists() == bool(readers)
    assert not (records / "features.json").exists()


@pytest.mark.parametrize("is_listed", [False, True])
def test_files_of_others_stay(records, is_listed):
    """Also one of ours that somebody edited."""
    if is_listed:
        darkroom.describe(records, ["huggingface"])
    (records / "README.md").write_text("mine")
    before = read_files(records)
    with pytest.raises(OutputError, match=r"changed since: README\.md\."):
        darkroom.describe(records, ["huggingface", "croissant"])
    with pytest.raises(OutputError, match=r"changed since: README\.md\."):
        convert(records, overwrite=True, describe=("huggingface",))
    assert read_files(records) == before
    if not is_listed:
        darkroom.describe(records, ["croissant"])
        convert(records, overwrite=True, seed=1)
        assert list_sidecars(records) == set()
        assert (records / "README.md").read_text() == "mine"
        assert not (records / "croissant.json").exists()


@pytest.mark.parametrize(
    ("change", "kind", "what"),
    [
        (
            lambda path: path.write_text("x" * path.stat().st_size),
            "table",
            "does not have the hash",
        ),
        (Path.unlink, "missing", "is missing"),
    ],
)
def test_verify_checks_them(records, change, kind, what):
    darkroom.describe(records, ["dali", "huggingface"])
    path = next(records.glob("dali-index/train/*"))
    change(path)
    (finding,) = darkroom.verify(records).findings
    assert (finding.path, finding.kind) == (str(path.relative_to(records)), kind)
    assert what in finding.what
    assert "darkroom describe" in finding.hint
    path.unlink(missing_ok=True)
    darkroom.describe(records, ["dali"])
    assert darkroom.verify(records).is_sound


@pytest.mark.parametrize("step", range(5))
def test_a_run_that_was_killed_is_repeated(records, step, monkeypatch):
    """Or its files go with the dataset."""
    write, count = storage.write_bytes, 0

    def write_or_die(*arguments, **more):
        nonlocal count
        if count == step:
            raise KeyboardInterrupt
        count += 1
        write(*arguments, **more)

    before = read_files(records)
    with monkeypatch.context() as patch:
        patch.setattr(storage, "write_bytes", write_or_die)
        with pytest.raises(KeyboardInterrupt):
            darkroom.describe(records, ["tfds"])
    assert darkroom.verify(records).is_sound
    shutil.copytree(records.parent, records.parents[1] / "other")
    darkroom.describe(records, ["croissant"])
    assert set(read_files(records)) == {*before, "croissant.json"}
    other = records.parents[1] / "other" / "records"
    convert(other, overwrite=True, seed=1)
    assert set(read_files(other)) == set(before)


def test_a_run_that_was_killed_after_its_last_file_leaves_nothing(records, monkeypatch):
    def die(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(additions.ownership, "end_attempt", die)
        with pytest.raises(KeyboardInterrupt):
            darkroom.describe(records, ["dali"])
    (records / ".darkroom.lock").write_text("process 1 on another")
    darkroom.describe(records, ["dali"])
    assert [name for name in read_files(records) if name[0] == "."] == []
    assert darkroom.verify(records).is_sound


def test_a_dataset_that_is_replaced_meanwhile_is_left_alone(records, monkeypatch):
    build = describing.build_sidecars

    def build_while_it_is_replaced(*arguments):
        found = build(*arguments)
        monkeypatch.setattr(describing, "build_sidecars", build)
        shutil.rmtree(records)
        convert(records, seed=1)
        return found

    monkeypatch.setattr(describing, "build_sidecars", build_while_it_is_replaced)
    found = darkroom.describe(records, ["huggingface"])
    fingerprint = json.loads((records / "dataset.json").read_text())["fingerprint"]
    assert fingerprint in (records / "README.md").read_text()
    assert list_sidecars(records) == set(found.files)


def test_who_lost_the_output_lists_nothing(records, monkeypatch):
    """As when another machine begins a conversion."""
    write = additions.write_sidecars

    def lose(folder, contents, find_part):
        sums = write(folder, contents, find_part)
        (token,) = (records / ".attempt").iterdir()
        token.rename(token.with_name("0" * 8))
        return sums

    monkeypatch.setattr(additions, "write_sidecars", lose)
    with pytest.raises(OutputError, match="Another run has taken"):
        darkroom.describe(records, ["huggingface"])
    assert list_sidecars(records) == set()
    monkeypatch.undo()
    darkroom.describe(records, ["croissant"])
    assert set(read_files(records)).isdisjoint({"README.md", ".attempt"})


def test_a_dataset_that_cannot_be_written_is_described_elsewhere(records, tmp_path, monkeypatch):
    class Locked:
        def __init__(self, folder):
            raise OSError(errno.EROFS, "Read-only file system", folder)

    monkeypatch.setattr(additions, "FolderLock", Locked)
    with pytest.raises(StorageError, match="cannot be written") as caught:
        darkroom.describe(records, ["dali"])
    assert "--output" in caught.value.hint
    before = read_files(records)
    found = darkroom.describe(records, ["dali", "tfds", "huggingface"], tmp_path / "beside")
    assert set(read_files(tmp_path / "beside")) == {*found.files, ".darkroom-files.json"}
    info = json.loads((tmp_path / "beside" / "dataset_info.json").read_text())
    path = info["splits"][0]["filepathTemplate"].format(SHARD_X_OF_Y="00000-of-00002")
    assert path == f"{records}/Split-train/data_tfrecord-00000-of-00002"
    assert f"{records}/index/index-00000" in (tmp_path / "beside" / "README.md").read_text()
    (tmp_path / "beside" / "features.json").write_text("mine")
    with pytest.raises(OutputError, match=r"features\.json"):
        darkroom.describe(records, ["tfds"], tmp_path / "beside")
    assert read_files(records) == before


def test_wrong_arguments(records, tmp_path):
    with pytest.raises(UsageError, match="Sidecars are not written for 'tdfs'") as caught:
        darkroom.describe(records, ["tdfs"])
    assert caught.value.hint == "Did you mean tfds?"
    with pytest.raises(UsageError, match="Sidecars are not written for 'webdataset'"):
        convert(records, describe=("webdataset",))
    with pytest.raises(UsageError, match="No reader was named"):
        darkroom.describe(records, [])
    with pytest.raises(UsageError, match="not a list of texts"):
        darkroom.describe(records, 3)
    with pytest.raises(UsageError, match="From another folder, croissant cannot find"):
        darkroom.describe(records, ["croissant"], tmp_path / "beside")
    with pytest.raises(OutputError, match="would be in the dataset"):
        darkroom.describe(records, ["dali"], records / "dali")
    with pytest.raises(DataError, match="is not a dataset"):
        darkroom.describe(records.parent, ["dali"])


def test_an_index_elsewhere_is_said(records):
    (records / "index").rename(records.parent / "index")
    sums = checksums.read_sums(str(records))
    own = {name: each for name, each in sums.items() if not name.startswith("index/")}
    checksums.write_sums(str(records), own)
    with pytest.raises(UsageError, match="is elsewhere"):
        darkroom.describe(records, ["dali"])


def test_the_command(records, capsys):
    assert main(["describe", str(records), "--for", "tfds,huggingface", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["readers"] == ["tfds", "huggingface"]
    assert set(found["files"]) == list_sidecars(records)
    assert main(["describe", str(records), "--for", "dali"]) == 0
    assert f"{records}/dali-index/SPLIT/*.idx" in capsys.readouterr().out
    assert main(["describe", str(records), "--for", "tf"]) == 2
