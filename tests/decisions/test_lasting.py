"""What the gallery saved, given to a run: night after night, while datasets replace one another."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import darkroom
from darkroom.dataset.index import read_index
from darkroom.decisions import lasting
from darkroom.decisions.saved import FORM
from darkroom.errors import DataError
from darkroom.manifest.fingerprint import fingerprint_source
from darkroom.options import ConversionOptions
from darkroom.options.manifest import ManifestOptions
from darkroom.runtime import progress

from ..pictures import encode, make_scene


@pytest.fixture
def said(monkeypatch):
    """What runs say."""
    said = []
    for name in ("note", "warn"):
        monkeypatch.setattr(progress, name, said.append)
    return said


@pytest.fixture
def source(tmp_path):
    """A list of six images."""
    (tmp_path / "photos").mkdir()
    for number in range(6):
        (tmp_path / f"photos/{number}.jpg").write_bytes(encode(make_scene(number), "JPEG"))
    lines = [f"{number}.jpg,{'ab'[number % 2]},TRAIN" for number in range(6)]
    path = tmp_path / "photos/list.csv"
    path.write_text("\n".join(["image_uri,label,split", *lines]) + "\n")
    return path


def save(made, *names, **place):
    """Returns what the gallery of a dataset saves when images are dropped."""
    found = [Path(each).name for each in read_index(f"{made.data_dir}/index")["uri"].to_pylist()]
    drop = {"action": "drop", "places": [found.index(name) for name in names]}
    return {"form": FORM, "dataset": made.fingerprint, **place, "decisions": [drop]}


def convert(source, folder, decisions=None, **options):
    options = ConversionOptions(update=True, allow_removals=True, decisions=decisions, **options)
    return darkroom.convert(source, folder, options=options)


def list_images(result):
    return {Path(uri).name[0] for uri in read_index(result.index_dir)["uri"].to_pylist()}


def list_kept(saved):
    return [path for path in saved.parent.iterdir() if path.stem.startswith(f"{saved.stem}.")]


@pytest.mark.fault(
    76,
    "saved in the gallery of a dataset that is not there any more",
    "refused, with what is there instead; not where an earlier run kept the lines that last",
    code="exit 1",
    hint="where these lines are kept",
)
def test_the_same_command_again_finds_the_lines_that_the_first_run_kept(source, tmp_path, said):
    records, saved = tmp_path / "records", tmp_path / "decisions-1a2b3c4d.json"
    first = convert(source, records)
    # As an editor or another program formats it.
    saved.write_text(json.dumps(save(first, "3.jpg"), indent=1))
    decided = convert(source, records, saved)
    assert list_images(decided) == {*"01245"}
    assert decided.decisions["counts"]["drop"] == 1
    [kept] = list_kept(saved)
    assert said[-2:] == [
        f"Decisions that last, also when the dataset changes: {kept}.",
        "Decisions: drop 1.",
    ]
    assert (records / "decisions.jsonl").read_bytes() == kept.read_bytes()
    assert darkroom.verify(records).is_sound
    # The fingerprint is that of the lasting lines.
    for given in (saved, kept):
        again = convert(source, records, given)
        assert (again.already_complete, again.fingerprint) == (True, decided.fingerprint)
        options = ManifestOptions(decisions=str(given))
        assert fingerprint_source(source, options) == fingerprint_source(
            source, ManifestOptions(decisions=str(kept))
        )
    # In a place that cannot be written they are in the dataset.
    kept.unlink()
    assert convert(source, records, saved).already_complete
    assert list_kept(saved) == []
    # Once they are nowhere, the error names them.
    other = source.with_name("other.csv")
    other.write_text("".join(source.read_text().splitlines(keepends=True)[:-1]))
    replaced = convert(other, records)
    assert not (records / "decisions.jsonl").exists()
    with pytest.raises(DataError) as error:
        convert(source, records, saved)
    assert f"about the dataset {first.fingerprint}, which is not there" in error.value.message
    assert f"{records} has the fingerprint {replaced.fingerprint}" in error.value.message
    assert str(kept) in error.value.hint


def test_each_night_adds_a_line_to_one_file(source, tmp_path):
    records, path = tmp_path / "records", tmp_path / "decisions.jsonl"
    made, left = convert(source, records), set("012345")
    for name in "304":
        with path.open("a") as file:
            file.write(json.dumps(save(made, f"{name}.jpg")) + "\n")
        made = convert(source, records, path)
        left -= {name}
        assert list_images(made) == left
        # Only the dataset has kept them.
        for each in list_kept(path):
            each.unlink()
    [own] = read_index(made.index_dir).filter(lasting_key(made, "5.jpg")).to_pylist()
    with path.open("a") as file:
        file.write(json.dumps({"action": "drop", "key": own["key"], "sha256": own["sha256"]}))
    assert list_images(convert(source, records, path)) == {*"12"}
    with path.open("a") as file:
        file.write("\n{}\n")
    with pytest.raises(DataError, match=r"decisions.jsonl, line 5: 'action' is missing"):
        convert(source, records, path)


def lasting_key(made, name):
    uris = read_index(made.index_dir)["uri"].to_pylist()
    return [uri.endswith(name) for uri in uris]


def test_the_page_says_where_its_dataset_is(source, tmp_path):
    first = convert(source, tmp_path / "first")
    saved = tmp_path / "saved.json"
    saved.write_text(json.dumps(save(first, "3.jpg", records=first.output_dir)))
    assert list_images(convert(source, tmp_path / "second", saved)) == {*"01245"}
    saved.write_text(json.dumps(save(first, "3.jpg", records=str(tmp_path / "gone"))))
    with pytest.raises(DataError, match=r"not there any more: .*/gone"):
        convert(source, tmp_path / "third", saved)
    saved.write_text(json.dumps(save(first, "3.jpg")))
    with pytest.raises(DataError, match="this run knows of no dataset"):
        convert(source, tmp_path / "third", saved)
    with pytest.raises(DataError, match="is not there any more"):
        fingerprint_source(source, ManifestOptions(decisions=str(saved)))


def test_a_place_that_cannot_be_written_is_said_and_damaged_lines_are_not_taken(
    source, tmp_path, said, monkeypatch
):
    records, saved = tmp_path / "records", tmp_path / "saved.json"
    first = convert(source, records)
    saved.write_text(json.dumps(save(first, "3.jpg")))
    write = lasting.storage.write_bytes

    def refuse(path, data, part=None):
        if Path(path).parent == tmp_path:
            raise PermissionError(13, "Permission denied", path)
        write(path, data, part)

    monkeypatch.setattr(lasting.storage, "write_bytes", refuse)
    assert list_images(convert(source, records, saved)) == {*"01245"}
    [warning] = [each for each in said if "in the dataset alone" in each]
    assert str(saved.with_suffix("")) in warning
    monkeypatch.undo()
    lines = (records / "decisions.jsonl").read_text()
    (records / "decisions.jsonl").write_text(lines.replace("drop", "move"))
    with pytest.raises(DataError, match="is not there any more"):
        convert(source, records, saved)
    # Lines that somebody corrected are those that count.
    [kept] = {word.strip(",.") for word in warning.split() if word.endswith(".jsonl")}
    Path(kept).write_text(lines + "{}\n")
    with pytest.raises(DataError, match=rf"{kept}, line 2: 'action' is missing"):
        convert(source, records, saved)


def test_an_impossible_label_names_the_image(source, tmp_path):
    first = convert(source, tmp_path / "records")
    values = save(first, "3.jpg")
    values["decisions"] = [{**values["decisions"][0], "action": "relabel", "label": "x" * 2_000}]
    (tmp_path / "saved.json").write_text(json.dumps(values))
    with pytest.raises(DataError, match=r"saved.json, .*/3.jpg: the image cannot get this label"):
        convert(source, tmp_path / "records", tmp_path / "saved.json")


def test_an_update_that_lacks_the_decisions_of_the_dataset_says_so(source, tmp_path, said):
    records, saved = tmp_path / "records", tmp_path / "saved.json"
    saved.write_text(json.dumps(save(convert(source, records), "3.jpg")))
    assert list_images(convert(source, records, saved)) == {*"01245"}
    said.clear()
    assert list_images(convert(source, records)) == {*"012345"}
    assert said[0].startswith("The dataset was made with decisions, and this run has none")


def test_a_decision_that_does_not_say_which_file_it_means_is_refused(source, tmp_path):
    made = convert(source, tmp_path / "records")
    key = pq.read_table(made.index_dir)["key"][0].as_py()
    path = tmp_path / "lines.jsonl"
    path.write_text(json.dumps({"action": "drop", "key": key}) + "\n")
    with pytest.raises(DataError, match=f"no sha256 for {key}"):
        convert(source, tmp_path / "records", path)


def test_without_decisions_of_the_gallery_no_file_is_new(source, tmp_path):
    made = convert(source, tmp_path / "records")
    key = pq.read_table(made.index_dir)["key"][0].as_py()
    path = tmp_path / "lines.jsonl"
    path.write_text(json.dumps({"action": "ignore", "key": key, "sha256": "0" * 64}) + "\n")
    convert(source, tmp_path / "records", path)
    assert not (tmp_path / "records/decisions.jsonl").exists()
    assert list_kept(path) == []
