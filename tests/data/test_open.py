"""Which datasets and files a path names: what exists under a name, and else a pattern."""

from __future__ import annotations

import pytest

from darkroom.data.open import find_roots, list_files, open_data
from darkroom.errors import DataError, UsageError
from darkroom.input.loading import load

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
    assert find_roots([root]) == [[root]]
    [part] = open_data([root]).splits["train"].data
    assert (part["name"], part["records"]) == (name, 3 + NAMES.index(name))
    assert load(root, image_size=8).num_images == {"train": 3 + NAMES.index(name)}


@pytest.mark.parametrize("name", NAMES)
def test_a_pattern_in_a_folder_that_exists_names_its_files(places, name):
    split = places / name / "Split-train"
    shards = sorted(map(str, split.iterdir()))
    assert list_files([f"{split}/*"]) == list_files(shards) == shards


def test_what_does_not_exist_is_a_pattern(places):
    assert find_roots([f"{places}/out[1]"]) == [[f"{places}/out1"]]
    shards = list_files([f"{places}/out1/Split-train/*"])
    assert list_files([f"{places}/out[12]/Split-*/*"]) == shards
    found = open_data([f"{places}/o*"]).splits["train"].data
    assert sorted(each["name"] for each in found) == sorted(NAMES)
    assert load(f"{places}/o*", image_size=8).num_images == {"train": 3 + 4 + 5 + 6 + 7 + 8}


def test_a_folder_that_was_never_finished_is_not_read_as_a_pattern(places):
    (places / "out*" / "dataset.json").unlink()
    with pytest.raises(DataError, match=r"out\*"):
        open_data([f"{places}/out*"])


@pytest.mark.parametrize("inside", ["Split-train", "Split-train/data_tfrecord-00000-of-00001"])
@pytest.mark.parametrize("ending", ["", "*"])
def test_a_part_of_a_dataset_is_not_taken_for_images(places, inside, ending):
    with pytest.raises(UsageError, match=f"is a part of the dataset {places}/out1") as caught:
        find_roots([f"{places}/out1/{inside}{ending}"])
    assert f"Give {places}/out1:" in caught.value.hint


@pytest.mark.crosses
def test_images_to_predict_are_in_the_folder_that_exists(tmp_path):
    from darkroom.evaluation.predict import list_image_files

    for name in ("ph[1]/a[b].png", "ph1/c.png"):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).touch()
    expected = [f"{tmp_path}/ph[1]/a[b].png"]
    assert list_image_files([f"{tmp_path}/ph[1]"]) == expected
    assert list_image_files(expected) == list_image_files([f"{tmp_path}/ph[1]/*"]) == expected


@pytest.fixture
def two_splits(helpers, tmp_path):
    """A dataset with two splits, and one of the same labels with an eval split alone."""
    write_records(tmp_path / "a", {"train": helpers.make_rows(4), "eval": helpers.make_rows(3)})
    write_records(tmp_path / "b", {"eval": helpers.make_rows(5)})
    return str(tmp_path / "a"), str(tmp_path / "b")


def test_the_eval_split_may_be_in_other_data(two_splits):
    first, second = two_splits
    data = open_data([first], [second])
    assert {name: list(each.commits) for name, each in data.splits.items()} == {
        "train": [first],
        "eval": [second],
    }
    assert data.identity != open_data([first]).identity
    assert [part["records"] for part in open_data([first, second]).find_split("all").data] == [7, 5]
    with pytest.raises(DataError, match=rf"no record of the train split in {second}\. .* are eval"):
        open_data([second], [first]).find_split("train")


def test_no_data_is_an_error():
    with pytest.raises(UsageError, match="No data is given"):
        open_data([])
