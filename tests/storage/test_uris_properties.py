"""URIs: every spelling of a path has one normal form, and the same identity in any folder."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from darkroom.storage import uris

from .paths import PATHS, URIS

pytestmark = pytest.mark.slow

_ROOTS = st.sampled_from(["/", "gs://bucket/", "s3://b/"])


@given(URIS)
@example("//a")
@example("///..//a")
@example("gs://b/../..")
@example("gs://b//a/./")
def test_a_normal_form_is_its_own_normal_form(uri):
    once = uris.normalise_uri(uri)
    assert uris.normalise_uri(once) == once
    assert unicodedata.is_normalized("NFC", once)
    assert uris.resolve_uri(uris.resolve_uri(uri)) == uris.resolve_uri(uri)
    assert uris.has_scheme(once) == uris.has_scheme(uri)


@st.composite
def spellings(draw, names):
    """Spells a path in another way: with `.`, with `x/..`, decomposed or composed."""
    parts = []
    for name in names:
        parts += draw(st.sampled_from([[], ["."], ["x", ".."], ["x", ".", "y", "..", ".."]]))
        parts.append(unicodedata.normalize(draw(st.sampled_from(["NFC", "NFD"])), name))
    return "/".join(parts)


@given(_ROOTS, PATHS, st.data())
def test_every_spelling_has_the_same_normal_form(root, names, data):
    uri = root + "/".join(names)
    other = root + data.draw(spellings(names))
    assert uris.normalise_uri(other) == uris.normalise_uri(uri)


@given(_ROOTS, PATHS, PATHS, PATHS)
def test_a_moved_folder_has_the_same_identities(root, old, new, names):
    assume(not any(name.startswith("..") for name in names))
    found = set()
    for folder in (root + "/".join(old), root + "/".join(new)):
        uri = uris.normalise_uri(f"{folder}/{'/'.join(names)}")
        found.add(uris.relative_identity(uri, uris.normalise_uri(folder)))
    assert found == {unicodedata.normalize("NFC", "/".join(names))}
