"""A commit that somebody wrote by hand: every wrong type and range is damage, for all readers."""

from __future__ import annotations

import copy
import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from darkroom.dataset.commit import Dataset, Shard, SplitShards, format_dataset, read_dataset
from darkroom.dataset.opening import open_dataset
from darkroom.errors import DataError
from darkroom.proof.verify import verify

_SHARD = Shard("Split-train/data_tfrecord-00000-of-00001", 2, 9, "0" * 64)
_WHOLE = Dataset(
    format_version=3,
    fingerprint="",
    options={"checks": "full", "seed": 0},
    checks="full",
    features={"image/encoded": {"type": "bytes"}},
    labels=("a", "b"),
    rows=4,
    written=2,
    rejected=1,
    deduplicated=1,
    splits={"train": SplitShards(2, (_SHARD,))},
).with_files()
FIELDS = json.loads(format_dataset(_WHOLE))

# Values that no field has: types, ranges, and texts that no file name and no label can be.
NAMED = {"label": {"kind": "label", "names": ["x"]}}
WRONG = (None, True, -1, 1.5, 10**30, "5", "", "\ud800", "a\0b", [], ["x"], [["x"]], {}, {"a": 1})


def list_places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yields the place of every value in a commit."""
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for name, each in items:
        yield (*path, name)
        if isinstance(each, dict | list):
            yield from list_places(each, (*path, name))


# Options are what a conversion was given: any object is one.
PLACES = [p for p in list_places(FIELDS) if p[0] not in ("fingerprint",) and len(p[1:]) < 9]


def sign(fields: dict[str, Any]) -> str:
    """Returns a commit whose fingerprint fits."""
    rest = {name: value for name, value in fields.items() if name != "fingerprint"}
    text = json.dumps(rest, sort_keys=True, separators=(",", ":"))
    return json.dumps({**rest, "fingerprint": hashlib.sha256(text.encode()).hexdigest()})


def write(root: Path, fields: dict[str, Any]) -> None:
    (root / "dataset.json").write_text(sign(fields))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "Split-train").mkdir()
    (tmp_path / _SHARD.file).write_bytes(b"123456789")
    (tmp_path / "labels.txt").write_text("a\nb\n")
    return tmp_path


def test_the_commit_itself_is_read(root):
    write(root, FIELDS)
    assert open_dataset(str(root)) == _WHOLE


@pytest.mark.parametrize("place", PLACES, ids=lambda place: "-".join(map(str, place)))
def test_a_wrong_value_is_damage_that_all_readers_see(root, place):
    refused = 0
    for value in (*WRONG, ...):
        fields = copy.deepcopy(FIELDS)
        target = fields
        for name in place[:-1]:
            target = target[name]
        if value is ...:
            del target[place[-1]]
        elif target[place[-1]] == value and type(target[place[-1]]) is type(value):
            continue
        else:
            target[place[-1]] = value
        write(root, fields)
        is_object = isinstance(fields.get("options"), dict)
        is_free = (place[0] == "options" and is_object) or fields.get("targets") == NAMED
        if is_free or fields.get("features") == {}:
            # Options are any object that a conversion was given. A dataset may have no features,
            # and numbers any name.
            open_dataset(str(root))
            continue
        refused += 1
        with pytest.raises(DataError, match=r"damaged|has format"):
            open_dataset(str(root))
        assert verify(root).is_damaged
    assert refused or place[0] == "options"


def test_a_name_that_is_there_twice_is_damage(root):
    text = sign(FIELDS).replace('"rows": 4', '"rows": 5, "rows": 4', 1)
    (root / "dataset.json").write_text(text)
    with pytest.raises(DataError, match="a name is in it twice"):
        read_dataset(str(root))


def test_an_unknown_field_is_damage(root):
    write(root, {**FIELDS, "more": 1})
    with pytest.raises(DataError, match="'more' is unknown"):
        read_dataset(str(root))


def test_a_wrong_length_with_the_right_hash_is_found(root):
    data = b"123456789"
    fields = copy.deepcopy(FIELDS)
    fields["splits"]["train"]["shards"][0] |= {
        "sha256": hashlib.sha256(data).hexdigest(),
        "bytes": 8,
    }
    write(root, fields)
    said = [finding.what for finding in verify(root).findings if finding.path == "dataset.json"]
    assert f"says that {_SHARD.file} has 8 bytes; it has 9" in said
