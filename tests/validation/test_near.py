"""Near copies as findings: in the report, in JSON, on the command line, and as groups of a list."""

from __future__ import annotations

import json
import os
import shutil
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from PIL import Image, ImageOps

import darkroom
from darkroom.cli import main
from darkroom.dataset.checksums import read_sums, sum_bytes, write_sums
from darkroom.dataset.commit import read_dataset
from darkroom.dataset.index import list_index_files, read_index
from darkroom.features.cache import FeatureCache
from darkroom.features.opening import NETWORK_IDENTITY
from darkroom.features.table import read_features, write_features
from darkroom.images import near_pairs
from darkroom.images.alignment import can_align
from darkroom.options import ConversionOptions, ValidationOptions
from darkroom.validation.gallery.encode import encode_gallery
from darkroom.validation.judge import JudgedFiles, judge_dataset
from darkroom.validation.report.dataset_report import DatasetReport
from darkroom.validation.report.pictures import RecordFolders

from ..pictures import encode, make_drawing, make_noise, make_scene

SCOPE = (
    "Looked for: equal pixels and small changes; crops and turned copies need features: "
    "option embed, or darkroom embed."
)
needs_opencv = pytest.mark.skipif(not can_align(), reason="needs OpenCV")
MILD = {
    **dict.fromkeys(("quality", "small_classes", "suspect_labels", "drift"), "off"),
    **dict.fromkeys(("leakage", "label_conflicts"), "warn"),
}


def write_source(folder: Path, images: dict[str, tuple[str, str, bytes]]) -> Path:
    """Writes images by name, with split, label and bytes, and returns their list."""
    folder.mkdir()
    lines = ["split,image_uri,label"]
    for name, (split, label, data) in images.items():
        (folder / name).write_bytes(data)
        lines.append(f"{split},{name},{label}")
    (folder / "list.csv").write_text("\n".join(lines))
    return folder / "list.csv"


def draw(seed: int, change=lambda image: image, quality: int = 90) -> bytes:
    return encode(change(make_scene(seed)), "JPEG", quality=quality)


def shrink(image: Image.Image) -> Image.Image:
    return image.resize((image.width // 2, image.height // 2))


IMAGES = {
    **{f"{n}.jpg": ("TRAIN", "cat" if n % 2 else "dog", draw(n)) for n in range(1, 9)},
    **{f"{n}.jpg": ("VALIDATION", "cat" if n % 2 else "dog", draw(n)) for n in range(9, 13)},
    # Near copies: of 1 in another split, of 2 with another label, of 3 in its split, of 4 both.
    "small-1.jpg": ("VALIDATION", "cat", draw(1, shrink)),
    "worse-2.jpg": ("TRAIN", "cat", draw(2, quality=30)),
    "mirrored-3.jpg": ("TRAIN", "cat", draw(3, ImageOps.mirror)),
    "flipped-4.jpg": ("VALIDATION", "cat", draw(4, ImageOps.flip)),
    # The same pixels as 5 are leakage, and not a near copy.
    "again-5.jpg": ("VALIDATION", "cat", draw(5)),
    # These have no perceptual hash: a tiny image, and plain ones.
    "tiny.png": ("TRAIN", "cat", encode(make_noise(3, 9, 9))),
    **{
        f"plain-{n}.png": ("TRAIN", "dog", encode(Image.new("RGB", (40, 40 + n)))) for n in range(4)
    },
}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A dataset with near copies, which no test changes."""
    folder = tmp_path_factory.mktemp("made")
    darkroom.convert(write_source(folder / "in", IMAGES), folder / "records")
    return folder / "records"


def list_pairs(finding) -> set[frozenset[str]]:
    rows = finding["rows"] if isinstance(finding, dict) else finding.rows
    return {frozenset(Path(row[f"{side}uri"]).stem for side in ("", "other_")) for row in rows}


@needs_opencv
@pytest.mark.fault(
    74,
    "a scaled, compressed or mirrored copy of an image, in another split or with another label",
    "written, then a warning (`near_leakage`, `near_conflicts`): both rows are named",
    code="finding",
    hint="look at the pairs",
)
def test_near_copies_are_findings_that_warn(made, tmp_path):
    result = darkroom.validate(made, policies=MILD, report_dir=tmp_path / "report")
    found = {finding.check: finding for finding in result.findings}
    assert {check: finding.count for check, finding in found.items()} == {
        "leakage": 1,
        "near_leakage": 2,
        "near_conflicts": 1,
        "near_duplicates": 1,
    }
    assert list_pairs(found["near_leakage"]) == {
        frozenset({"1", "small-1"}),
        frozenset({"4", "flipped-4"}),
    }
    # The flipped one has another label, too, but is in one finding.
    assert list_pairs(found["near_conflicts"]) == {frozenset({"2", "worse-2"})}
    [copy] = found["near_duplicates"].rows
    assert {name: copy[name] for name in copy if "uri" not in name} == {
        "row": 3,
        "split": "train",
        "label": "cat",
        "other_row": 15,
        "other_split": "train",
        "other_label": "cat",
        "difference": copy["difference"],
        "correlation": copy["correlation"],
        "edit": None,
    }
    assert copy["correlation"] > 0.95
    for finding in found.values():
        assert max(row.get("difference", 0) for row in finding.rows) <= near_pairs.MAX_DIFFERENCE
        alike = [row.get("correlation", 1) for row in finding.rows]
        assert alike == sorted(alike, reverse=True)
    assert found["near_leakage"].message == (
        "2 pairs of images look alike, in different splits (verified on pixels)."
    )
    assert (result.blessed, result.verdict) == (True, "passed with warnings")

    written = json.loads((tmp_path / "report/report.json").read_text())
    assert [each["check"] for each in written["findings"]] == [*found]
    assert list_pairs(written["findings"][1]) == list_pairs(found["near_leakage"])
    assert written["num_unlike"] == 5
    page = (tmp_path / "report/report.html").read_text()
    text = (tmp_path / "report/report.md").read_text()
    scope = f"{SCOPE} Without perceptual hash: 5 images, plain, tiny or damaged, or of an old"
    for each in (page, text):
        assert scope in each
        assert "Images that look alike in different splits" in each
        assert "mirrored-3.jpg" in each
    assert page.count("data:image/jpeg;base64,") >= 8


@needs_opencv
def test_pairs_that_are_verified_stop_a_run_and_others_warn(made, capsys, monkeypatch):
    mild = [f"--policy={check}={policy}" for check, policy in MILD.items()]
    fail = [f"--policy=near_{check}=fail" for check in ("leakage", "conflicts", "duplicates")]
    found = {}
    for has_opencv in (True, False):
        monkeypatch.setattr("darkroom.images.near_records.can_align", partial(bool, has_opencv))
        assert main(["validate", str(made), "--json", *mild, *fail]) == has_opencv
        result = json.loads(capsys.readouterr().out)
        near = [each for each in result["findings"] if each["check"].startswith("near_")]
        assert [each["policy"] for each in near] == ["fail" if has_opencv else "warn"] * 3
        assert list_pairs(near[2]) == {frozenset({"3", "mirrored-3"})}
        found[has_opencv] = near[0]
    assert "(verified on pixels)." in found[True]["message"]
    assert "not verified on pixels). The policy fail has no effect" in found[False]["message"]
    assert "the extra `reader`" in found[False]["hint"]
    assert all("correlation" not in row for row in found[False]["rows"])
    assert main(["validate", str(made), *mild]) == 0
    out = capsys.readouterr().out
    assert SCOPE in out
    assert "mirrored-3.jpg (train, cat)" in out
    assert " (train, cat)  ~  row 15 " in out


def crop(image: Image.Image) -> Image.Image:
    return image.crop((40, 30, 280, 210))


def place(seed: int, wall: Image.Image) -> Image.Image:
    wall = wall.copy()
    wall.paste(make_drawing(seed).resize((140, 160)), (90, 40))
    return wall


@pytest.fixture(scope="module")
def embedded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A dataset with features, by which copies and things before the same wall are alike."""
    folder = tmp_path_factory.mktemp("embedded")
    images, likes = {}, {}
    for number in range(8):
        data = encode(make_drawing(number), "JPEG")
        images[f"{number}.jpg"] = ("TRAIN", "cat", data)
        likes[f"{number}.jpg"] = number
    for number, edit in enumerate((crop, lambda image: image.rotate(5), ImageOps.mirror)):
        copy = encode(edit(make_drawing(number)), "JPEG", quality=60)
        images[f"copy-{number}.png"] = ("VALIDATION", "dog", copy)
        likes[f"copy-{number}.png"] = number
    for number in (30, 31):
        images[f"wall-{number}.jpg"] = ("TRAIN", "dog", encode(place(number, make_drawing(9))))
        likes[f"wall-{number}.jpg"] = 9
    darkroom.convert(write_source(folder / "in", images), folder / "records")
    rows = read_index(str(folder / "records/index"))
    rng = np.random.default_rng(0)
    centers = rng.normal(size=(10, 64))
    places = [likes[Path(uri).name] for uri in rows["uri"].to_pylist()]
    values = centers[places] + 0.1 * rng.normal(size=(len(places), 64))
    with (folder / "records/features.parquet").open("wb") as file:
        write_features(file, "drawings", 64, [(rows, values)])
    return folder / "records"


@needs_opencv
def test_features_find_crops_and_turned_copies_and_pixels_decide(embedded, monkeypatch):
    stops = {**MILD, "missing_classes": "off", "near_leakage": "fail", "near_duplicates": "fail"}
    result = darkroom.validate(embedded, policies=stops)
    found = {each.check: each for each in result.findings}
    copies = {frozenset({str(number), f"copy-{number}"}) for number in range(3)}
    assert set(found) == {"near_leakage"}
    assert list_pairs(found["near_leakage"]) == copies
    assert not result.blessed
    rows = found["near_leakage"].rows
    assert [row["difference"] is None for row in rows].count(True) >= 2
    assert "also crops and turned copies (by features)." in result.to_text()

    monkeypatch.setattr("darkroom.images.near_records.MAX_COMPARED", 2)
    findings = darkroom.validate(embedded, policies=stops).findings
    leaked = findings[0]
    assert leaked.count <= 2
    assert "Less likely pairs that were not compared on pixels: " in leaked.message


@needs_opencv
def test_features_that_the_cache_has_are_used_where_the_dataset_has_none(
    embedded, tmp_path, monkeypatch
):
    records, policies = tmp_path / "records", {**MILD, "missing_classes": "off"}
    shutil.copytree(embedded, records)
    index = str(records / "index")
    values = read_features(str(records / "features.parquet"), index).values
    (records / "features.parquet").unlink()
    monkeypatch.setattr("darkroom.features.opening.NETWORK_WIDTH", 64)
    monkeypatch.setenv("DARKROOM_CACHE", str(tmp_path / "cache"))
    cache = FeatureCache(f"{tmp_path}/cache/features/{NETWORK_IDENTITY}-stretch")
    cache.add([bytes.fromhex(each) for each in read_index(index)["sha256"].to_pylist()], values)
    result = darkroom.validate(records, policies=policies)
    assert result.findings == darkroom.validate(embedded, policies=policies).findings
    scope = "crops and turned copies (by features that the cache has of 13 images)."
    assert scope in result.to_text()
    lists = [tmp_path / f"{n}.parquet" for n in range(2)]
    for folder, path in zip((records, embedded), lists, strict=True):
        darkroom.find_duplicates(folder, path, near=True)
    assert pq.read_table(lists[0]).equals(pq.read_table(lists[1]))
    assert 'id="rows-map"' in encode_gallery(result.report, RecordFolders(str(records), index))
    # A pipeline gives the same report and the same page on every machine.
    files = JudgedFiles(
        index,
        str(records / "rejects.parquet"),
        read_dataset(str(records)),
        records=RecordFolders(str(records), index),
    )
    report = judge_dataset(files, ValidationOptions(policies=policies))
    assert not report.has_features
    assert 'id="rows-map"' not in encode_gallery(report, files.records)


@needs_opencv
def test_groups_are_of_the_same_pairs(embedded, tmp_path, capsys):
    path = tmp_path / "near.parquet"
    assert main(["duplicates", str(embedded), "--near", "--output", str(path)]) == 0
    groups: dict[int, set[str]] = {}
    for row in pq.read_table(path).to_pylist():
        groups.setdefault(row["group"], set()).add(Path(row["uri"]).stem)
    assert sorted(map(sorted, groups.values())) == [
        [str(number), f"copy-{number}"] for number in range(3)
    ]


@needs_opencv
def test_records_that_cannot_be_read_leave_pairs_unverified(made, tmp_path, monkeypatch):
    monkeypatch.setenv("DARKROOM_CACHE", str(tmp_path / "cache"))
    records = tmp_path / "records"
    shutil.copytree(made, records)
    for path in records.glob("Split-*/*"):
        data = bytearray(path.read_bytes())
        data[20::40] = bytes(255 - byte for byte in data[20::40])
        path.write_bytes(data)
    fail = dict.fromkeys(("near_leakage", "near_conflicts", "near_duplicates"), "fail")
    result = darkroom.validate(records, policies={**MILD, **fail})
    near = [finding for finding in result.findings if finding.check in fail]
    assert [(finding.check, finding.count, finding.policy) for finding in near] == [
        ("near_leakage", 2, "warn"),
        ("near_conflicts", 1, "warn"),
        ("near_duplicates", 1, "warn"),
    ]
    assert all("not verified on pixels" in finding.message for finding in near)


def test_checks_that_are_off_look_for_nothing(made):
    off = {f"near_{check}": "off" for check in ("leakage", "conflicts", "duplicates")}
    result = darkroom.validate(made, policies={**MILD, **off})
    assert [finding.check for finding in result.findings] == ["leakage"]
    assert "near copies are not found" in repr(result._repr_html_())


def test_a_list_has_the_groups_of_images_that_look_alike(made, tmp_path, capsys):
    path = tmp_path / "near.parquet"
    assert main(["duplicates", str(made), "--near", "--output", str(path), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["near_groups"], found["bytes_groups"], found["surplus"]) == (4, 1, 1)
    groups: dict[int, set[str]] = {}
    for row in pq.read_table(path).to_pylist():
        if row["kind"] == "near":
            groups.setdefault(row["group"], set()).add(Path(row["uri"]).stem)
            assert row["keep"]
            names = {"1": (False, True), "2": (True, False), "3": (False, False), "4": (True, True)}
            differ = names[Path(row["uri"]).stem[-1]]
            assert (row["labels_differ"], row["splits_differ"]) == differ
    assert sorted(map(sorted, groups.values())) == [
        ["1", "small-1"],
        ["2", "worse-2"],
        ["3", "mirrored-3"],
        ["4", "flipped-4"],
    ]
    # What looks alike is left to a person.
    again = darkroom.convert(made.parent / "in/list.csv", tmp_path / "again", exclude=str(path))
    assert (again.written, again.deduplicated) == (len(IMAGES) - 1, 1)
    assert main(["duplicates", str(made), "--near", "--output", f"{tmp_path}/text.parquet"]) == 0
    assert "Look alike    4 groups, of which all are kept" in capsys.readouterr().out


def drop_hashes(records: Path) -> None:
    """Makes a dataset one of an older version: its index lacks the newest columns."""
    sums = read_sums(str(records))
    for path in list_index_files(str(records / "index")):
        pq.write_table(pq.read_table(path).drop(["perceptual_hash", "private"]), path)
        sums[os.path.relpath(path, records)] = sum_bytes(Path(path).read_bytes())
    write_sums(str(records), sums)


def test_a_dataset_of_an_older_version_is_read_and_updated(tmp_path):
    source = write_source(tmp_path / "in", dict(list(IMAGES.items())[:12]))
    records = tmp_path / "records"
    darkroom.convert(source, records)
    full = read_index(str(records / "index"))
    drop_hashes(records)
    assert main(["verify", str(records)]) == 0
    assert main(["duplicates", str(records), "--near", f"--output={tmp_path}/list.parquet"]) == 0
    assert pq.read_table(tmp_path / "list.parquet").num_rows == 0
    report = darkroom.validate(records, policies=MILD).report
    assert (report.num_unlike, report.findings) == (12, ())

    with source.open("a") as file:
        file.write("\nTRAIN,small-1.jpg,cat\nTRAIN,small-9.jpg,cat")
    (tmp_path / "in/small-1.jpg").write_bytes(draw(1, shrink))
    (tmp_path / "in/small-9.jpg").write_bytes(draw(9, shrink))
    updated = darkroom.convert(source, records, options=ConversionOptions(update=True))
    # An unchanged record is taken as it is, without a look at its image.
    assert updated.written == 14
    index = read_index(str(records / "index")).to_pylist()
    hashes = {Path(row["uri"]).name: row["perceptual_hash"] for row in index}
    assert [name for name in sorted(hashes) if hashes[name]] == ["small-1.jpg", "small-9.jpg"]
    again = darkroom.convert(source, tmp_path / "again")
    made = {row["key"]: row for row in read_index(again.index_dir).to_pylist()}
    for row in full.to_pylist():
        assert row["perceptual_hash"] == made[row["key"]]["perceptual_hash"]
    near = darkroom.validate(tmp_path / "again", policies=MILD).findings
    assert [(finding.check, finding.count) for finding in near] == [
        ("near_leakage", 1),
        ("near_duplicates", 1),
    ]


def test_a_linked_shard_of_an_older_version_keeps_its_index(tmp_path):
    source = write_source(tmp_path / "in", dict(list(IMAGES.items())[:12]))
    darkroom.convert(source, tmp_path / "records")
    drop_hashes(tmp_path / "records")
    text = source.read_text()
    source.write_text(text.replace("TRAIN,8.jpg,dog", "TEST,8.jpg,dog"))
    updated = darkroom.convert(
        source, tmp_path / "new", options=ConversionOptions(base=str(tmp_path / "records"))
    )
    index = read_index(updated.index_dir)
    assert index["perceptual_hash"].to_pylist() == [None] * 12
    assert main(["verify", str(tmp_path / "new")]) == 0


def test_header_checks_make_no_hash(tmp_path):
    source = write_source(tmp_path / "in", dict(list(IMAGES.items())[:14]))
    darkroom.convert(source, tmp_path / "records", options=ConversionOptions(image_check="header"))
    report = darkroom.validate(tmp_path / "records", policies=MILD).report
    assert (report.num_unlike, report.findings) == (14, ())
    assert DatasetReport.from_json(report.to_json()) == report
