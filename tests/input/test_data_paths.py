"""Which datasets and files a path names: what exists under a name, and else a pattern."""

from __future__ import annotations

import pytest

from darkroom.errors import DataError
from darkroom.evaluation.predict import list_images
from darkroom.input.data_paths import check_one_kind, find_split, list_roots
from darkroom.input.loading import load
from darkroom.input.reading import list_files

from ..records import write_records

pytestmark = pytest.mark.tensorflow

NAMES = ("out*", "out?", "out[x]", "out.csv", "outx", "out1")


@pytest.fixture
def places(helpers, tmp_path):
    for length, name in enumerate(NAMES, 3):
        write_records(tmp_path / name, {"train": helpers.make_rows(length)})
    return tmp_path


@pytest.mark.parametrize("name", NAMES)
def test_a_folder_that_exists_is_the_dataset(places, name):
    root = str(places / name)
    assert not check_one_kind([root])
    assert list_roots([root]) == [root]
    named = find_split([root], "train")
    assert [each["name"] for each in named.data] == [name]
    assert named.open()[0].count_images() == 3 + NAMES.index(name)
    assert load(root, image_size=8).num_images == {"train": 3 + NAMES.index(name)}


@pytest.mark.parametrize("name", NAMES)
def test_a_pattern_in_a_folder_that_exists_names_its_files(places, name):
    split = places / name / "Split-train"
    shards = sorted(map(str, split.iterdir()))
    assert list_files(f"{split}/*") == list_files(shards) == shards


def test_what_does_not_exist_is_a_pattern(places):
    assert list_roots([f"{places}/out[1]"]) == [f"{places}/out1"]
    assert list_files(f"{places}/out[12]/Split-*/*") == list_files(f"{places}/out1/Split-train/*")
    assert len(list_roots([f"{places}/o*"])) == len(NAMES)


def test_a_folder_that_was_never_finished_is_not_read_as_a_pattern(places):
    (places / "out*" / "dataset.json").unlink()
    with pytest.raises(DataError, match=r"out\*"):
        find_split([f"{places}/out*"], "train")


def test_images_to_predict_are_in_the_folder_that_exists(tmp_path):
    for name in ("ph[1]/a[b].png", "ph1/c.png"):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).touch()
    expected = [f"{tmp_path}/ph[1]/a[b].png"]
    assert list_images([f"{tmp_path}/ph[1]"]) == expected
    assert list_images(expected) == list_images([f"{tmp_path}/ph[1]/*"]) == expected
