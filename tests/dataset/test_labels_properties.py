"""The label map: every usable label has one number, and keeps it through its file."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from darkroom.dataset.labels import (
    build_label_map,
    format_labels,
    is_printable,
    normalise_label,
    parse_labels,
)

pytestmark = pytest.mark.slow

_LABELS = st.one_of(
    st.sampled_from(["007", "7", "é", "e\u0301", "\ufeffcat", "a b", "None", "nan"]),
    st.text(max_size=10),
)


def usable(texts):
    """Returns the labels of cells, as the manifest reads them."""
    labels = map(normalise_label, texts)
    return [label for label in labels if label and is_printable(label)]


@given(_LABELS)
def test_a_normalised_label_is_not_changed_again(text):
    label = normalise_label(text)
    assert normalise_label(label) == label
    assert label == label.strip()
    assert unicodedata.is_normalized("NFC", label)


@given(st.lists(_LABELS, max_size=12))
@example(["\ufeffcat", "dog"])
@example(["cat\ufeff", "\u2028", "\x85", "\x1c"])
def test_a_label_file_is_read_as_written(texts):
    label_map = build_label_map(usable(texts))
    assert parse_labels(format_labels(label_map)) == label_map
    label_file = format_labels(label_map).encode()
    assert label_file.count(b"\n") == len(label_map)
    assert parse_labels(label_file.replace(b"\n", b"\r\n").decode()) == label_map
