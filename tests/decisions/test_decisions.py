"""Decisions: what the page saves, the file that `--decisions` takes, and the way between them."""

from __future__ import annotations

import hashlib
import json
import re
import runpy
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from PIL import Image

import darkroom
from darkroom.dataset.index import read_index
from darkroom.dataset.layout import Folders
from darkroom.decisions import lines
from darkroom.decisions.lasting import make_lasting
from darkroom.decisions.lines import Decision, format_decisions, read_decisions
from darkroom.decisions.saved import FORM, identify_saved, parse_saved, resolve_saved
from darkroom.errors import DataError
from darkroom.runtime import progress

KEYS = [f"{number:032x}" for number in range(4)]
HASHES = [f"{number:064x}" for number in range(4)]
NAMES = [f"/{key}.png" for key in KEYS]
INDEX = pa.table(
    {
        "key": KEYS,
        "sha256": HASHES,
        "uri": NAMES,
        "row": [10, 7, 9, 8],
        "source_size": [1] * 4,
        "source_version": ["1"] * 4,
        "changes": [""] * 4,
    }
)
HOSTILE = "<script>\u202e=cmd|'\"\n\U0001f408"


def save(*decisions, dataset="a" * 64):
    fields = {"form": FORM, "dataset": dataset, "decisions": decisions}
    return json.dumps(fields).encode()


def resolve_all(*decisions):
    return resolve_saved(parse_saved(save(*decisions)), INDEX)[0]


def write(path, *decisions):
    path.write_bytes(format_decisions(decisions))
    return [*read_decisions(str(path))[1].values()]


def test_places_become_keys_and_hashes_and_a_later_decision_replaces_an_earlier_one():
    made = [
        {"action": "drop", "places": [2, 1]},
        {"action": "relabel", "label": "cat", "places": [1, 3]},
        {"action": "relabel", "label": HOSTILE, "places": [3]},
        {"action": "move", "split": "train", "rows": [10]},
        {"action": "ignore", "pair": [3, 0]},
        {"action": "ignore", "pair": [0, 3]},
        {"action": "drop", "places": [2]},
    ]
    mark = identify_saved(parse_saved(save(*made)))
    named = [{"key": k, "sha256": s, "uri": f"/{k}.png"} for k, s in zip(KEYS, HASHES, strict=True)]
    expected = [
        Decision(action="drop", **named[1]),
        Decision(action="relabel", label="cat", **named[1]),
        Decision(action="relabel", label=HOSTILE, **named[3]),
        Decision(action="move", split="train", **named[0]),
        Decision(action="ignore", **named[0], **{f"other_{k}": v for k, v in named[3].items()}),
        Decision(action="drop", **named[2]),
    ]
    assert resolve_all(*made) == [replace(each, saved=mark) for each in expected]


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b'{"form": "x"', "not what the gallery saves: Expecting ',' delimiter: line 1"),
        (save().replace(b"ns 1", b"ns 2"), "expected 'darkroom decisions 1'"),
        (save({"action": "eat", "places": [1]}), "'eat' is not one of drop, relabel, move, ignore"),
        (save({"action": "drop", "places": [-1]}), "-1 is not a possible value"),
        (save({"action": "drop", "pair": [1, 2]}), "a pair is two rows that are ignored"),
        (save({"action": "relabel", "places": [1]}), "relabel needs a label"),
        (save({"action": "drop", "label": "a", "places": [1]}), "drop has no label"),
        (
            save({"action": "move", "split": "x", "places": [1]}),
            "not one of train, eval, test",
        ),
        (save({"action": "drop", "rows": [4]}), "not one of the 4 rows"),
        (save({"action": "drop", "places": [4]}), "not one of the 4 rows"),
        (b"[" * 100_000, "not what the gallery saves"),
        (b"\xff\xfe\x00", "not what the gallery saves"),
    ],
)
def test_a_damaged_file_is_refused(data, said):
    with pytest.raises(DataError, match="(?s)" + re.escape(said)):
        resolve_saved(parse_saved(data), INDEX)


def test_a_file_is_read_as_it_was_written_and_its_last_line_wins(tmp_path):
    one, other = {"key": KEYS[0], "sha256": HASHES[0]}, {"key": KEYS[1]}
    relabel = Decision(action="relabel", label=HOSTILE, uri="/\u202e.png", **one)
    several = Decision(action="relabel", label=("a", "b"), **other)
    ignore = Decision(action="ignore", other_key=KEYS[1], other_sha256=HASHES[1], **one)
    drop, move = Decision(action="drop", **one), Decision(action="move", split="test", **one)
    path = tmp_path / "decisions.jsonl"
    assert write(path, relabel, several, ignore, move) == [relabel, several, ignore, move]
    assert path.read_bytes().isascii()
    # To drop an image contradicts its label and split.
    assert write(path, relabel, move, ignore, several, drop) == [ignore, several, drop]
    assert write(path, drop, move, relabel) == [move, relabel]
    assert write(path, move, Decision(action="move", split="train", **one))[0].split == "train"
    assert read_decisions(str(path))[0] == hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.mark.fault(
    78,
    "a line that is not JSON, or not a decision",
    "refused, with the line of the decision",
    code="exit 1",
    hint="correct the line",
)
@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('{"action": "drop"', "line 3: Expecting ',' delimiter"),
        ('{"action": "drop", "key": "../x"}', "line 3: '../x' is not the key of an image"),
        (f'{{"action": "drop", "key": "{KEYS[0]}", "x": 1}}', "line 3: 'x' is unknown"),
        (f'{{"action": "drop", "key": "{KEYS[0]}", "other_key": "{KEYS[1]}"}}', "about one image"),
        (f'{{"action": "relabel", "key": "{KEYS[0]}", "label": "\\ud800"}}', "line 3: "),
    ],
)
def test_a_wrong_line_is_named(tmp_path, line, said):
    path = tmp_path / "decisions.jsonl"
    path.write_bytes(format_decisions([Decision(action="drop", key=KEYS[0])]) + b"\n")
    with path.open("a") as file:
        file.write(f"{line}\n")
    with pytest.raises(DataError) as error:
        read_decisions(str(path))
    assert said in error.value.message
    assert error.value.hint.startswith("Each line is a decision")


def test_a_huge_file_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(lines, "MAX_DECISION_BYTES", 10)
    path = tmp_path / "decisions.jsonl"
    path.write_bytes(b" " * 11)
    with pytest.raises(OSError, match="more than 10 bytes"):
        read_decisions(str(path))


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A dataset of five images, of which two are stored in other bytes than their files."""
    tmp_path = tmp_path_factory.mktemp("made")
    (tmp_path / "images").mkdir()
    for number in range(5):
        image = Image.new("RGB", (9, 9), (number, 0, 0))
        image.save(tmp_path / f"images/{number}.{'bmp' if number > 2 else 'png'}", dpi=(72, 72))
    paths = sorted((tmp_path / "images").iterdir())
    text = "".join(f"images/{path.name},TRAIN,a\n" for path in paths)
    (tmp_path / "list.csv").write_text(f"image_uri,split,label\n{text}")
    return darkroom.convert(tmp_path / "list.csv", tmp_path / "records")


def take(made, tmp_path, saved):
    """Returns the decisions of a run that takes what was saved."""
    path = tmp_path / "saved.json"
    path.write_bytes(saved)
    lasting = make_lasting(str(path), str(tmp_path), [Folders.of_dataset(made.output_dir)])
    return [*read_decisions(lasting)[1].values()]


def test_hashes_are_those_of_the_files(made, tmp_path, monkeypatch):
    said = []
    monkeypatch.setattr(progress, "warn", said.append)
    images = Path(made.output_dir).parent / "images"
    index = read_index(made.index_dir).to_pylist()
    names = [row["id"].removeprefix("images/") for row in index]
    assert [bool(row["changes"]) for row in index] == [name.endswith("bmp") for name in names]
    (images / "4.bmp").write_bytes(b"other")
    places = [names.index(f"{number}.{'bmp' if number > 2 else 'png'}") for number in range(5)]
    decisions = [{"action": "drop", "places": places}, {"action": "ignore", "pair": places[::3]}]
    found = take(made, tmp_path, save(*decisions, dataset=made.fingerprint))
    assert [each.action for each in found] == ["drop"] * 4 + ["ignore"]
    assert said == [f"Left out, because the images are gone or changed since: {images}/4.bmp."]
    for each in found:
        with open(each.uri, "rb") as file:
            assert hashlib.sha256(file.read()).hexdigest() == each.sha256
    other = hashlib.sha256((images / "3.bmp").read_bytes()).hexdigest()
    assert {found[-1].sha256, found[-1].other_sha256} > {other}


def test_corrections_of_label_studio_are_decisions(made, tmp_path):
    example = runpy.run_path(str(Path(__file__).parents[2] / "examples/label_studio.py"))
    tasks = example["make_tasks"](Path(made.output_dir))
    uris = read_index(made.index_dir)["uri"].to_pylist()
    assert [task["data"]["image"] for task in tasks] == [
        f"/data/local-files/?d={uri[1:]}" for uri in uris
    ]
    [prediction] = tasks[0]["predictions"]
    assert prediction["result"][0]["value"] == {"choices": ["a"]}
    place = next(place for place, uri in enumerate(uris) if uri.endswith("png"))
    given = [(place, HOSTILE, False), ((place + 1) % 5, "b", True), ((place + 2) % 5, "a", False)]
    for task in tasks:
        task["annotations"] = [
            {"was_cancelled": cancelled, "result": [{"value": {"choices": [label]}}]}
            for each, label, cancelled in given
            if each == task["data"]["place"]
        ]
    [found] = take(made, tmp_path, json.dumps(example["find_corrections"](tasks)).encode())
    assert (found.action, found.uri, found.label) == ("relabel", uris[place], HOSTILE)
