import os

import pytest

from darkroom.dataset.schema import Columns, Schema
from darkroom.errors import DataError, UsageError
from darkroom.manifest.sources.base import Row
from darkroom.manifest.sources.folder import FolderSource
from darkroom.manifest.sources.listing import Listing


@pytest.fixture
def read(tmp_path):
    """Opens a folder of files that are made empty."""

    def read(*files):
        for file in files:
            path = os.path.join(os.fsencode(tmp_path), os.fsencode(file))
            os.makedirs(os.path.dirname(path), exist_ok=True)
            open(path, "xb").close()
        return FolderSource(Listing(str(tmp_path)), Columns())

    return read


def names(source):
    return [name for name, _ in source.schema.columns]


def test_folders_are_labels(read, tmp_path):
    source = read("dog/b.png", "cat/a.jpg", "cat/c.JPEG")
    assert names(source) == ["image_uri", "label"]
    assert list(source.rows()) == [
        Row(1, ["cat/a.jpg", "cat"]),
        Row(2, ["cat/c.JPEG", "cat"]),
        Row(3, ["dog/b.png", "dog"]),
    ]
    assert source.base == source.identity_base == str(tmp_path)


def test_folders_are_splits_when_all_top_names_are(read):
    source = read("train/cat/a.jpg", "Validation/dog/b.jpg", "UNASSIGNED/dog/c.jpg")
    assert names(source) == ["split", "image_uri", "label"]
    assert sorted(row.values for row in source.rows()) == [
        ["", "UNASSIGNED/dog/c.jpg", "dog"],
        ["eval", "Validation/dog/b.jpg", "dog"],
        ["train", "train/cat/a.jpg", "cat"],
    ]


def test_a_label_called_test_beside_another_is_a_label(read):
    assert [row.values[1] for row in read("cat/a.jpg", "test/b.jpg").rows()] == ["cat", "test"]


def test_misplaced_images_are_rejected_one_by_one(read):
    rows = {row.values[0]: row for row in read("a.jpg", "cat/b.jpg").rows()}
    assert rows["cat/b.jpg"].values == ["cat/b.jpg", "cat"]
    assert rows["a.jpg"].fault.args == ("outside_layout", "a.jpg is not in <label>/<file>")


@pytest.mark.parametrize(
    ("files", "reason"),
    [
        (("all/cat/a.jpg", "all/dog/b.jpg"), ": convert "),
        (("cat/a.jpg", "train/cat/b.jpg"), ", and train is a split only where all other folders"),
    ],
)
def test_folders_that_say_no_label_say_what_to_do(read, files, reason):
    *_, row = read(*files).rows()
    assert row.fault.detail.startswith(f"{files[-1]} is not in <label>/<file>{reason}")


def test_folders_below_a_label_belong_to_it(read, tmp_path):
    files = ["cat/b.jpg", "cat/persian/grey/c.jpg", "dog/pug/d.jpg"]
    source = read(*files)
    assert [row.values for row in source.rows()] == [
        ["cat/b.jpg", "cat"],
        ["cat/persian/grey/c.jpg", "cat"],
        ["dog/pug/d.jpg", "dog"],
    ]
    first, *others = FolderSource(Listing(str(tmp_path)), Columns(), "reject").rows()
    assert first.values == ["cat/b.jpg", "cat"]
    assert [row.fault.args for row in others] == [
        ("outside_layout", f"{file} is not in <label>/<file>") for file in files[1:]
    ]


def test_folders_below_a_label_of_a_split_belong_to_it(read):
    source = read("train/cat/persian/a.jpg", "test/dog/b.jpg")
    assert [row.values for row in source.rows()] == [
        ["test", "test/dog/b.jpg", "dog"],
        ["train", "train/cat/persian/a.jpg", "cat"],
    ]


@pytest.mark.parametrize(
    ("files", "rejected"),
    [
        # Images are directly in train, so it may be a label.
        (["train/cat/a.jpg", "test/cat/b.jpg", "train/c.jpg", "more/d.jpg"], 2),
        (["cat/train/a.jpg", "cat/test/b.jpg", "dog/c.jpg"], 2),
        (["data/train/cat/a.jpg", "data/test/cat/b.jpg", "more/c.jpg"], 2),
        (["train/x/val/a.jpg", "train/y/b.jpg"], 1),
        # All would have one label.
        (["photos/cat/a.jpg", "photos/dog/b.jpg"], 2),
        (["train/photos/cat/a.jpg", "test/photos/dog/b.jpg"], 2),
    ],
)
def test_folders_that_may_be_splits_or_are_around_all_others_give_no_label(read, files, rejected):
    rows = read(*files).rows()
    assert sum(bool(row.fault) for row in rows) == rejected


def test_a_misplaced_image_below_a_split_keeps_its_split(read):
    rows = list(read("train/cat/a.jpg", "train/b.jpg").rows())
    (bad,) = [row for row in rows if row.fault]
    assert bad.values == ["train", "train/b.jpg", ""]
    assert bad.fault.detail == "train/b.jpg is not in <split>/<label>/<file>"


def test_files_that_are_not_images_are_counted_and_are_not_rows(read):
    source = read("cat/a.jpg", "README.md", "cat/Thumbs.db", ".git/x.jpg", "cat/.b.jpg", "LICENCE")
    assert [row.values for row in source.rows()] == [["cat/a.jpg", "cat"]]
    assert source.ignored == ["LICENCE", "README.md", "cat/Thumbs.db"]


def test_links_to_images_are_images(read, tmp_path):
    read("cat/a.jpg")
    (tmp_path / "cat" / "b.jpg").symlink_to(tmp_path / "cat" / "a.jpg")
    (tmp_path / "cat" / "c.jpg").symlink_to(tmp_path / "nowhere")
    assert [row.values[0] for row in FolderSource(Listing(str(tmp_path)), Columns()).rows()] == [
        "cat/a.jpg",
        "cat/b.jpg",
        "cat/c.jpg",
    ]


def test_names_are_literal(read):
    files = ["50%20off/#1?.jpg", "a b/ä [x]*.jpg", "a b/\udcff.jpg"]
    assert sorted(row.values[0] for row in read(*files).rows()) == sorted(files)


def test_a_folder_without_images_is_refused(read):
    with pytest.raises(
        DataError, match=r"There is no image below .*\. It has 1 file, and no"
    ) as caught:
        read("cat/a.txt")
    assert ".jpeg" in caught.value.hint


def test_a_folder_has_no_schema(tmp_path):
    with pytest.raises(UsageError, match="has no columns"):
        FolderSource(Listing(str(tmp_path)), Columns(Schema.parse({"i": "image"})))


def test_the_endings_of_formats_that_are_not_read_are_not_known(read):
    with pytest.raises(DataError) as error:
        read("cat/a.ico", "cat/b.jp2")
    endings = ".avif .bmp .gif .heic .heif .jfif .jpe .jpeg .jpg .png .tif .tiff .webp"
    assert error.value.hint == f"Known endings: {endings}. Convert other images to PNG."
