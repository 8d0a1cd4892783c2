"""An update of a dataset in a store."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

import darkroom
from darkroom import storage
from darkroom.dataset.commit import read_dataset
from darkroom.dataset.pointer import find_data
from darkroom.decisions.saved import FORM
from darkroom.manifest import chunks
from darkroom.options import ConversionOptions
from darkroom.runtime import progress
from darkroom.validation.browse import write_gallery

from ..html_page import Page
from ..pictures import encode, make_noise

pytestmark = pytest.mark.heavy


@pytest.mark.parametrize("store", ["s3", pytest.param("gs", marks=pytest.mark.long)], indirect=True)
def test_an_update_asks_for_no_unchanged_image_and_for_its_records_alone(
    store, tmp_path, monkeypatch
):
    proxy, root = store
    monkeypatch.setattr(chunks, "_MIN_IMAGES", 2)
    names = [f"{number:02d}.png" for number in range(8)]
    for number, name in enumerate(names):
        storage.write_bytes(f"{root}/images/{name}", encode(make_noise(number, 8, 8)))
    source, records = tmp_path / "images.csv", f"{root}/records"

    def convert(label, **options):
        lines = [f"{root}/images/{name},a\n" for name in names]
        lines[7] = lines[7].replace(",a", f",{label}")
        source.write_text("image_uri,label\n" + "".join(lines))
        proxy.requests.clear()
        made = ConversionOptions(update=True, split_ratios="1,0,0", **options)
        darkroom.convert(source, records, options=made)

    convert("a", num_shards={"train": 2})
    assert proxy.count(".png") >= 8
    # Of the two old shards each of the four new ones takes a half.
    old = read_dataset(find_data(records))
    copied, read = [], []
    copy_range, hash_file = storage.copy_range, storage.hash_file

    def note(source, destination, first, stop):
        copied.append(stop - first)
        copy_range(source, destination, first, stop)

    monkeypatch.setattr(storage, "copy_range", note)
    monkeypatch.setattr(storage, "hash_file", lambda path: read.append(path) or hash_file(path))
    convert("b", num_shards={"train": 4})
    assert not proxy.count(".png")
    assert len(copied) == 4
    assert sum(copied) == sum(shard.bytes for shard in old.splits["train"].shards)
    assert not any("/Split-" in path for path in read)
    assert darkroom.verify(records).is_sound


@pytest.mark.parametrize("store", ["gs", pytest.param("s3", marks=pytest.mark.long)], indirect=True)
def test_a_dataset_takes_the_shards_of_a_base_in_another_store(store, tmp_path):
    _, root = store
    (tmp_path / "1.png").write_bytes(encode(make_noise(1, 8, 8)))
    source = tmp_path / "images.csv"
    source.write_text("image_uri,label\n1.png,a\n")
    first, onto_disk, back = f"{root}/records", str(tmp_path / "records"), f"{root}/again"
    made = darkroom.convert(source, first)
    for base, place in [(first, onto_disk), (onto_disk, back)]:
        darkroom.convert(source, place, options=ConversionOptions(base=base))
        assert read_dataset(find_data(place)).splits == read_dataset(find_data(first)).splits
        assert darkroom.verify(place).fingerprint == made.fingerprint


@pytest.mark.parametrize("store", [pytest.param("s3", marks=pytest.mark.long), "gs"], indirect=True)
def test_what_the_gallery_saved_is_kept_beside_its_file_and_in_the_dataset(
    store, tmp_path, monkeypatch
):
    proxy, root = store
    lines = []
    for number in range(3):
        (tmp_path / f"{number}.jpg").write_bytes(encode(make_noise(number, 8, 8), "JPEG"))
        lines.append(f"{number}.jpg,a\n")
    source, saved = tmp_path / "images.csv", f"{root}/decisions.json"
    source.write_text("image_uri,label\n" + "".join(lines))
    options = ConversionOptions(update=True, allow_removals=True, split_ratios="1,0,0")
    darkroom.convert(source, f"{root}/records", options=options)
    write_gallery(f"{root}/records", tmp_path / "gallery.html")
    facts = Page((tmp_path / "gallery.html").read_text()).blocks["facts"]
    # Not the folder that the next run replaces.
    assert facts["place"] == {"records": f"{root}/records"}
    drop = {"action": "drop", "places": [1]}
    text = {"form": FORM, "dataset": facts["fingerprint"], **facts["place"], "decisions": [drop]}
    storage.write_bytes(saved, json.dumps(text).encode())
    options = replace(options, decisions=saved)
    # Who may not write there has them in the dataset alone.
    said = []
    monkeypatch.setattr(progress, "warn", said.append)
    proxy.fail("PUT /photos/decisions.", 403, times=1)
    proxy.fail("POST /upload/storage/v1/b/photos", 403, times=1)
    [decided, again] = [
        darkroom.convert(source, f"{root}/records", options=options) for _ in range(2)
    ]
    assert (decided.written, again.already_complete) == (2, True)
    assert sum("in the dataset alone" in each for each in said) == 1
    assert darkroom.verify(f"{root}/records").is_sound
    found = storage.match_pattern(f"{root}/decisions.*")
    storage.delete_files(each for each in found if each != saved)
    assert darkroom.convert(source, f"{root}/records", options=options).already_complete
