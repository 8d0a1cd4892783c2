import os
from concurrent.futures import ThreadPoolExecutor

import pytest

from darkroom import storage
from darkroom.dataset.rejects import Reject
from darkroom.manifest.chunks import look_up, read_chunks
from darkroom.manifest.rows import COLUMNS, Chunk


def make_block(*uris, rejects=()):
    row = ("k", "id", "", "train", "train", "cat", 1, 0, 7, None, None, {})
    columns = {name: [value] * len(uris) for name, value in zip(COLUMNS, row, strict=True)}
    return Chunk({**columns, "uri": [*uris]}, [*rejects])


def make(*uris, rejects=()):
    [chunk] = read_chunks([make_block(*uris, rejects=rejects)])
    with ThreadPoolExecutor(2) as pool:
        look_up(chunk, pool)
    return chunk


REJECT = Reject(2, "b.jpg", "train", "", "manifest", "empty_label", "", "b.jpg")


def test_local_images_have_a_size_and_a_version(tmp_path):
    (tmp_path / "ä.jpg").write_bytes(b"12345")
    os.utime(tmp_path / "ä.jpg", ns=(7, 1_234_567_890_123_456_789))
    (tmp_path / "link.jpg").symlink_to("ä.jpg")
    names = ["ä.jpg", "missing.jpg", "link.jpg", "ä.jpg/inside.jpg"]

    chunk = make(*(f"{tmp_path}/{name}" for name in names))

    assert chunk.columns["size"] == [5, None, 5, None]
    assert chunk.columns["mtime"] == ["1234567890123456789", None, "1234567890123456789", None]


@pytest.mark.parametrize("name", ["x" * 300, "\ud800"])
def test_one_impossible_path_does_not_hide_the_state_of_others(tmp_path, name):
    (tmp_path / "a.jpg").write_bytes(b"123")
    chunk = make(f"{tmp_path}/{name}", f"{tmp_path}/a.jpg")
    assert chunk.columns["size"] == [None, 3]


def test_remote_images_are_asked_for(tmp_path, monkeypatch):
    (tmp_path / "a.jpg").write_bytes(b"123")
    monkeypatch.setattr(storage, "stat_file", lambda uri: storage.FileInfo(9, uri[-5:]))
    columns = make("gs://b/1.jpg", f"{tmp_path}/a.jpg", "", "gs://b/2.jpg").columns
    assert columns["size"] == [9, 3, None, 9]
    assert (columns["mtime"][0], columns["mtime"][3]) == ("1.jpg", "2.jpg")


def test_a_chunk_has_the_columns_of_entries_and_the_rejects():
    chunk = make("", "", rejects=[REJECT])
    assert list(chunk.columns) == [*COLUMNS]
    assert chunk.columns["label"] == ("cat", "cat")
    assert (chunk.rejects, chunk.num_rows) == ([REJECT], 3)


def test_a_chunk_may_have_no_entry():
    chunk = make(rejects=[REJECT])
    assert {len(column) for column in chunk.columns.values()} == {0}
    assert chunk.num_rows == 1


def test_chunks_keep_the_order(monkeypatch):
    monkeypatch.setattr("darkroom.manifest.chunks.CHUNK_ROWS", 3)
    blocks = [
        make_block("0.jpg"),
        make_block("1.jpg", "2.jpg"),
        make_block("3.jpg", "4.jpg", rejects=[REJECT]),
        make_block("5.jpg"),
    ]
    chunks = list(read_chunks(blocks))
    assert [chunk.columns["uri"] for chunk in chunks] == [
        ("0.jpg", "1.jpg", "2.jpg"),
        ("3.jpg", "4.jpg"),
        ("5.jpg",),
    ]
    assert [chunk.rejects for chunk in chunks] == [[], [REJECT], []]
