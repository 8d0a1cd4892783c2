"""The page of a gallery: what is in it is data, and it is about the right rows."""

import base64
import csv
import hashlib
import json
import re
from pathlib import Path

import numpy as np
import pytest

import darkroom
from darkroom.cli import main
from darkroom.dataset.commit import read_dataset
from darkroom.dataset.index import read_index
from darkroom.errors import OutputError, UsageError
from darkroom.validation.browse import write_gallery
from darkroom.validation.gallery.page import (
    SCRIPT_FOLDER,
    SCRIPTS,
    encode_findings,
    join_scripts,
)
from darkroom.validation.gallery.rows import (
    MAP_SIDE,
    NONE_ALIKE,
    GalleryRows,
    find_alike,
    pack_map,
    place_on_map,
    read_rows,
)
from darkroom.validation.gallery.tiles import CLASS_TILES, MAX_TILES, choose_tiles
from darkroom.validation.report.findings import Finding

from ...html_page import Page
from ...pictures import encode, make_noise, make_scene

SCRIPT = "</script><script>alert(1)</script>"
HOSTILE_FILES = ("=HYPERLINK(1)<!--.jpg", "\u202egpj.exe.jpg", "</title><img src=x>.jpg")


@pytest.fixture(scope="module")
def records(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A dataset with hostile names, of which two images are in two splits."""
    folder = tmp_path_factory.mktemp("made")
    rows = []
    for number in range(24):
        name = f"{number}.jpg" if number > 2 else HOSTILE_FILES[number].replace("/", "\u2215")
        label = SCRIPT if number % 2 else "cat"
        image = make_scene(number) if number < 12 else make_noise(number, 9, 7)
        (folder / name).write_bytes(encode(image, "JPEG"))
        rows.append(("eval" if number % 3 == 0 else "train", name, label))
    for number in (4, 5):
        (folder / f"copy{number}.jpg").write_bytes((folder / f"{number}.jpg").read_bytes())
        rows.append(("eval", f"copy{number}.jpg", rows[number][2]))
    with (folder / "images.csv").open("w", newline="") as file:
        csv.writer(file).writerows([("split", "image", "label"), *rows])
    darkroom.convert(folder / "images.csv", folder / "records", max_rejects=1)
    return folder / "records"


@pytest.fixture(scope="module")
def page(records: Path, tmp_path_factory: pytest.TempPathFactory) -> Page:
    path = tmp_path_factory.mktemp("page") / "gallery.html"
    found = write_gallery(records, path)
    text = path.read_text("utf-8")
    assert (found.bytes, found.images) == (len(text.encode()), 26)
    return Page(text)


@pytest.mark.fault(
    84,
    "script, formulas and right-to-left marks in names and labels",
    "text in the gallery; nothing runs",
)
def test_hostile_names_and_labels_are_data(page: Page):
    [script], [style] = page.code["script"], page.code["style"]
    assert script == join_scripts()
    for kind, text in (("script", script), ("style", style)):
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"{kind}-src 'sha256-{digest}'" in page.policy
    assert page.policy.startswith("default-src 'none'; img-src data:;")
    attributes = {name for _, each in page.elements for name in each}
    assert not [name for name in attributes if name in ("src", "style") or name[:2] == "on"]
    assert page.blocks["facts"]["labels"] == sorted(["cat", SCRIPT])
    names = {tile["uri"].rpartition("/")[2] for tile in page.blocks["tiles"]}
    assert names >= {name.replace("/", "\u2215") for name in HOSTILE_FILES}
    assert re.search("innerHTML|insertAdjacent|document.write|eval|fetch|http", script) is None


def test_rows_and_tiles_are_those_of_the_index(page: Page, records: Path):
    facts, index = page.blocks["facts"], read_index(str(records / "index")).to_pylist()
    assert facts["fingerprint"] == read_dataset(str(records)).fingerprint
    assert facts["count"] == len(index) == len(page.blocks["tiles"]) == 26
    group = page.read_array("rows-group").tolist()
    assert [facts["splits"][each % 3] for each in group] == [row["split"] for row in index]
    sets = [[facts["labels"][number] for number in each] for each in facts["sets"]]
    assert [sets[each // 3] for each in group] == [[row["label"]] for row in index]
    assert page.read_array("rows-side").tolist() == [min(r["height"], r["width"]) for r in index]
    assert page.read_array("rows-brightness").tolist() == [
        min(round(r["luminance"]), 254) for r in index
    ]
    for tile in page.blocks["tiles"]:
        row = index[tile["place"]]
        assert (tile["uri"], tile["label"], tile["row"]) == (row["uri"], row["label"], row["row"])
        assert tile["size"] == [row["width"], row["height"]]
        assert tile["picture"].startswith("data:image/jpeg;base64,/9j/")


def test_findings_name_their_rows_by_place(page: Page, records: Path):
    index = read_index(str(records / "index"), ["uri"])["uri"].to_pylist()
    [leakage] = [each for each in page.blocks["facts"]["findings"] if each["check"] == "leakage"]
    assert (leakage["policy"], leakage["count"], leakage["lines"]) == ("fail", 2, [])
    pairs = [[index[place].rpartition("/")[2] for place in i["places"]] for i in leakage["items"]]
    # That of eval is on the left.
    assert pairs == [["copy4.jpg", "4.jpg"], ["copy5.jpg", "5.jpg"]]
    # Findings come first among the tiles, so that they are there in a large dataset, too.
    first = {tile["place"] for tile in page.blocks["tiles"][:8]}
    assert first >= set(leakage["items"][0]["places"])
    small = [each for each in page.blocks["facts"]["findings"] if each["check"] == "similar_labels"]
    assert all(each["items"] == [] for each in small)


def test_a_single_image_of_a_finding_is_shown_with_its_problem(records: Path):
    rows = read_rows(str(records / "index"))
    odd = {"row": int(rows.row[7]), "uri": "/a.jpg", "split": "train", "difference": 17}
    found = encode_findings(
        [Finding(check, "warn", 1, "", rows=(odd,)) for check in ("quality", "accounting")], rows
    )
    assert found[0]["items"] == [{"places": [7], "facts": {"hash difference (of 256 bits)": 17}}]
    assert (found[1]["items"], len(found[1]["lines"])) == ([], 1)


def test_an_image_that_was_rejected_is_named(tmp_path: Path):
    (tmp_path / "list.csv").write_text("image_uri,label\na.png,cat\nlost.png,cat\n")
    (tmp_path / "a.png").write_bytes(encode(make_noise(0, 9, 7), "PNG"))
    darkroom.convert(tmp_path / "list.csv", tmp_path / "records", max_rejects=1)
    report = tmp_path / "report"
    darkroom.validate(tmp_path / "records", max_rejects=1, report_dir=report, gallery=True)
    text = (report / "gallery.html").read_text("utf-8")
    facts = json.loads(text.partition('id="facts">')[2].partition("</script>")[0])
    [found] = [each for each in facts["findings"] if each["policy"] == "info"]
    assert (found["title"], found["message"]) == (
        "Rejected rows",
        "Without a record: 1 row (missing).",
    )
    assert ["lost.png (train, cat): missing: " in line for line in found["lines"]] == [True]


def test_a_sample_has_images_of_each_class_and_split():
    rng = np.random.default_rng(0)
    group = rng.choice(30, 50_000, p=[0.942, *[0.002] * 29]).astype(np.uint8)
    none = np.zeros(len(group), np.uint8)
    rows = GalleryRows(np.arange(len(group)), group, none, none, ((),) * 10)
    named = [[5, 6, 7], list(range(100, 3_000))]
    chosen = choose_tiles(rows, named)
    assert MAX_TILES - 40 <= len(set(chosen)) == len(chosen) <= MAX_TILES
    assert {5, 6, 7, 100} <= set(chosen[:6])
    assert (np.bincount(group[chosen], minlength=30) >= CLASS_TILES).all()


def test_the_map_shows_the_two_directions_in_which_features_differ_most():
    rng = np.random.default_rng(1)
    values = rng.normal(0, 0.01, (400, 16)).astype(np.float32)
    values[:200, 3] += 2
    values[::2, 5] += 1
    points = place_on_map(402, np.arange(400), values)
    assert (points[400:] == MAP_SIDE).all()
    x, y = points[:400].T.astype(int)
    assert (x[:200].min() > x[200:].max() + 3_000) or (x[:200].max() + 3_000 < x[200:].min())
    assert abs(y[::2].mean() - y[1::2].mean()) > 3_000
    packed = pack_map(points).astype(int)
    assert (packed[:, 0] | (packed[:, 1] & 15) << 8).tolist() == points[:, 0].tolist()
    assert (packed[:, 1] >> 4 | packed[:, 2] << 4).tolist() == points[:, 1].tolist()


def test_each_image_with_a_picture_names_those_most_like_it():
    rng = np.random.default_rng(2)
    values = rng.normal(0, 0.01, (40, 8)).astype(np.float32)
    values[:20, 3] += 2
    # The rows 0, 2, 4 ... have features, and row 1 has a picture without.
    places = np.arange(0, 80, 2)
    found = find_alike([78, 1, 0, 4, 76, 2], places, values)
    assert found[0][0] == 4
    assert set(found[2][:2].tolist()) == {3, 5}
    assert (found[1] == NONE_ALIKE).all()
    assert (found[2][4:] == NONE_ALIKE).all()
    assert (find_alike([3, 4], places[:0], values[:0]) == NONE_ALIKE).all()


def test_scripts_are_joined_in_an_order_in_which_each_has_what_it_imports():
    assert sorted(SCRIPTS) == sorted(path.name for path in SCRIPT_FOLDER.glob("*.js"))
    known: set[str] = set()
    defined: list[str] = []
    for name in SCRIPTS:
        text = (SCRIPT_FOLDER / name).read_text("utf-8")
        for names, file in re.findall(r'^import \{([^}]+)\} from "\./([\w.]+)";$', text, re.M):
            assert {f"{file}:{each.strip()}" for each in names.split(",")} <= known, name
        names = re.findall(r"^(?:export )?(?:async )?(?:function|const|let) (\w+)", text, re.M)
        defined += names
        exported = re.findall(r"^export (?:function|const|let) (\w+)", text, re.M)
        known |= {f"{name}:{each}" for each in exported}
    # All names are in one scope in the page.
    assert len(set(defined)) == len(defined)


def test_validate_writes_a_gallery_beside_the_report(records: Path, tmp_path: Path):
    with pytest.raises(UsageError, match="beside the report"):
        darkroom.validate(records, gallery=True)
    result = darkroom.validate(records, report_dir=tmp_path / "report", gallery=True)
    assert result.gallery_path == f"{tmp_path}/report/gallery.html"
    assert 'href="gallery.html"' in (tmp_path / "report/report.html").read_text()
    assert Page(Path(result.gallery_path).read_text()).blocks["facts"]["count"] == 26
    # A report without one leaves none of another dataset behind.
    assert darkroom.validate(records, report_dir=tmp_path / "report").gallery_path is None
    assert sorted(path.name for path in (tmp_path / "report").iterdir()) == [
        ".darkroom-files.json",
        "report.html",
        "report.json",
        "report.md",
    ]


def test_the_command_replaces_only_what_it_is_told_to(records: Path, tmp_path: Path, capsys):
    output = tmp_path / "page.html"
    output.write_text("mine")
    assert main(["gallery", str(records), "--output", str(output)]) == 4
    assert output.read_text() == "mine"
    with pytest.raises(OutputError, match="would be in the dataset"):
        write_gallery(records, records / "gallery.html")
    capsys.readouterr()
    assert main(["gallery", str(records), "--output", str(output), "--overwrite", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found == {
        "path": str(output),
        "bytes": output.stat().st_size,
        "images": 26,
        "findings": len(Page(output.read_text()).blocks["facts"]["findings"]),
    }
