import os

import pytest

from darkroom import storage
from darkroom.dataset.splits import SplitRatios
from darkroom.errors import DataError, StorageError
from darkroom.manifest.fingerprint import fingerprint_source, read_source_state
from darkroom.manifest.writer import write_manifest
from darkroom.options.manifest import ManifestOptions
from darkroom.version import hash_code

TEXT = "split,image_uri,label\nTRAIN,a.jpg,cat\n,b.jpg,dog\nTEST,c.jpg,\n"


@pytest.fixture
def source(tmp_path):
    for name in ("a", "b", "c"):
        (tmp_path / f"{name}.jpg").write_bytes(b"12345")
        os.utime(tmp_path / f"{name}.jpg", ns=(1, 1))
    (tmp_path / "m.csv").write_text(TEXT)
    return tmp_path / "m.csv"


def touch(path, size=5, nanoseconds=1):
    path.write_bytes(b"x" * size)
    os.utime(path, ns=(1, nanoseconds))


CHANGES = {
    "a label": lambda folder: (folder / "m.csv").write_text(TEXT.replace("cat", "cow")),
    "a split": lambda folder: (folder / "m.csv").write_text(TEXT.replace("TEST", "TRAIN")),
    "a row": lambda folder: (folder / "m.csv").write_text(TEXT + "TEST,a.jpg,cat\n"),
    "a reject": lambda folder: (folder / "m.csv").write_text(TEXT.replace("c.jpg", "d.jpg")),
    "size": lambda folder: touch(folder / "b.jpg", size=6),
    "modification time": lambda folder: touch(folder / "b.jpg", nanoseconds=2),
    "absence": lambda folder: (folder / "b.jpg").unlink(),
}


@pytest.mark.parametrize("what", CHANGES)
def test_a_fingerprint_changes_with(source, what):
    before = fingerprint_source(source)
    CHANGES[what](source.parent)
    assert fingerprint_source(source) != before


def test_a_fingerprint_changes_with_nothing_else(source):
    before = fingerprint_source(str(source))
    os.utime(source, ns=(5, 5))
    touch(source.parent / "a.jpg")
    touch(source.parent / "unlisted.jpg")
    assert fingerprint_source(source) == before
    assert len(before) == 32


def test_a_fingerprint_depends_on_where_rows_go(source):
    ratios = ManifestOptions(split_ratios=SplitRatios(0, 0, 1))
    assert fingerprint_source(source, ratios) != fingerprint_source(source)
    assert fingerprint_source(source, ManifestOptions(seed=1)) != fingerprint_source(source)
    placed = [{}, {"stratify": True}, {"folds": 2}, {"folds": 3}, {"group_column": "label"}]
    found = {fingerprint_source(source, ManifestOptions(**each)) for each in placed}
    assert len(found) == 5


def test_a_fingerprint_depends_on_the_list_of_groups(source, tmp_path):
    found = {fingerprint_source(source)}
    for text in (b"", b"a"):
        (tmp_path / "groups.parquet").write_bytes(text)
        options = ManifestOptions(groups=str(tmp_path / "groups.parquet"))
        found.add(fingerprint_source(source, options))
    assert len(found) == 3


def test_a_fingerprint_depends_on_the_list_of_exclusions(source, tmp_path):
    found = {fingerprint_source(source)}
    for text in ("", "a.jpg", "b.jpg"):
        (tmp_path / "list.txt").write_text(text)
        options = ManifestOptions(exclude=str(tmp_path / "list.txt"))
        found.add(fingerprint_source(source, options))
        manifest = write_manifest(source, str(tmp_path / "out"), str(tmp_path / "out"), options)
        assert manifest.fingerprint in found
    assert len(found) == 4


def test_a_fingerprint_tells_where_one_cell_ends(tmp_path):
    found = set()
    for text in ("a.jpg,bc\n", "a.jpgb,c\n", "ab.jpg,c\n"):
        (tmp_path / "m.csv").write_text("image_uri,label\n" + text)
        found.add(fingerprint_source(tmp_path / "m.csv"))
    assert len(found) == 3


def test_a_manifest_has_the_fingerprint_of_its_local_source(source, tmp_path):
    manifest = write_manifest(source, str(tmp_path / "out"), str(tmp_path / "out"))
    assert manifest.fingerprint == fingerprint_source(source)


def test_a_changed_remote_image_changes_it(tmp_path, monkeypatch):
    (tmp_path / "m.csv").write_text("gs://b/a.jpg,cat\ngs://b/b.jpg,cat\n")
    versions = {"gs://b/a.jpg": "1", "gs://b/b.jpg": "1"}
    monkeypatch.setattr(
        storage, "stat_file", lambda uri: storage.FileInfo(5, versions.get(uri, ""))
    )
    before = fingerprint_source(tmp_path / "m.csv")
    assert fingerprint_source(tmp_path / "m.csv") == before
    versions["gs://b/b.jpg"] = "2"
    assert fingerprint_source(tmp_path / "m.csv") != before


def test_a_source_with_a_doubt_that_is_accepted_has_one(tmp_path):
    for name in ("train_set", "test_set"):
        (tmp_path / "photos" / name).mkdir(parents=True)
        (tmp_path / "photos" / name / "a.jpg").write_bytes(b"x")
    with pytest.raises(DataError, match="--accept split_class"):
        fingerprint_source(tmp_path / "photos")
    options = ManifestOptions(accept=("split_class",))
    manifest = write_manifest(tmp_path / "photos", str(tmp_path), str(tmp_path), options)
    assert manifest.fingerprint == fingerprint_source(tmp_path / "photos", options)


def test_a_check_sees_the_rows_that_count(source):
    (source.parent / "b.jpg").unlink()
    seen = []
    plain = fingerprint_source(source)
    assert plain == fingerprint_source(source, check=seen.append)
    [chunk] = seen
    sizes = dict(zip(chunk.columns["uri"], chunk.columns["size"], strict=True))
    folder = source.parent
    assert sizes == {f"{folder}/a.jpg": 5, f"{folder}/b.jpg": None}
    assert [reject.reason for reject in chunk.rejects] == ["empty_label"]


def test_a_fingerprint_depends_on_what_is_in_a_label_map(source, tmp_path):
    labels = tmp_path / "labels.txt"
    options = ManifestOptions(label_map=str(labels))
    found = {fingerprint_source(source)}
    for text in ("cat\ndog\nowl\n", "dog\ncat\nowl\n", "dog\ncat\n"):
        labels.write_text(text)
        found.add(fingerprint_source(source, options))
    assert len(found) == 4
    labels.write_text("\ufeffdog\r\ncat")
    assert fingerprint_source(source, options) in found


def test_a_state_is_of_this_version_and_of_all_images(source, monkeypatch):
    assert read_source_state(source) == f"{hash_code()}-{fingerprint_source(source)}"
    (source.parent / "gone.jpg").unlink(missing_ok=True)
    with source.open("a") as file:
        file.write("TRAIN,gone.jpg,cat\n")
    missing = read_source_state(source)
    (source.parent / "gone.jpg").write_bytes(b"x")
    assert read_source_state(source) != missing
    # What cannot be looked at may change unseen.
    (source.parent / "gone.jpg").unlink()
    (source.parent / "gone.jpg").symlink_to("gone.jpg")
    with pytest.raises(StorageError, match=r"The state of .*/gone.jpg is unknown: "):
        read_source_state(source)
