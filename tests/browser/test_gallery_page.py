"""The gallery in a real browser: clicks, keys, the file of decisions, requests, and axe-core."""

from __future__ import annotations

import json
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import darkroom
from darkroom.cli import main
from darkroom.dataset.index import read_index
from darkroom.features.table import write_features
from darkroom.options import ConversionOptions
from darkroom.validation.gallery.encode import encode_gallery
from darkroom.validation.report.findings import Finding
from darkroom.validation.report.pictures import Records

from ..environments import make_environment
from ..pictures import encode, make_scene

pytestmark = pytest.mark.newest

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
SCRIPT = "</script><script>alert(1)</script>"


@pytest.fixture(scope="module")
def records(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Twenty images of two labels, two of them in two splits, with features."""
    folder = tmp_path_factory.mktemp("browser")
    lines = ["split,image,label"]
    for number in range(20):
        name = f"{number:02d}.jpg"
        (folder / name).write_bytes(encode(make_scene(number), "JPEG"))
        lines.append(
            f"{'eval' if number < 8 else 'train'},{name},{'cat' if number % 2 else SCRIPT}"
        )
    for number in (10, 11):
        shutil.copy(folder / f"{number}.jpg", folder / f"copy{number}.jpg")
        lines.append(f"eval,copy{number}.jpg,{'cat' if number % 2 else SCRIPT}")
    (folder / "images.csv").write_text("\n".join(lines))
    darkroom.convert(folder / "images.csv", folder / "records")
    index = read_index(str(folder / "records/index"), ["key", "row"])
    values = np.zeros((len(index), 8), np.float32)
    values[:, 0] = index["row"].to_numpy()
    values[:, 1] = np.arange(len(index)) % 3
    with (folder / "records/features.parquet").open("wb") as file:
        write_features(file, "test", 8, [(index["key"].to_pylist(), values)])
    return folder / "records"


@pytest.fixture(scope="module")
def folder(records: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What a browser saw and saved."""
    if CHROMIUM is None:
        pytest.skip("needs Chromium")
    folder = tmp_path_factory.mktemp("seen")
    predictions = records.parent / "told.csv"
    # Of three images, all of train, the model says another label.
    wrong = {12: "cat", 14: "cat", 13: SCRIPT}
    labels = [wrong.get(number, "cat" if number % 2 else SCRIPT) for number in range(20)]
    lines = [f"{number:02d}.jpg,{label},0.{90 - number}" for number, label in enumerate(labels)]
    predictions.write_text("\n".join(["image_uri,label,score", *lines]))
    report = darkroom.validate(records).report
    doubt = {"row": 16, "suggested": SCRIPT, "probability": 0.1}
    doubts = Finding("suspect_labels", "warn", 1, "One label is wrong.", rows=(doubt,))
    report = replace(report, findings=(*report.findings, doubts))
    page = encode_gallery(report, Records(str(records), f"{records}/index"), predictions)
    (folder / "gallery.html").write_text(page)
    python = make_environment("browser", ["playwright", "axe-playwright-python"]) / "python"
    script = Path(__file__).with_name("browse.py")
    done = subprocess.run(
        [str(python), str(script), str(folder / "gallery.html"), CHROMIUM, str(folder)],
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr[-3_000:]
    return folder


@pytest.fixture(scope="module")
def seen(folder: Path) -> dict:
    return json.loads((folder / "seen.json").read_text())


def test_nothing_is_requested_and_no_text_runs(seen: dict, folder: Path):
    asked = {url for url in seen["requests"] if not url.startswith(("data:", "blob:"))}
    assert asked == {(folder / "gallery.html").as_uri()}
    assert seen["errors"] == []


def test_it_is_usable_with_a_screen_reader_and_on_a_phone(seen: dict):
    assert len(seen["axe"]) == 8
    assert {name: faults for name, faults in seen["axe"].items() if faults} == {}
    assert set(seen["wider"].values()) == {0}


def test_filters_show_the_rows_that_the_dataset_has(seen: dict):
    assert seen["finding"] == "4 of 22 images"
    assert seen["split"] == "10 of 22 images"
    assert SCRIPT in seen["first pair"]
    assert "10.jpg" in seen["first pair"]
    assert seen["mode"] == "difference"
    assert seen["selected"] == "2 selected"
    count, _, rest = seen["lasso"].partition(" ")
    assert 0 < int(count) < 22
    assert rest == "of 22 images"


def test_mistakes_of_a_model_are_taken_enlarged_and_found(seen: dict):
    assert seen["mistake"] == f"{SCRIPT} taken for cat\n2"
    assert seen["mistakes"] == "2 of 22 images"
    assert seen["first mistake"] == f"{SCRIPT}\ntrain\nmodel: cat 0.78\n12.jpg"
    assert seen["enlarged"] == f"{seen['first mistake']}\nClose"
    assert seen["wide"] > 288
    assert seen["axe, enlarged"] == []
    # Closed by Escape, the page has the focus where it was, and nothing is decided.
    assert seen["focused"] == seen["first mistake"]
    # Both are taken, and taken back, in one step.
    assert (seen["taken"], seen["taken back"]) == (["now cat"] * 2, ["", ""])
    assert seen["moved"] == ["now cat, to eval", ""]
    assert seen["named"] == "2 of 22 images"
    # What a finding suggests comes before what the model says.
    suspect = f"cat\ntrain\nmodel: cat 0.75\n15.jpg\nsuggested {SCRIPT}\nprobability 0.100"
    assert seen["suspect"] == suspect
    assert seen["corrected"] == f"now {SCRIPT}"


def test_decisions_become_a_file_for_the_next_conversion(
    seen: dict, folder: Path, records: Path, capsys
):
    assert "drop" in seen["after keep left"][0]
    assert seen["relabelled"] == ["now cat", "now cat"]
    assert seen["reopened"] == "6 decisions"
    output = folder / "decisions.jsonl"
    saved = folder / "saved.json"
    assert main(["gallery", str(records), "--resolve", str(saved), "--output", str(output)]) == 0
    assert "drop 2" in capsys.readouterr().out
    found = [json.loads(line) for line in output.read_text().splitlines()]
    actions = ["drop"] * 2 + ["ignore", "move"] + ["relabel"] * 3
    assert sorted(each["action"] for each in found) == actions
    [move] = [each for each in found if each["action"] == "move"]
    assert (Path(move["uri"]).name, move["split"]) == ("12.jpg", "eval")
    names = {Path(each["uri"]).name for each in found if each["action"] == "drop"}
    assert names == {"copy10.jpg", "11.jpg"}

    # The next run applies them, and passes the gate that stopped the first one.
    assert [
        each.check for each in darkroom.validate(records).findings if each.policy == "fail"
    ] == ["leakage"]
    options = ConversionOptions(decisions=output)
    darkroom.convert(records.parent / "images.csv", folder / "next", options=options)
    darkroom.validate(folder / "next").check()
