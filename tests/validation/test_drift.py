"""Splits and datasets that differ: planted in drawn numbers, features and datasets."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import darkroom
from darkroom.cli import main
from darkroom.dataset.index import read_index
from darkroom.errors import MissingPathError, UsageError
from darkroom.features.table import write_features
from darkroom.options.validation import ValidationOptions
from darkroom.validation.drift import Side, compare_sides, tell_apart
from darkroom.validation.foretold import compare_looks

RANDOM = np.random.default_rng(3)


def side(count, brightness=100.0, cats=0.5, size=400, name="train"):
    labels = {"cat": round(cats * count), "dog": count - round(cats * count)}
    numbers = {"brightness": RANDOM.normal(brightness, 20, count), "size": np.full(count, size)}
    return Side(name, np.arange(count) + 1, numbers, labels, {"cat": [3, 4], "dog": [1]})


def test_what_moved_is_named_with_its_size_and_images():
    test = side(200, 130, cats=0.8, name="test")
    test.numbers["brightness"][[70, 9, 4]] = 900, -600, np.nan
    light, labels = compare_sides(test, side(900))
    assert (light.what, labels.what) == ("brightness", "labels")
    assert light.found == pytest.approx(0.55, abs=0.08)
    assert light.allowed == pytest.approx(0.172, abs=0.001)
    # The farthest from train come first, where test has more of them.
    assert next(iter(light.images.items())) == (71, 900)
    assert len(light.images) == 10
    assert min(light.images.values()) > 150
    [dark] = compare_sides(side(90, 60, name="test"), side(900))
    assert max(dark.images.values()) < 60
    assert labels.detail == (
        "cat: 80.0% of test, 50.0% of train; dog: 20.0% of test, 50.0% of train. "
        "Half the sum of such differences is 0.300, and 0.114 is allowed"
    )
    assert [*labels.images] == [3, 4]
    [size] = compare_sides(side(50, size=399, name="test"), side(50))
    assert size.detail == (
        "100% of test and 0% of train are at most 399: a difference of 1.000, and 0.440 is "
        "allowed. The middle half of test is from 399 to 399, that of train from 400 to 400"
    )


def test_samples_of_the_same_images_do_not_differ():
    values = RANDOM.normal(size=(600, 40)).astype(np.float32)
    looks = compare_looks(values, np.arange(600))
    for _ in range(6):
        assert [*compare_sides(side(70), side(700))] == []
        is_side = RANDOM.permutation(600) < 120
        assert tell_apart(looks, is_side, ~is_side, np.arange(600)) == []
    # A difference that is sure, and too small to matter.
    assert [*compare_sides(side(100_000, 101), side(100_000))] == []
    # Nothing is said of nineteen images.
    assert [*compare_sides(side(19, 250), side(900))] == []


def test_features_tell_the_sides_apart():
    values = RANDOM.normal(size=(400, 40)).astype(np.float32)
    is_side = np.arange(400) < 100
    values[is_side, :5] += 1.2
    looks, rows = compare_looks(values, np.arange(400)), np.arange(400) + 1
    [moved] = tell_apart(looks, is_side, ~is_side, rows)
    assert moved.what == "features"
    assert moved.found > 0.85
    assert moved.allowed == pytest.approx(0.667, abs=0.001)
    assert max(moved.images) <= 100
    assert [*moved.images.values()] == sorted(moved.images.values(), reverse=True)


def convert(folder: Path, name: str, level: int) -> Path:
    """Converts 90 images of three classes; one has a wrong label."""
    (folder / name).mkdir()
    lines = ["image_uri,label,split"]
    for n in range(90):
        pixels = np.full((9, 9), level + n, np.uint8)
        Image.fromarray(pixels).save(folder / name / f"{n}.png")
        label = "c" if n == 30 else "abc"[n % 3]
        lines.append(f"{n}.png,{label},{'TRAIN' if n % 9 < 6 else 'VALIDATION'}")
    (folder / name / "list.csv").write_text("\n".join(lines))
    darkroom.convert(folder / name / "list.csv", folder / f"{name}-records")
    return folder / f"{name}-records"


def embed(records: Path, model: str, shift: float = 0.0) -> None:
    centers = np.random.default_rng(1).normal(size=(3, 32))
    random = np.random.default_rng(2)
    rows = read_index(str(records / "index"))
    classes = [int(Path(uri).stem) % 3 for uri in rows["uri"].to_pylist()]
    values = centers[classes] + 0.6 * random.normal(size=(len(rows), 32)) + shift
    with open(records / "features.parquet", "wb") as file:
        write_features(file, model, 32, [(rows, values)])


@pytest.mark.fault(
    82,
    "features of another model than those of the baseline",
    "not compared",
    code="finding",
    hint="compute both with one model",
)
def test_a_dataset_with_a_wrong_label_is_compared_with_an_earlier_one(tmp_path, capsys):
    old, new = (convert(tmp_path, name, level) for name, level in (("old", 0), ("new", 120)))

    def validate(*more):
        code = main(["validate", str(new), "--policy", "drift=fail", "--json", *more])
        findings = json.loads(capsys.readouterr().out)["findings"]
        found = {finding["check"]: finding for finding in findings}
        drift = [finding for finding in findings if finding["check"] == "drift"]
        return code, found.get("suspect_labels"), drift

    # Without features, numbers alone.
    assert validate() == (0, None, [])
    code, suspects, [drift] = validate("--baseline", str(old))
    assert (code, suspects, drift["count"]) == (1, None, 10)
    assert drift["message"] == (
        "The dataset differs from the baseline in brightness (0 to 255): 0% of the dataset and "
        "100% of the baseline are at most 89: a difference of 1.000, and 0.328 is allowed. The "
        "middle half of the dataset is from 142.2 to 186.8, that of the baseline from 22.25 to "
        "66.75."
    )
    assert drift["measured"] == {"brightness": {"found": 1.0, "allowed": 0.328}}
    assert drift["rows"][0] == {
        "row": 90,
        "uri": str(tmp_path / "new" / "89.png"),
        "split": "eval",
        "label": "c",
        "brightness": 209.0,
    }

    embed(old, "net 1")
    embed(new, "net 1", shift=np.r_[np.full(8, 2.0), np.zeros(24)])
    code, suspects, [drift] = validate("--baseline", str(old))
    [suspect] = suspects["rows"]
    assert suspect.pop("probability") < 0.2
    assert suspect == {
        "row": 31,
        "uri": str(tmp_path / "new" / "30.png"),
        "split": "train",
        "label": "c",
        "suggested": "a",
    }
    # All that differs from one dataset is one finding, with the images of each measure in turns.
    assert [*drift["measured"]] == ["brightness", "features"]
    assert drift["measured"]["features"]["found"] > 0.9
    assert ". Also in features: of two images, one of each side, " in drift["message"]
    first, second, *_ = drift["rows"]
    assert ("brightness" in first, "features" in second) == (True, True)

    embed(old, "net 2")
    _, _, (drift, _) = validate("--baseline", str(old))
    assert drift["message"] == (
        "The features of the baseline and of the dataset are of two models, net 2 and net 1, and "
        "cannot be compared."
    )


def test_the_advice_fits_the_source_and_pages_show_the_images(tmp_path):
    for n in range(60):
        split, level = ("train", 60) if n % 2 else ("test", 160)
        folder = tmp_path / "images" / split / "ab"[n % 4 // 2]
        folder.mkdir(parents=True, exist_ok=True)
        pixels = np.full((9, 9), level + n, np.uint8)
        Image.fromarray(pixels).save(folder / f"{n}.png")
    darkroom.convert(tmp_path / "images", tmp_path / "records")
    result = darkroom.validate(tmp_path / "records", report_dir=tmp_path / "report")
    [drift] = (each for each in result.findings if each.check == "drift")
    assert drift.hint.endswith(
        "If that is not meant, put the images of all splits into the same "
        "folders of labels, so that they are assigned at random."
    )
    assert ".png (test, b): brightness 218" in result.to_text()
    page = (tmp_path / "report" / "report.html").read_text("utf-8")
    shown = page.partition("The split test differs from train in brightness")[2]
    assert shown.partition("</article>")[0].count("<img") == 10


def test_a_baseline_needs_the_check():
    with pytest.raises(UsageError, match="drift, which is off"):
        ValidationOptions(baseline="old", policies={"drift": "off"})


def test_a_baseline_that_is_not_there_is_told_before_any_check(tmp_path, monkeypatch):
    records = convert(tmp_path, "new", 0)
    monkeypatch.setattr("darkroom.validation.judge.list_dataset_checks", None)
    with pytest.raises(MissingPathError, match="old does not exist"):
        darkroom.validate(records, baseline=tmp_path / "old")
