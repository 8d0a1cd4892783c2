"""What changed between two datasets."""

from __future__ import annotations

import json
from dataclasses import replace

import duckdb
import pytest
from PIL import Image

import darkroom
from darkroom.cli import main
from darkroom.dataset.layout import Folders
from darkroom.errors import DataError, UsageError
from darkroom.options.conversion import ConversionOptions
from darkroom.options.diff import DiffOptions
from darkroom.storage.parquet import BATCH_ROWS
from darkroom.validation.diff import compare_datasets, find_files
from darkroom.validation.report.findings import format_finding_row


def draw(folder, number, quality=90, level=0):
    pixels = Image.new("RGB", (8 + number % 5, 9), (level, 10 * (number % 20), number))
    pixels.save(folder / f"{number:02d}.jpg", quality=quality)


@pytest.fixture(scope="module")
def worlds(tmp_path_factory):
    """Two datasets, and the image that changed in each way."""
    folder = tmp_path_factory.mktemp("diff")
    images = folder / "images"
    images.mkdir()
    rows = {n: ("red" if n < 20 else "blue", "TEST" if n % 10 == 0 else "TRAIN") for n in range(40)}
    for number in rows:
        draw(images, number)

    def convert(name):
        lines = [f"{number:02d}.jpg,{','.join(row)}\n" for number, row in rows.items()]
        (images / "list.csv").write_text("image_uri,label,split\n" + "".join(lines))
        darkroom.convert(images / "list.csv", folder / name, max_rejects=0.1)
        return folder / name

    old = convert("old")
    draw(images, 40)
    rows[40] = ("green", "TRAIN")
    del rows[1]
    rows[10] = ("red", "TRAIN")
    rows[2] = ("blue", "TRAIN")
    draw(images, 3, level=200)
    rows[41] = ("red", "TRAIN")  # There is no such file.
    return old, convert("new")


def find(result):
    return {finding.check: finding for finding in result.findings}


def test_each_change_is_counted_and_shown(worlds):
    found = find(darkroom.diff(*worlds))
    told = {check: finding.message for check, finding in found.items() if finding.policy == "info"}
    assert told == {
        "added": "Images that are new: 1 (train 1; green 1).",
        "removed": "Images that are gone: 1 (train 1; red 1).",
        "moved": "Images that are in another split: 1 (train 1; red 1).",
        "relabelled": "Images with another label: 1 (train 1; blue 1).",
        "redrawn": "Images with other pixels: 1 (train 1; red 1).",
        # Green is between blue and red.
        "renumbered": "Labels with another number: red is 2 (was 1).",
    }
    names = {check: found[check].rows[0]["uri"][-6:] for check in told if found[check].rows}
    assert names == {
        "added": "40.jpg",
        "removed": "01.jpg",
        "moved": "10.jpg",
        "relabelled": "02.jpg",
        "redrawn": "03.jpg",
    }
    assert found["moved"].rows[0]["detail"] == "was in test"
    assert found["relabelled"].rows[0]["detail"] == "was red"


def test_what_should_not_change_stops_the_run(worlds):
    result = darkroom.diff(*worlds)
    assert not result.blessed
    found = {check for check, finding in find(result).items() if finding.policy == "fail"}
    assert found == {"test_frozen", "test_to_train"}
    # Two of twenty red images are gone: that is a tenth, and not more.
    [lost] = find(darkroom.diff(*worlds, max_class_loss=0.09))["class_loss"].rows
    assert format_finding_row(lost) == "red: images 20: now 18"
    warned = darkroom.diff(*worlds, policies={"test_frozen": "warn", "test_to_train": "off"})
    assert warned.blessed
    assert find(warned)["test_frozen"].policy == "warn"
    assert "test_to_train" not in find(warned)


def test_a_copy_of_a_test_image_under_another_name_is_in_train(worlds, tmp_path):
    old, _ = worlds
    images = tmp_path / "images"
    images.mkdir()
    draw(images, 10)
    (images / "10.jpg").rename(images / "other.jpg")
    (images / "list.csv").write_text("image_uri,label,split\nother.jpg,red,TRAIN\n")
    darkroom.convert(images / "list.csv", tmp_path / "new")
    found = find(darkroom.diff(old, tmp_path / "new"))
    assert found["test_to_train"].rows[0]["uri"].endswith("other.jpg")


def test_a_test_image_that_had_a_twin_in_train_has_not_moved(tmp_path):
    for number in range(2):
        draw(tmp_path, number)
    (tmp_path / "twin.jpg").write_bytes((tmp_path / "00.jpg").read_bytes())
    rows = "image_uri,label,split\n00.jpg,red,TEST\ntwin.jpg,red,TRAIN\n"
    for name, last in (("old", ""), ("new", "01.jpg,red,TRAIN\n")):
        (tmp_path / f"{name}.csv").write_text(rows + last)
        darkroom.convert(tmp_path / f"{name}.csv", tmp_path / name)
    assert {*find(darkroom.diff(tmp_path / "old", tmp_path / "new"))} == {"added"}


def test_the_same_pixels_in_other_bytes_are_encoded_again(worlds, tmp_path):
    old, _ = worlds
    options = ConversionOptions(encoding="raw")
    source = old.parent / "images" / "list.csv"
    darkroom.convert(source, tmp_path / "raw", max_rejects=0.1, options=options)
    found = find(darkroom.diff(worlds[1], tmp_path / "raw"))
    assert found["encoded"].count == 40
    assert "redrawn" not in found


def test_a_dataset_is_the_same_as_itself(worlds):
    assert darkroom.diff(worlds[0], worlds[0]).findings == ()


def test_the_command_prints_the_findings_and_writes_a_report(worlds, tmp_path, capsys):
    report = tmp_path / "changes"
    command = ["diff", *map(str, worlds), "--report", str(report), "--json"]
    assert main(command) == 1
    printed = json.loads(capsys.readouterr().out)
    assert printed["findings"][0]["check"] == "test_frozen"
    text = (report / "report.md").read_text()
    assert text.startswith("# Changes: stopped")
    assert "01.jpg" in text
    page = (report / "report.html").read_text()
    # The image that left is shown from the old dataset.
    assert page.count("data:image/") >= 5
    # The row that was rejected is listed, with its reason.
    for listed in (page, text.replace("\\", "")):
        assert "41.jpg" in listed
        assert "there is no such file" in listed
    assert main([*command[:-1], "--policy=test_frozen=warn", "--policy=test_to_train=off"]) == 0


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"policies": {"frozen": "fail"}}, "frozen"),
        ({"policies": {"test_frozen": "stop"}}, "stop"),
        ({"max_class_loss": 2}, "max_class_loss"),
    ],
)
def test_wrong_options_are_named(worlds, options, said):
    with pytest.raises(UsageError, match=said):
        darkroom.diff(*worlds, **options)


def test_a_folder_without_a_dataset_is_named(worlds, tmp_path):
    with pytest.raises(DataError, match=str(tmp_path)):
        darkroom.diff(tmp_path, worlds[1])


@pytest.mark.long
def test_300_000_changed_records_are_compared_within_the_memory_of_the_database(worlds, tmp_path):
    compared = []
    for number, root in enumerate(worlds):
        path = tmp_path / root.name / "index-00000-of-00001.parquet"
        path.parent.mkdir()
        duckdb.sql(f"""COPY (
            SELECT md5('key ' || i) AS key, '/a/folder/somewhere/' || i || '.jpg' AS uri,
                if((i + {number}) % 2 = 0, 'eval', 'train') AS split, i AS row,
                if((i + {number}) % 3 = 0, 'red', 'blue') AS label,
                sha256('{number} bytes ' || i) AS sha256, md5('{number} ' || i) AS pixel_hash,
                NULL::VARCHAR AS decoded_hash, 20 AS height, 20 AS width, 100.5 AS luminance,
                '' AS changes
            FROM range(300000) rows(i)
        ) TO '{path}' (ROW_GROUP_SIZE {BATCH_ROWS})""")
        files = find_files(Folders.of_dataset(str(root)))
        compared.append(replace(files, index_dir=str(path.parent)))
    found = find(compare_datasets(*compared, DiffOptions()))
    counts = {check: found[check].count for check in ("moved", "relabelled", "redrawn")}
    assert counts == {"moved": 300_000, "relabelled": 200_000, "redrawn": 300_000}
