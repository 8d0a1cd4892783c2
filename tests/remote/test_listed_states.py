"""States of many images from listings, the same as one by one."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from darkroom import storage
from darkroom.dataset.manifest import read_manifest_rows
from darkroom.manifest import chunks
from darkroom.manifest.chunks import list_states
from darkroom.manifest.fingerprint import read_source_state
from darkroom.manifest.writer import write_manifest
from darkroom.options.manifest import ManifestOptions

NAMES = ["#1.jpg", "a b.jpg", "größe.jpg", *(f"{number:03d}.jpg" for number in range(20))]


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chunks, "_MIN_IMAGES", 4)


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(4) as made:
        yield made


def _write_images(root: str) -> list[str]:
    uris = [f"{root}/deep/images/{name}" for name in NAMES]
    for number, uri in enumerate((*uris, f"{root}/deep/images/below/000.jpg", f"{root}/few.jpg")):
        storage.write_bytes(uri, b"x" * number)
    return uris


def test_listings_give_the_same_states_as_look_ups(store, pool):
    proxy, root = store
    uris = _write_images(root)
    looked_up = {uri: storage.stat_file(uri) for uri in uris}
    proxy.requests.clear()
    given = [*uris, f"{root}/deep/images/absent.jpg", f"{root}/few.jpg"]
    assert list_states(given, pool) == looked_up
    assert len(proxy.requests) == 1


def test_a_fingerprint_is_the_same_by_listings_and_one_by_one(store, tmp_path: Path, monkeypatch):
    proxy, root = store
    uris = _write_images(root)
    source = tmp_path / "images.csv"
    rows = "".join(f"train,{uri},cat\n" for uri in (*uris, f"{root}/deep/images/absent.jpg"))
    source.write_text(f"split,image_uri,label\n{rows}")
    proxy.requests.clear()
    listed = read_source_state(str(source))
    # The missing image is looked up by its name, twice.
    assert len(proxy.requests) == 3
    with monkeypatch.context() as patch:
        patch.setattr(chunks, "_MIN_IMAGES", 1000)
        assert read_source_state(str(source)) == listed
    storage.write_bytes(uris[5], b"y" * 5)  # of the same length
    assert read_source_state(str(source)) != listed


def test_images_that_are_not_named_end_a_listing(s3, pool, monkeypatch):
    from darkroom.storage.requests import open_store

    client = open_store("s3://photos/")._client  # type: ignore[attr-defined]
    plain = client.list_objects_v2
    monkeypatch.setattr(client, "list_objects_v2", lambda **given: plain(**given, MaxKeys=6))
    for number in range(60):
        storage.write_bytes(f"s3://photos/i/{number:02d}.jpg", b"x")
    s3.requests.clear()
    # Two pages from the first name on are worth it, the third is not; no others are requested.
    named = [f"s3://photos/i/{number:02d}.jpg" for number in (*range(10, 22), 59)]
    assert set(list_states(named, pool)) == set(named[:-1])
    assert s3.count("list-type=2") == 3
    # From the first named image to the last.
    s3.requests.clear()
    assert set(list_states(named[:-1], pool)) == set(named[:-1])
    assert s3.count("list-type=2") == 2


def test_images_are_looked_up_where_listing_is_not_allowed(s3, tmp_path: Path):
    uris = _write_images("s3://photos")
    source = tmp_path / "images.csv"
    rows = "".join(f"train,{uri},cat\n" for uri in uris)
    source.write_text(f"split,image_uri,label\n{rows}")
    listed = read_source_state(str(source))
    s3.fail("list-type=2", 403)
    s3.requests.clear()
    assert read_source_state(str(source)) == listed
    assert s3.count("HEAD") == len(uris)


def test_an_image_in_the_folders_of_two_labels_is_one_in_a_store_too(store, tmp_path: Path):
    _, root = store
    for name, data in {"cat/1.jpg": b"a", "dog/1.jpg": b"b", "cat/2.jpg": b"a"}.items():
        storage.write_bytes(f"{root}/photos/{name}", data)
    storage.write_bytes(f"{root}/photos/dog/2.jpg", b"longer")
    options = ManifestOptions.parse(label_kind="labels")
    made = write_manifest(f"{root}/photos", str(tmp_path), str(tmp_path), options)
    rows = read_manifest_rows(str(tmp_path), 0, 4)
    assert {row.id: (row.label, row.copies) for row in rows} == {
        "cat/1.jpg": (["cat", "dog"], [f"{root}/photos/dog/1.jpg"]),
        "cat/2.jpg": (["cat"], None),
        "dog/2.jpg": (["dog"], None),
    }
    assert made.deduplicated == 1
