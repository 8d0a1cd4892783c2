import pytest

from darkroom.manifest.formats.splits import find_split, find_split_name, parse_split_name


@pytest.mark.parametrize(
    ("path", "name", "split"),
    [
        ("/d/annotations/instances_train2017.json", "train2017", "train"),
        ("/d/annotations/instances_val2017.json", "val2017", "eval"),
        ("/d/valid/_annotations.coco.json", "valid", "eval"),
        ("/d/Test/_annotations.coco.json", "Test", "test"),
        ("/d/train.json", "train", "train"),
        ("/d/annotations/instances_default.json", "", ""),
        ("/test-of-mine/training_data/latest.json", "", ""),
    ],
)
def test_a_name_or_its_folder_tells_the_split(path, name, split):
    assert find_split_name(path) == name
    assert parse_split_name(name) == split


def test_the_first_folder_tells_the_split():
    assert find_split("a/val2017/test/train.jpg") == "eval"
    assert find_split("photos/train.jpg") == ""
