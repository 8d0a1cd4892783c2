import ast
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import darkroom
from darkroom.dataset.keys import make_key
from darkroom.dataset.splits import (
    SplitRatios,
    assign_split,
    find_split,
    find_splits,
    list_below,
    mention_split,
    parse_split,
)
from darkroom.errors import UsageError


@pytest.mark.parametrize(
    ("names", "split"),
    [
        (("TRAIN", "train", "Training", " train "), "train"),
        (("VALIDATION", "validation", "VALIDATE", "val", "Eval", "dev"), "eval"),
        (("TEST", "testing"), "test"),
        (("", "  ", "UNASSIGNED", "unassigned"), ""),
        (("tran", "none", "0", "train1"), None),
    ],
)
def test_splits_have_the_names_of_automl_and_vertex(names, split):
    assert {parse_split(name) for name in names} == {split}


@pytest.mark.parametrize(
    ("lists", "splits"),
    [
        # As tools write them.
        ("instances_train2017.json", "train"),
        ("annotations/train.json annotations/val.json", "train eval"),
        ("train_labels.csv", "train"),
        ("train/_annotations.coco.json valid/_annotations.coco.json", "train eval"),
        ("train-00000-of-00001.parquet", "train"),
        ("split=train/a.parquet split=validation/a.parquet", "train eval"),
        ("train/list.jsonl test/list.jsonl", "train test"),
        ("val_instances_default.json", "eval"),
        # Alike but for the split.
        ("train.csv val.csv test.csv", "train eval test"),
        ("a_train_1.csv a_train_2.csv a_test_1.csv", "train train test"),
        ("TrainStation.csv TestStation.csv", "train test"),
        # Words of other names.
        ("train.csv", "-"),
        ("train_station.json", "-"),
        ("my-test.json", "-"),
        ("trainval.json", "-"),
        ("train_val.json", "-"),
        ("a_train.csv b_val.csv", "- -"),
        ("my_test/list.csv", "-"),
        ("instances_default.json val_instances_default.json", "- eval"),
    ],
)
def test_names_of_lists_mean_splits_as_tools_write_them_or_where_they_are_alike(lists, splits):
    assert [split or "-" for split in find_splits(lists.split())] == splits.split()


@pytest.mark.parametrize(
    ("path", "split", "word"),
    [
        ("a/val2017/test", "eval", "val2017"),
        ("Train/x", "train", "Train"),
        ("split=train", "train", "train"),
        ("unassigned/cat", "", ""),
        ("01_train", None, "train"),
        ("TestImages", None, "Test"),
        ("test1", None, "test"),
        ("testing-ground", None, "testing"),
        ("photos/restrain", None, ""),
    ],
)
def test_the_first_folder_with_the_name_of_a_split_means_it(path, split, word):
    assert find_split(path) == split
    assert mention_split(path) == word


def test_no_other_module_of_sources_knows_the_words():
    words = {"training", "validation", "validate", "valid", "val", "evaluation", "dev", "testing"}
    manifest = Path(darkroom.__file__).parent / "manifest"
    for path in manifest.rglob("*.py"):
        nodes = ast.walk(ast.parse(path.read_text()))
        texts = {node.value for node in nodes if isinstance(node, ast.Constant)}
        assert words.isdisjoint(texts), path


def test_folders_that_all_lists_are_in_are_not_asked():
    assert list_below(["/test/a/train.csv", "/test/b/val.csv"]) == ["a/train.csv", "b/val.csv"]
    assert list_below(["/test/train.csv"]) == ["train.csv"]


@pytest.mark.parametrize("text", ["80/10/10", "0.8,0.1,0.1", "80.0/10/10", " 0.8 / 0.1 / 0.1 "])
def test_ratios_are_read_from_text(text):
    assert SplitRatios.parse(text).as_tuple() == pytest.approx((0.8, 0.1, 0.1))


@pytest.mark.parametrize(
    "text",
    ["", "80/20", "a/b/c", "80/10/10/0", "-1/1/1", "0/0/0", "70/20/20", "8/1/1", "nan/1/1"],
)
def test_invalid_ratios_are_an_error(text):
    with pytest.raises(UsageError, match=r"[Rr]atios"):
        SplitRatios.parse(text)


def test_the_seed_moves_rows():
    keys = [make_key(str(i)) for i in range(1000)]
    first, second = ([assign_split(key, seed, SplitRatios()) for key in keys] for seed in (0, 1))
    assert 200 < sum(a != b for a, b in zip(first, second, strict=True)) < 500


@given(
    st.integers(0, 100).flatmap(lambda a: st.tuples(st.just(a), st.integers(0, 100 - a))),
    st.text("0123456789abcdef", min_size=32, max_size=32),
)
def test_no_row_goes_to_a_split_of_share_zero(shares, key):
    train, evaluation = shares
    ratios = SplitRatios.parse(f"{train}/{evaluation}/{100 - train - evaluation}")
    chosen = assign_split(key, 0, ratios)
    assert getattr(ratios, chosen) > 0
