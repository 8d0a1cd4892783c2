"""Rows are the same however they are parsed: plain paths or all, together or one by one."""

from __future__ import annotations

from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.parsed import parse_rows

from darkroom.dataset.schema import Schema
from darkroom.errors import DataError, RejectError
from darkroom.manifest import rows as parsers
from darkroom.manifest.sources.base import Row
from darkroom.options.manifest import ManifestOptions

pytestmark = pytest.mark.slow

SCHEMA = {"split": "split", "image_uri": "image", "label": "string_label", "age": "integer"}
BASES = ["/set", "/set/below", "/set/a\u0301", "/", "/set/../x", "gs://bucket/set"]
# Texts that are often equal, so that labels and splits were seen before.
SPLITS = st.sampled_from(["TRAIN", "train", "TEST", "", None, "tran"])
LABELS = st.sampled_from(["cat", " cat", "7", "007", "", "a\0", None, 7, "\u00e4", "a\u0308"])
AGES = st.sampled_from(["8", "-1", "", "eight", None, 3, 2.5])
PATHS = st.sampled_from(["a.jpg", "x/a.jpg", "/set/a.jpg", "gs://bucket/a.jpg", "/else/a.jpg"])
PATHS |= st.sampled_from(["C:/a.jpg", "data:a.jpg", "x:y.jpg", "file:///set/a.jpg", "http://h/a"])
PATHS |= st.text("ab/.:\\~ \0\u00e4\u0301", max_size=9) | st.none() | st.integers()


class GivenRows:
    """A source that holds rows in memory; see `Source`."""

    name = "rows"
    span = 0
    has_types = True

    def __init__(self, schema, base, identity_base, split, rows):
        self.schema, self.base, self.identity_base = schema, base, identity_base
        self.split = split
        self._rows = rows

    def rows(self):
        for number, (values, is_bad) in enumerate(self._rows, start=1):
            fault = RejectError("ragged_row", "it has too few cells") if is_bad else None
            yield Row(number, list(values), fault)


@st.composite
def sources(draw):
    """Draws a source with all its columns, or without splits, labels or ages."""
    absent = draw(st.sets(st.sampled_from(["split", "label", "age"])))
    label = draw(st.sampled_from(["string_label", "integer_label"]))
    kinds = {name: kind for name, kind in SCHEMA.items() if name not in absent}
    if "label" in kinds:
        kinds["label"] = label
    drawn = {"split": SPLITS, "image_uri": PATHS, "label": LABELS, "age": AGES}
    row = st.tuples(*(drawn[name] for name in kinds))
    base = draw(st.sampled_from(BASES))
    # A DataFrame has no folder, so its images are identified by their paths alone.
    identity_base = draw(st.sampled_from([base, ""]))
    rows = draw(st.lists(st.tuples(row, st.sampled_from([False, False, True])), min_size=1))
    split = draw(st.sampled_from(["", "test"]))
    return GivenRows(Schema.parse(kinds), base, identity_base, split, rows)


def parse(source, options):
    """Returns what becomes of each row, or the error that ends them."""
    try:
        return list(parse_rows([source], options)), None
    except DataError as error:
        return None, str(error)


@given(sources(), st.integers(0, 3), st.sampled_from([None, ("cat", "7")]))
def test_plain_paths_say_the_same_as_all_others(source, seed, labels):
    if source.schema.has_integer_labels:
        labels = None  # they number themselves
    options = ManifestOptions(seed=seed, labels=labels)
    fast = parse(source, options)
    with patch.object(parsers, "_find_plain_prefix", return_value=None):
        assert parse(source, options) == fast


@given(sources(), st.integers(0, 3))
def test_rows_of_a_block_say_the_same_as_one_by_one(source, seed):
    options = ManifestOptions(seed=seed)
    together = parse(source, options)
    with patch.object(parsers, "BLOCK_ROWS", 1):
        assert parse(source, options) == together
