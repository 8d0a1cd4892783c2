import csv
from collections import Counter

import numpy as np
import pytest
from PIL import Image, ImageOps

from darkroom.errors import OutputError, RejectError
from darkroom.images.prepare import prepare_image
from darkroom.options.image import ImageOptions
from darkroom.pipelines.local.demo import (
    FAULTS,
    LEAKED,
    LEAKED_FROM,
    NUM_DIGITS,
    RELABELLED,
    RELABELLED_FROM,
    TURNED,
    read_digits,
    write_demo_dataset,
)
from darkroom.storage.ledger import LEDGER_FILE


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    path = write_demo_dataset(tmp_path_factory.mktemp("demo"))
    with path.open(newline="") as file:
        return path, [tuple(row) for row in csv.reader(file)]


def outcome(root, path):
    """Returns the reject's reason, or the pixel hash and the changes."""
    try:
        image = prepare_image((root / path).read_bytes(), ImageOptions())
    except FileNotFoundError:
        return "missing"
    except RejectError as error:
        return error.reason
    return image.pixel_hash, image.changes


def test_rows(demo):
    path, rows = demo
    assert path.name == "digits.csv"
    assert len(rows) == len({row[1] for row in rows}) == NUM_DIGITS + 6
    assert rows[0] == ("TRAIN", "digits/0/0000.png", "0")
    counts = Counter((split, label) for split, _, label in rows)
    assert Counter(split for split, _, _ in rows) == {"TRAIN": 1446, "VALIDATION": 357}
    assert {label for _, label in counts} == set("0123456789")
    assert (
        min(counts[split, digit] for split in ("TRAIN", "VALIDATION") for digit in "0123456789")
        > 33
    )
    formats = Counter((label, path[-3:]) for _, path, label in rows if path.startswith("digits/"))
    assert all(abs(formats[digit, "png"] - formats[digit, "jpg"]) <= 2 for digit in "0123456789")


def test_every_fault_has_its_expected_outcome(demo):
    path, rows = demo
    named = {row[1]: row for row in rows}
    for fault in FAULTS:
        assert fault.path in named
        result = outcome(path.parent, fault.path)
        if fault.outcome == "rejected":
            assert result == fault.code
        else:
            assert result[1] == (("orientation",) if fault is TURNED else ())
    assert (named[LEAKED_FROM][0], named[LEAKED.path][0]) == ("TRAIN", "VALIDATION")
    assert named[LEAKED_FROM][2] == named[LEAKED.path][2]
    assert named[RELABELLED_FROM][0] == named[RELABELLED.path][0] == "TRAIN"
    assert (named[RELABELLED_FROM][2], named[RELABELLED.path][2]) == ("3", "8")
    rejected = sum(fault.outcome == "rejected" for fault in FAULTS)
    assert 0 < rejected / len(rows) < 0.01


def test_pixels_are_the_digits(demo):
    path, _ = demo
    expected, labels = read_digits()
    # The sum of scikit-learn's pixels, and what its first digits are.
    assert np.rint(expected / (255 / 16)).sum() == 561_718
    assert "".join(labels[:20]) == "01234567890123456789"
    first = np.flatnonzero(np.array(labels) == "4")
    with Image.open(path.parent / "digits/4/0002.png") as image:
        assert image.mode == "L"
        np.testing.assert_array_equal(np.asarray(image), expected[first[2]])
    turned = expected[np.flatnonzero(np.array(labels) == "7")[21]].astype(int)
    with Image.open(path.parent / TURNED.path) as image:
        assert image.getexif()[0x0112] == 6
        upright = np.asarray(ImageOps.exif_transpose(image)).astype(int)
        assert np.abs(upright - turned).mean() < 3 < np.abs(np.asarray(image) - turned).mean()


def test_a_second_call_writes_only_what_is_gone(demo):
    path, _ = demo
    lost = path.parent / "digits/0/0000.png"
    data = lost.read_bytes()
    lost.unlink()
    # Images with the same bytes need no ledger.
    (path.parent / LEDGER_FILE).unlink()
    before = {file: file.stat().st_mtime_ns for file in path.parent.rglob("*.*g")}
    assert write_demo_dataset(path.parent) == path
    assert lost.read_bytes() == data
    assert {file: file.stat().st_mtime_ns for file in before} == before


def test_a_file_that_somebody_changed_is_kept(demo):
    path, _ = demo
    name = "digits/3/0010.png"
    file = path.parent / name
    before = file.read_bytes()
    file.write_bytes(b"mine")
    with pytest.raises(OutputError, match=f"changed since: {name}") as stop:
        write_demo_dataset(path.parent)
    assert "darkroom demo --root DIR" in stop.value.hint
    assert file.read_bytes() == b"mine"
    file.write_bytes(before)


def test_a_folder_of_photos_gets_no_digits(tmp_path):
    (tmp_path / "holiday.jpg").write_bytes(b"mine")
    with pytest.raises(OutputError, match=r"contains unrelated files: holiday\.jpg"):
        write_demo_dataset(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["holiday.jpg"]
