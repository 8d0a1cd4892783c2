"""A dataset that is opened by a link, which leads to another one later."""

from __future__ import annotations

import os
import pickle
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from PIL import Image

import darkroom
from darkroom.cli import main
from darkroom.conversion.planned_list import list_planned_rows
from darkroom.data.open import find_roots
from darkroom.dataset.commit import read_dataset
from darkroom.dataset.named import name_dataset
from darkroom.dataset.opening import IN_USE_FILE, open_dataset
from darkroom.errors import OutputError, StorageError, UsageError


@pytest.fixture
def link(tmp_path) -> Path:
    """A link to the first of two datasets of equally many images, `versions/1` and `versions/2`."""
    for number, first in enumerate((0, 100), 1):
        rows = []
        for each in range(16):
            path = tmp_path / f"{number}-{each:02d}.png"
            Image.new("L", (8, 8), first + each).save(path)
            rows.append((str(path), "ab"[each % 2], "train"))
        table = pd.DataFrame(rows, columns=["image_uri", "label", "split"])
        darkroom.convert(table, tmp_path / "versions" / str(number), num_shards=4)
    (tmp_path / "link").symlink_to("versions/1")
    return tmp_path / "link"


def lead_on(link: Path) -> None:
    (link.parent / "new").symlink_to("versions/2")
    (link.parent / "new").rename(link)


def load(place: Path | str, **arguments):
    arguments = {"image_size": 8, "batch_size": 2, "framework": "numpy"} | arguments
    return darkroom.load(place, **arguments)["train"]


def read(batches) -> list[list[int]]:
    return [images[:, 0, 0, 0].tolist() for images, _ in batches]


@pytest.mark.parametrize("name", ["link", "li*"])
def test_a_reader_stays_with_the_dataset_that_it_opened(link, name):
    loader, other = (load(link.parent / name, training=False) for _ in range(2))
    single = loader.images[3][0].tolist()
    before = read(loader)
    lead_on(link)
    for each in (loader, other, pickle.loads(pickle.dumps(loader))):
        assert read(each) == before
        assert each.images[3][0].tolist() == single
    # Whoever opens the link now has the other one.
    assert {value for each in read(load(link)) for value in each} == set(range(100, 116))


def test_a_state_goes_on_where_the_dataset_is_opened_by_its_own_path(link):
    loader = load(link, training=True, augment="none")
    whole = read(loader)
    loader = load(link, training=True, augment="none")
    batches = iter(loader)
    read(next(batches) for _ in range(3))
    state = loader.state_dict()
    lead_on(link)
    again = load(link.parent / "versions/1", training=True, augment="none")
    again.load_state_dict(state)
    assert read(again) == whole[3:]
    with pytest.raises(UsageError, match="The state is of the commit"):
        load(link, training=True, augment="none").load_state_dict(state)


@pytest.mark.crosses
def test_whoever_opens_a_dataset_names_the_one_that_the_link_leads_to(link, tmp_path):
    root = str(tmp_path / "versions/1")
    fingerprint = read_dataset(root).fingerprint
    assert (
        find_roots([link], [f"{tmp_path}/li*"], [name_dataset(str(link), fingerprint)])
        == [[root]] * 3
    )
    assert darkroom.validate(link).directory == root
    assert darkroom.verify(link).directory == root
    assert darkroom.diff(link, link).directory == root
    lead_on(link)
    with pytest.raises(StorageError, match=f"expected {fingerprint}"):
        load(name_dataset(str(link), fingerprint))


@pytest.mark.crosses
def test_a_file_below_the_link_is_in_the_dataset(link):
    """Its path and that of the dataset differ in text."""
    with pytest.raises(OutputError, match="would be in the dataset"):
        list_planned_rows(link, link / "all.jsonl")
    assert main(["validate", str(link), "--report", f"{link}/report"]) == 4


def test_a_dataset_that_may_be_held_is_held_by_who_reads_it(link):
    mark = link / IN_USE_FILE
    loader = load(link, training=False)
    assert not mark.exists()
    mark.touch()
    for use in (
        lambda: open_dataset(str(link)),
        lambda: load(link),
        lambda: next(iter(loader)),
    ):
        os.utime(mark, (1, 1))
        use()
        assert mark.stat().st_mtime > 1
    os.utime(mark, (1, 1))
    batches = iter(loader)
    next(batches)
    os.utime(mark, (1, 1))
    assert len(list(batches)) == 7
    assert mark.stat().st_mtime > 1, "it is held while it is read"
    assert np.sum([len(each) for each in read(loader)]) == 16


def test_who_may_not_write_reads_and_does_not_hold(link, monkeypatch):
    (link / IN_USE_FILE).touch()

    def fail(*_):
        raise PermissionError("read-only")

    monkeypatch.setattr(os, "utime", fail)
    assert len(read(load(link))) == 8
