"""Rejects as a manifest: run again without a fix they are rejected for the same reasons."""

from __future__ import annotations

import csv
import json

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from darkroom.dataset.rejects import Reject, RejectsWriter, read_rejects, write_rejects
from darkroom.dataset.schema import Schema
from darkroom.manifest.opening import open_sources
from darkroom.manifest.writer import write_manifest
from darkroom.options.manifest import ManifestOptions

pytestmark = pytest.mark.slow

_TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\ufdd0\0"), max_size=8)
_VALUES = st.one_of(
    st.none(), st.integers(-(1 << 63), (1 << 63) - 1), st.floats(allow_nan=False), st.text()
)
_REJECTS = st.builds(
    Reject,
    row=st.integers(1, 1 << 40),
    uri=_TEXT,
    split=st.sampled_from(["", "train", "eval", "test"]),
    label=st.one_of(st.none(), _TEXT),
    stage=st.sampled_from(["manifest", "convert"]),
    reason=st.sampled_from(["truncated", "no_image"]),
    detail=_TEXT,
    id=_TEXT,
    extra=st.dictionaries(st.text(max_size=5), _VALUES, max_size=3),
    span=st.integers(0, 1 << 40),
    size=st.none() | st.integers(0, 1 << 40),
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("rejects")


@settings(max_examples=settings().max_examples // 2)
@given(st.lists(_REJECTS, max_size=5), st.integers(0, 5))
def test_rejects_are_read_as_written(folder, rejects, cut):
    parts = []
    for number, some in enumerate((rejects[:cut], rejects[cut:])):
        parts.append(f"{folder}/part-{number}.parquet")
        with RejectsWriter(parts[-1]) as writer:
            for reject in some:
                writer.add(reject)
    assert write_rejects(str(folder), parts)[0] == len(rejects)
    assert list(read_rejects(f"{folder}/rejects.parquet")) == rejects
    lines = (folder / "rejects.jsonl").read_bytes().decode().split("\n")
    assert lines.pop() == ""
    for line, reject in zip(lines, rejects, strict=True):
        found = json.loads(line)
        assert (found["image_uri"], found.get("label")) == (reject.uri, reject.label)
        assert found.get("extra", {}) == reject.extra


_ROWS = st.lists(
    st.tuples(
        st.sampled_from(["TRAIN", "VALIDATION", "test", ""]),
        st.one_of(
            st.sampled_from(["", "a.jpg", "./a.jpg", "b c.jpg", "/x/é.jpg", "http://h/a.jpg"]),
            _TEXT,
        ),
        st.one_of(st.sampled_from(["", "cat", "dog", "\x07"]), _TEXT),
        st.one_of(st.sampled_from(["", "7", "seven"]), _TEXT),
    ),
    min_size=1,
    max_size=8,
)
_SCHEMA = Schema.parse(
    {"split": "split", "image_uri": "image", "label": "string_label", "age": "integer"}
)


@settings(max_examples=settings().max_examples // 4)
@given(_ROWS)
@example([("", "", "cat", ""), ("TRAIN", "a.jpg", "cat", "x"), ("TEST", "a.jpg", "cat", "1")])
def test_rejects_without_a_fix_are_rejected_again(folder, rows):
    first, second = folder / "first", folder / "second"
    first.mkdir(exist_ok=True)
    with (first / "m.csv").open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([("split", "image_uri", "label", "age"), *rows])
    options = ManifestOptions(schema=_SCHEMA)
    manifest = write_manifest(first / "m.csv", str(first), str(first), options)
    rejects = list(read_rejects(f"{first}/rejects.parquet"))
    assert manifest.rejected == len(rejects)
    if not rejects:
        return

    assert list(open_sources(first / "rejects.jsonl", options)[0].rows())
    again = write_manifest(first / "rejects.jsonl", str(second), str(second), options)

    assert (again.rows, again.rejected) == (len(rejects), len(rejects))
    assert [identify(r) for r in read_rejects(f"{second}/rejects.parquet")] == [
        identify(r) for r in rejects
    ]


def identify(reject):
    """Returns the fields that a rerun keeps; the numbers of rows change, and texts name them."""
    return (reject.uri, reject.split, reject.label, reject.id, reject.reason, reject.extra)
