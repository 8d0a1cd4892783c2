"""Many small files, and the label files of YOLO among them."""

import pytest

from darkroom.manifest.formats.files import MAX_FILE_BYTES, read_files
from darkroom.manifest.formats.yolo.files import pair_labels


@pytest.mark.fault(
    111,
    "a label file in another encoding, or very large",
    "its image is rejected",
    code="`bad_annotation`",
)
def test_a_file_that_cannot_be_read_is_a_fault_and_hides_no_other(write):
    files = {
        "a.txt": "cat",
        "latin.txt": "café".encode("latin-1"),
        "large.txt": b" " * (MAX_FILE_BYTES + 1),
        "folder.txt/a": "",
        "z.txt": "\ufeffdog",
    }
    folder = write(files)
    paths = [f"{folder}/{name.partition('/')[0]}" for name in (*files, "gone.txt")]
    found = [*read_files(paths, folder, lambda data, _: data.decode("utf-8-sig"))]
    assert [found[0], found[4]] == ["cat", "dog"]
    assert [(each.reason, each.detail[:40]) for each in (*found[1:4], found[5])] == [
        ("bad_annotation", "latin.txt: 'utf-8' codec can't decode by"),
        ("bad_annotation", "large.txt has more than 8,388,608 bytes"),
        ("bad_annotation", "folder.txt cannot be read: it is a folde"),
        ("bad_annotation", "gone.txt cannot be read: there is no suc"),
    ]


def test_many_files_keep_their_order(write):
    folder = write({f"{number}.txt": f"{number}" for number in range(100)})
    paths = [f"{folder}/{number}.txt" for number in range(100)]
    assert [*read_files(paths, folder, lambda data, name: (int(data), name))] == [
        (number, f"{number}.txt") for number in range(100)
    ]


@pytest.mark.parametrize(
    ("image", "label"),
    [
        ("images/set/images/train/a.jpg", "images/set/labels/train/a.txt"),
        ("images/set/train/a.jpg", "images/set/train/a.txt"),
        ("set/images/a.b.jpg", "set/labels/a.b.txt"),
    ],
)
def test_labels_are_where_the_last_images_is_or_beside_the_image(write, image, label):
    folder = write(
        {image: "", label: "", f"{label[:-5]}lost.txt": "", "set/labels/classes.txt": ""}
    )
    labels, lost = pair_labels([f"{folder}/{image}", f"{folder}/{image[:-4]}2.jpg"])
    assert labels == {f"{folder}/{image}": f"{folder}/{label}"}
    assert [*lost.values()] == [f"{folder}/{label[:-5]}lost.txt"]
