import csv
from collections import Counter

import numpy as np
import pytest
from PIL import Image, ImageOps

from darkroom.errors import OutputError, RejectError
from darkroom.images.prepare import prepare_image
from darkroom.options.image import ImageOptions
from darkroom.pipelines.local import demo as module
from darkroom.pipelines.local.demo import (
    FAULTS,
    LEAKED_FAULT,
    LEAKED_FROM,
    NEAR_COPIES,
    RELABELLED_FAULT,
    RELABELLED_FROM,
    TURNED_FAULT,
    WRONG_LABELS,
    write_demo_dataset,
)
from darkroom.pipelines.local.drawings import LABELS, draw_label
from darkroom.storage.ledger import LEDGER_FILE

COUNT = 15


@pytest.fixture(scope="module", autouse=True)
def few():
    """Fewer drawings of each label, drawn once for all tests."""
    drawn = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "NUM_OF_LABEL", COUNT)
        rows = list(module._add_drawings(drawn))
        patch.setattr(module, "_add_drawings", lambda files: files.update(drawn) or rows)
        yield


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
    assert path.name == "drawings.csv"
    copies = 2 + len(NEAR_COPIES)
    assert len(rows) == len({row[1] for row in rows}) == COUNT * len(LABELS) + 4 + copies
    assert rows[0] == ("TRAIN", "drawings/boat/0000.png", "boat")
    counts = Counter((split, label) for split, _, label in rows)
    assert {label for _, label in counts} == set(LABELS)
    assert {label for split, label in counts if split == "VALIDATION"} == set(LABELS)
    formats = Counter((path.split("/")[1], path[-3:]) for _, path, _ in rows if "/00" in path)
    assert {formats[label, "png"] for label in LABELS} == {4}


def test_every_fault_has_its_expected_outcome(demo):
    path, rows = demo
    named = {row[1]: row for row in rows}
    for fault in FAULTS:
        assert fault.path in named
        result = outcome(path.parent, fault.path)
        if fault.outcome == "rejected":
            assert result == fault.code
        else:
            assert result[1] == (("orientation",) if fault is TURNED_FAULT else ())
    assert (named[LEAKED_FROM][0], named[LEAKED_FAULT.path][0]) == ("TRAIN", "VALIDATION")
    assert named[LEAKED_FROM][2] == named[LEAKED_FAULT.path][2]
    assert named[RELABELLED_FROM][0] == named[RELABELLED_FAULT.path][0] == "TRAIN"
    assert (named[RELABELLED_FROM][2], named[RELABELLED_FAULT.path][2]) == ("cup", "house")
    for fault in NEAR_COPIES:
        assert named[fault.path][0] == "VALIDATION"
    shown = [(fault.path.split("/")[1], named[fault.path][2]) for fault in WRONG_LABELS]
    assert len(shown) == 6
    assert not [label for label, given in shown if label == given]


def test_a_drawing_is_large_colored_and_upright(demo):
    path, _ = demo
    with Image.open(path.parent / "drawings/house/0000.png") as image:
        assert (image.size, image.mode) == ((200, 200), "RGB")
    expected = np.asarray(draw_label("sun", np.random.default_rng([LABELS.index("sun"), 6])), int)
    with Image.open(path.parent / TURNED_FAULT.path) as image:
        assert image.getexif()[0x0112] == 6
        upright = np.asarray(ImageOps.exif_transpose(image), int)
        assert np.abs(upright - expected).mean() < 5 < np.abs(np.asarray(image) - expected).mean()


def test_a_second_call_writes_only_what_is_gone(demo):
    path, _ = demo
    lost = path.parent / "drawings/boat/0000.png"
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
    name = "drawings/cup/0010.jpg"
    file = path.parent / name
    before = file.read_bytes()
    file.write_bytes(b"mine")
    with pytest.raises(OutputError, match=f"changed since: {name}") as stop:
        write_demo_dataset(path.parent)
    assert "darkroom demo --root DIR" in stop.value.hint
    assert file.read_bytes() == b"mine"
    file.write_bytes(before)


def test_a_folder_of_photos_gets_no_drawings(tmp_path):
    (tmp_path / "holiday.jpg").write_bytes(b"mine")
    with pytest.raises(OutputError, match=r"contains unrelated files: holiday\.jpg"):
        write_demo_dataset(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["holiday.jpg"]
