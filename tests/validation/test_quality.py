"""Checks of single images: what a person would mark is found, and nothing where all are alike."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from PIL import Image, ImageFilter

import darkroom
from darkroom.dataset.index import read_index
from darkroom.features.table import write_features
from darkroom.options import ConversionOptions
from darkroom.validation import quality
from darkroom.validation.quality import QualityProblem, find_outliers

from ..pictures import encode, make_noise
from .test_judge import found, judge, record  # noqa: F401  the fixture

SIZE = 160, 120


def draw(seed: int) -> Image.Image:
    """A picture with sharp edges, as photographs have."""
    blocks = Image.fromarray(make_noise(seed, 12, 16))
    return blocks.resize(SIZE, Image.Resampling.NEAREST)


def shift(image: Image.Image, factor: float, added: float) -> Image.Image:
    return image.point(lambda level: level * factor + added)


PLANTED = {
    "tiny": draw(100).resize((20, 15)),
    "extreme aspect": draw(101).resize((1200, 120), Image.Resampling.NEAREST),
    "dark": shift(draw(102), 0.1, 0),
    "bright": shift(draw(103), 0.1, 229),
    "nearly uniform": shift(draw(104), 0.05, 120),
    "blurred": draw(105).filter(ImageFilter.GaussianBlur(3)),
}


def write_images(folder: Path, images: dict[str, Image.Image]) -> Path:
    for number, (name, image) in enumerate(images.items()):
        path = folder / ("train", "eval")[number % 2] / "ab"[number // 2 % 2] / f"{name}.jpg"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(encode(image, "JPEG", quality=95))
    return folder


def find_quality(records: Path) -> dict[str, str]:
    findings = darkroom.validate(records).findings
    return {
        Path(row["uri"]).stem: row["problem"]
        for finding in findings
        if finding.check == "quality"
        for row in finding.rows
    }


@pytest.mark.parametrize("count", [60, 10])
def test_what_a_person_would_mark_is_marked(tmp_path, count):
    usual = {f"usual-{number}": draw(number) for number in range(count)}
    source = write_images(tmp_path / "in", {**usual, **PLANTED})
    darkroom.convert(source, tmp_path / "records")
    found = find_quality(tmp_path / "records")
    assert {*found} == {*PLANTED}
    assert [name for name in PLANTED if name not in found[name]] == []


def test_the_strongest_blur_is_marked_however_few_levels_are_left(tmp_path):
    usual = {f"usual-{number}": draw(number) for number in range(30)}
    soft = Image.fromarray(make_noise(100, 3, 4)).resize(SIZE, Image.Resampling.BICUBIC)
    images = {**usual, "soft": shift(soft, 0.2, 100)}
    darkroom.convert(write_images(tmp_path / "in", images), tmp_path / "records")
    assert find_quality(tmp_path / "records") == {"soft": "blurred"}


def test_images_that_people_ignore_are_not_shown(tmp_path):
    images = {**{f"usual-{number}": draw(number) for number in range(10)}, **PLANTED}
    source = write_images(tmp_path / "in", images)
    darkroom.convert(source, tmp_path / "seen")
    [dark] = [
        row for row in read_index(str(tmp_path / "seen/index")).to_pylist() if "dark" in row["uri"]
    ]
    decision = {"action": "ignore", "key": dark["key"], "sha256": dark["sha256"]}
    (tmp_path / "decisions.jsonl").write_text(json.dumps(decision))
    darkroom.convert(
        source,
        tmp_path / "records",
        options=ConversionOptions(decisions=tmp_path / "decisions.jsonl"),
    )
    assert {*find_quality(tmp_path / "records")} == {*PLANTED} - {"dark"}


def test_images_that_are_all_alike_are_not_marked(tmp_path):
    same = {f"{number}": shift(draw(number), 0.05, 0) for number in range(12)}
    darkroom.convert(write_images(tmp_path / "in", same), tmp_path / "records")
    assert find_quality(tmp_path / "records") == {}


def test_images_that_are_dark_because_of_their_bits_are_marked_however_many(judge):  # noqa: F811
    def dark(row, luminance, changes, **more):
        return record(row, "train", "a", height=20, luminance=luminance, changes=changes, **more)

    records = [
        *(dark(row, 50 - row, "format:tiff,bit_depth,low_bits") for row in range(1, 13)),
        dark(13, 9.0, "bit_depth,low_bits", ignored="*"),
        # One bit, as of digits that somebody wrote.
        dark(14, 9.0, "bit_depth"),
    ]
    # An ignored pair of equal images hides neither of them here.
    records[11] |= {"pixel_hash": records[10]["pixel_hash"], "ignored": records[10]["key"]}
    finding = found(judge(records))["quality"]
    assert [row["row"] for row in finding.rows] == [*range(12, 0, -1)]
    assert {row["problem"] for row in finding.rows} == {"nearly black"}
    assert "12 images have more than 8 bits, of which only the lower ones are" in finding.message


def test_images_whose_features_are_far_from_their_class_are_marked(judge, tmp_path):  # noqa: F811
    labels = [*"ab" * 30, *"c" * 10]
    records = [record(n + 1, "train", label, height=20) for n, label in enumerate(labels)]
    rng = np.random.default_rng(0)
    centers = dict(zip("abc", 5 * rng.normal(size=(3, 32)), strict=True))
    values = np.stack([centers[label] + rng.normal(size=32) for label in labels])
    # As an image of the other class; and one of a class with too few to say what is usual.
    values[[6, 65]] = centers["b"] + rng.normal(size=(2, 32))
    (tmp_path / "run").mkdir()
    with open(tmp_path / "run/features.parquet", "wb") as file:
        write_features(file, "drawn 1", 32, [(pa.Table.from_pylist(records), values)])
    [row] = found(judge(records))["quality"].rows
    assert (row["row"], row["label"], row["problem"]) == (7, "a", "far from its class")


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (np.full(1_000_000, -6.0), 0),
        (np.random.default_rng(0).exponential(1, 10_000), 200),
        (np.repeat([0.0, 9.0], 5_000), 0),
        (np.append(np.zeros(9), 3.0), 1),
        (np.append(np.zeros(8), 3.0), 0),
        (np.zeros(1), 0),
        (np.zeros(0), 0),
    ],
)
def test_at_most_two_percent_are_outliers(values, expected):
    rows = np.arange(len(values))
    problem = QualityProblem("tiny", rows, values, limit=-100)
    found = find_outliers(problem)
    assert len(found) == expected
    assert [row for row, _ in found] == rows[np.argsort(-values, kind="stable")][:expected].tolist()
    assert find_outliers(problem._replace(limit=100.0)) == []


def test_places_are_found_and_an_update_takes_them_out(tmp_path):
    images = {f"usual-{number}": draw(number) for number in range(8)}
    source = write_images(tmp_path / "in", images)
    exif = Image.Exif()
    exif[0x010F] = "Maker"
    exif.get_ifd(0x8825).update({1: "N", 2: (52.0, 31.0, 0.0)})
    exif.get_ifd(0x8769)[0xA431] = "4711"
    path = source / "train/a/usual-0.jpg"
    path.write_bytes(encode(images["usual-0"], "JPEG", quality=95, exif=exif))
    darkroom.convert(source, tmp_path / "records")
    [finding] = [
        each
        for each in darkroom.validate(tmp_path / "records").findings
        if each.check == "location_data"
    ]
    [row] = finding.rows
    assert (finding.policy, finding.count, row["uri"]) == ("warn", 1, str(path))
    assert row["problem"] == "GPS position,serial number"
    before = read_index(str(tmp_path / "records/index")).to_pylist()

    options = ConversionOptions(update=True, strip_metadata=True)
    darkroom.convert(source, tmp_path / "records", options=options)
    after = read_index(str(tmp_path / "records/index")).to_pylist()
    [(old, new)] = [
        (old, new) for old, new in zip(before, after, strict=True) if old["sha256"] != new["sha256"]
    ]
    names = {name for name in new if new[name] != old[name]}
    assert names - {"offset"} == {"sha256", "size_bytes", "changes", "private", "length"}
    assert (new["changes"], new["private"]) == ("metadata", "")
    assert not [
        each
        for each in darkroom.validate(tmp_path / "records").findings
        if each.check == "location_data"
    ]
    darkroom.convert(source, tmp_path / "new", options=replace(options, update=False))
    assert read_index(str(tmp_path / "new/index")).to_pylist() == after


def test_a_sample_is_said_to_be_one(tmp_path, monkeypatch):
    """Of all images up to a number, and of so many otherwise: message, page and JSON say it."""
    images = {f"usual-{number}": draw(number) for number in range(20)} | PLANTED
    darkroom.convert(write_images(tmp_path / "in", images), tmp_path / "records")
    messages = []
    for most in (len(images), len(images) - 1):
        monkeypatch.setattr(quality, "_MAX_MEASURED", most)
        result = darkroom.validate(tmp_path / "records", report_dir=tmp_path / "report")
        [message] = [each.message for each in result.findings if each.check == "quality"]
        messages.append(message)
        for name in ("report.json", "report.html"):
            assert message in (tmp_path / "report" / name).read_text("utf-8")
    whole, sampled = messages
    assert "of 26" not in whole
    assert "nearly uniform 1 (of 25 of 26), blurred 1 (of 25 of 26)." in sampled
