"""Keys: a moved source has the same ones, and a row that was seen before is parsed the same."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from darkroom.dataset import keys
from darkroom.dataset.rejects import Reject
from darkroom.manifest.rows import parse_rows
from darkroom.manifest.sources import open_sources
from darkroom.options.manifest import ManifestOptions

from ..storage.paths import NAMES, URIS

pytestmark = pytest.mark.slow


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
            st.lists(NAMES, max_size=3).map("/".join),
            URIS.filter(str.isprintable),
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
        # A path that leads out of the folder does not move with it.
        if item.uri.startswith(f"{root}/old/"):
            assert moved.uri == item.uri.replace("/old/", "/näw/", 1)
            assert moved == item._replace(uri=moved.uri)


@given(_CELLS)
@example([("file:///d/a.jpg", "a"), ("d\\a.jpg", "a"), (" a.jpg", "a"), ("C:/a.jpg", "a")])
def test_a_row_that_was_seen_before_is_parsed_the_same(root, cells):
    """Rows with a known split and label take a shorter way, which must give the same row."""
    alone = [parse(root, "once", [row])[0] for row in cells]
    later = parse(root, "once", [*cells, *cells])[len(cells) :]
    for number, (item, again) in enumerate(zip(alone, later, strict=True), len(cells) + 1):
        # The detail of a reject may name its line.
        detail = {"detail": again.detail} if isinstance(again, Reject) else {}
        assert again == item._replace(row=number, **detail)
        assert isinstance(item, Reject) or item.key == keys.make_key(item.id)
