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


def side(count, brightness=100.0, cats=0.5, size=400):
    labels = {"cat": round(cats * count), "dog": count - round(cats * count)}
    numbers = {"brightness": RANDOM.normal(brightness, 20, count), "size": np.full(count, size)}
    return Side(numbers, labels)


def test_what_moved_is_named_with_its_size():
    rows = [*compare_sides(side(200, 130, cats=0.8), side(900))]
    assert [row["what"] for row in rows] == ["brightness", "labels"]
    assert rows[0]["found"] == pytest.approx(0.55, abs=0.08)
    assert rows[0]["allowed"] == pytest.approx(0.172, abs=0.001)
    assert rows[1]["detail"] == "cat 80.0%, not 50.0%, dog 20.0%, not 50.0%"
    assert [row["what"] for row in compare_sides(side(50, size=399), side(50))] == ["size"]


def test_samples_of_the_same_images_do_not_differ():
    values = RANDOM.normal(size=(600, 40)).astype(np.float32)
    looks = compare_looks(values, np.arange(600))
    for _ in range(6):
        assert [*compare_sides(side(70), side(700))] == []
        is_side = RANDOM.permutation(600) < 120
        assert tell_apart(looks, is_side, ~is_side) == []
    # A difference that is sure, and too small to matter.
    assert [*compare_sides(side(100_000, 101), side(100_000))] == []
    # Nothing is said of nineteen images.
    assert [*compare_sides(side(19, 250), side(900))] == []


def test_features_tell_the_sides_apart():
    values = RANDOM.normal(size=(400, 40)).astype(np.float32)
    is_side = np.arange(400) < 100
    values[is_side, :5] += 1.2
    [row] = tell_apart(compare_looks(values, np.arange(400)), is_side, ~is_side)
    assert row["what"] == "features"
    assert row["found"] > 0.85
    assert row["allowed"] == pytest.approx(0.667, abs=0.001)


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
        return code, found.get("suspect_labels"), found.get("drift")

    # Without features, numbers alone.
    assert validate() == (0, None, None)
    code, suspects, drift = validate("--baseline", str(old))
    assert (code, suspects, drift["count"]) == (1, None, 1)
    assert drift["message"] == "The dataset differs from the baseline: brightness."
    [row] = drift["rows"]
    assert (row["what"], row["found"], row["detail"]) == (
        "brightness",
        1.0,
        "half from 142.2 to 186.8, not 22.25 to 66.75",
    )

    embed(old, "net 1")
    embed(new, "net 1", shift=np.r_[np.full(8, 2.0), np.zeros(24)])
    code, suspects, drift = validate("--baseline", str(old))
    [suspect] = suspects["rows"]
    assert suspect.pop("probability") < 0.2
    assert suspect == {
        "row": 31,
        "uri": str(tmp_path / "new" / "30.png"),
        "split": "train",
        "label": "c",
        "suggested": "a",
    }
    assert [row["what"] for row in drift["rows"]] == ["brightness", "features"]
    assert drift["rows"][1]["found"] > 0.9

    embed(old, "net 2")
    _, _, drift = validate("--baseline", str(old))
    assert drift["rows"][1] == {
        "what": "features",
        "detail": "they are of two models, net 2 and net 1, and cannot be compared: run darkroom "
        "embed with one model on both datasets",
    }


def test_a_baseline_needs_the_check():
    with pytest.raises(UsageError, match="drift, which is off"):
        ValidationOptions(baseline="old", policies={"drift": "off"})


def test_a_baseline_that_is_not_there_is_told_before_any_check(tmp_path, monkeypatch):
    records = convert(tmp_path, "new", 0)
    monkeypatch.setattr("darkroom.validation.judge.list_checks", None)
    with pytest.raises(MissingPathError, match="old does not exist"):
        darkroom.validate(records, baseline=tmp_path / "old")
