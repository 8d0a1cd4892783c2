"""Pictures of records in the results of notebooks: of the right records, and of nothing else."""

from __future__ import annotations

import base64
import csv
import html
import io
import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import darkroom
from darkroom.dataset.commit import read_dataset
from darkroom.images.strip import MAX_SHOWN, show_records

from ..html_page import Page
from ..pictures import encode

EVIL = "<img src=x onerror=alert(1)>"


@pytest.fixture(scope="module")
def records(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Twenty images of one gray each, the number of their row times ten; row 20 is like row 19."""
    folder = tmp_path_factory.mktemp("strip")
    rows = []
    for number in range(1, 21):
        pixels = np.full((30, 60, 3), 10 * min(number, 19), np.uint8)
        (folder / f"<b>{number}.png").write_bytes(encode(pixels, "PNG"))
        split = "eval" if number in (4, 8, 20) else "train"
        rows.append((split, f"<b>{number}.png", EVIL if number % 2 else "cat"))
    with (folder / "images.csv").open("w", newline="") as file:
        csv.writer(file).writerows([("split", "image", "label"), *rows])
    darkroom.convert(folder / "images.csv", folder / "records")
    return folder / "records"


def read_grays(page: Page) -> list[int]:
    """Returns the mean gray of each picture."""
    grays = []
    for source in page.sources:
        kind, _, data = source.partition(",")
        assert kind == "data:image/jpeg;base64"
        with Image.open(io.BytesIO(base64.b64decode(data))) as image:
            grays.append(round(float(np.asarray(image).mean())))
    return grays


def show(records: Path, **arguments) -> Page | None:
    shown = show_records(str(records), str(records / "index"), **arguments)
    return Page(shown) if shown else None


def test_records_are_shown_in_the_order_in_which_they_are_named(records: Path):
    page = show(records, rows=[7, 2, 4])
    assert np.abs(np.subtract(read_grays(page), [70, 20, 40])).max() <= 1
    odd, *even = [each["title"].rpartition("/")[2] for each in page.find("figure")]
    assert (odd, even) == ("<b>7.png", ["<b>2.png", "<b>4.png"])
    assert page.text == f"train: {EVIL} train: cat eval: cat"
    assert page.tags == {"div", "figure", "img", "figcaption"}


def test_a_sample_is_of_one_split_if_one_is_named(records: Path):
    page = show(records)
    assert len(set(read_grays(page))) == len(page.sources) == MAX_SHOWN
    assert sorted(read_grays(show(records, split="eval"))) == pytest.approx([40, 80, 190], abs=1)
    assert show(records, split="test") is None


def test_what_cannot_be_shown_is_left_out(records: Path, tmp_path: Path):
    assert show(tmp_path) is None
    assert show(records, rows=[99]) is None
    assert show_records("gs://bucket/records", "gs://bucket/records/index") is None
    fingerprint = read_dataset(str(records)).fingerprint
    assert len(show(records, fingerprint=fingerprint).sources) == MAX_SHOWN
    # By now, another dataset is there.
    assert show(records, fingerprint="0" * 64) is None


def test_objects_are_drawn(tmp_path: Path):
    (tmp_path / "1.png").write_bytes(encode(np.zeros((20, 40, 3), np.uint8), "PNG"))
    line = {"image_uri": "1.png", "objects": [{"label": "dog", "box": [4, 5, 20, 10]}]}
    (tmp_path / "boxes.jsonl").write_text(json.dumps(line))
    darkroom.convert(tmp_path / "boxes.jsonl", tmp_path / "boxes")
    [_, box] = show(tmp_path / "boxes").find("rect")
    assert [box[name] for name in ("x", "y", "width", "height")] == ["4", "5", "16", "5"]


@pytest.mark.crosses
def test_results_show_their_images(records: Path):
    converted = darkroom.convert(records.parent / "images.csv", records)
    assert len(Page(converted._repr_html_()).sources) == MAX_SHOWN
    result = darkroom.validate(records)
    assert [each.check for each in result.findings][:1] == ["label_conflicts"]
    # Images of findings come first.
    assert read_grays(Page(result._repr_html_()))[:2] == pytest.approx([190, 190], abs=1)
    assert Page(result.describe().to_card()).sources == []


def test_a_loader_shows_its_split(records: Path):
    pytest.importorskip("cv2")
    data = darkroom.load(records, framework="numpy", image_size=8)
    assert len(Page(data._repr_html_()).sources) == MAX_SHOWN
    page = Page(data["eval"]._repr_html_())
    assert "3 images" in page.text
    assert sorted(read_grays(page)) == pytest.approx([40, 80, 190], abs=1)


@pytest.mark.crosses
def test_a_gallery_shows_itself_in_a_frame_that_reaches_nothing(records: Path, tmp_path: Path):
    from darkroom.validation.browse import write_gallery

    result = write_gallery(records, tmp_path / "gallery.html")
    [frame] = Page(result._repr_html_()).find("iframe")
    assert frame["sandbox"] == "allow-scripts"
    assert frame["srcdoc"] == (tmp_path / "gallery.html").read_text()
    assert html.escape('<header id="top">') in result._repr_html_()
    (tmp_path / "gallery.html").unlink()
    assert Page(result._repr_html_()).find("iframe") == []
