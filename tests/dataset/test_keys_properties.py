"""Keys: one text for every spelling of a path, and the same one wherever the folder lies."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from darkroom.dataset import keys
from darkroom.dataset.rejects import Reject
from darkroom.manifest.rows import parse_rows
from darkroom.manifest.sources import open_sources
from darkroom.options.manifest import ManifestOptions
from darkroom.storage import uris

pytestmark = pytest.mark.slow

_LETTERS = st.one_of(
    st.sampled_from("ab. ~é\u0301\u1100\u1161Å\u212b"),
    st.characters(exclude_categories=["Cs"], exclude_characters='/\0\r\n",'),
)
_NAMES = st.text(_LETTERS, min_size=1, max_size=6).filter(lambda name: name not in (".", ".."))
_PATHS = st.lists(_NAMES, min_size=1, max_size=4)
_ROOTS = st.sampled_from(["/", "gs://bucket/", "s3://b/"])
_URIS = st.one_of(
    st.text(st.sampled_from("ab./:é"), max_size=14),
    st.text(st.sampled_from("ab./é"), max_size=12).map("gs://bucket/".__add__),
    st.text(max_size=12),
)


@given(_URIS)
@example("//a")
@example("///..//a")
@example("gs://b/../..")
@example("gs://b//a/./")
def test_to_normalise_twice_changes_nothing(uri):
    once = uris.normalise_uri(uri)
    assert uris.normalise_uri(once) == once
    assert unicodedata.is_normalized("NFC", once)
    assert uris.resolve_uri(uris.resolve_uri(uri)) == uris.resolve_uri(uri)
    assert uris.is_remote(once) == uris.is_remote(uri)


@st.composite
def spellings(draw, names):
    """Returns a path in other words: with `.`, with ways in and out, decomposed or composed."""
    parts = []
    for name in names:
        parts += draw(st.sampled_from([[], ["."], ["x", ".."], ["x", ".", "y", "..", ".."]]))
        parts.append(unicodedata.normalize(draw(st.sampled_from(["NFC", "NFD"])), name))
    return "/".join(parts)


@given(_ROOTS, _PATHS, st.data())
def test_every_spelling_has_one_key(root, names, data):
    uri = root + "/".join(names)
    other = root + data.draw(spellings(names))
    assert uris.normalise_uri(other) == uris.normalise_uri(uri)


@given(_ROOTS, _PATHS, _PATHS, _PATHS)
def test_a_moved_folder_has_the_same_identities(root, old, new, names):
    assume(not any(name.startswith("..") for name in names))
    found = set()
    for folder in (root + "/".join(old), root + "/".join(new)):
        uri = uris.normalise_uri(f"{folder}/{'/'.join(names)}")
        found.add(uris.relative_identity(uri, uris.normalise_uri(folder)))
    assert found == {unicodedata.normalize("NFC", "/".join(names))}


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    return tmp_path_factory.mktemp("keys")


def parse(root, name, cells):
    folder = root / name
    folder.mkdir(exist_ok=True)
    lines = ['"{}","{}"'.format(*(cell.replace('"', '""') for cell in row)) for row in cells]
    text = "\n".join(["image_uri,label", *lines])
    (folder / "m.csv").write_text(text, "utf-8", newline="")
    return list(parse_rows(open_sources(folder / "m.csv"), ManifestOptions()))


_CELLS = st.lists(
    st.tuples(
        st.one_of(
            st.lists(st.sampled_from(["a", "B.jpg", ".", "..", "", " "]), max_size=5).map("/".join),
            st.lists(_NAMES, max_size=3).map("/".join),
            _URIS.filter(str.isprintable),
        ),
        st.sampled_from(["", "a", " a", "b", "\x07"]),
    ),
    min_size=1,
    max_size=5,
)


@given(_CELLS)
@example([("a.jpg", "a"), ("./a.jpg", "a"), ("x/../é.jpg", "b")])
def test_a_moved_source_has_the_same_keys(root, cells):
    first, second = (parse(root, name, cells) for name in ("old", "näw"))
    for item, moved in zip(first, second, strict=True):
        # What leads out of the folder stays where it is.
        if item.uri.startswith(f"{root}/old/"):
            assert moved.uri == item.uri.replace("/old/", "/näw/", 1)
            assert moved == item._replace(uri=moved.uri)


@given(_CELLS)
@example([("file:///d/a.jpg", "a"), ("d\\a.jpg", "a"), (" a.jpg", "a"), ("C:/a.jpg", "a")])
def test_a_row_that_was_seen_before_is_parsed_alike(root, cells):
    """Rows whose split and label are known take a shorter way: it must lead to the same place."""
    alone = [parse(root, "once", [row])[0] for row in cells]
    later = parse(root, "once", [*cells, *cells])[len(cells) :]
    for number, (item, again) in enumerate(zip(alone, later, strict=True), len(cells) + 1):
        # A refusal may name its line.
        detail = {"detail": again.detail} if isinstance(again, Reject) else {}
        assert again == item._replace(row=number, **detail)
        assert isinstance(item, Reject) or item.key == keys.make_key(item.id)
