import pytest

from darkroom.errors import DataError
from darkroom.manifest.sources.headers import infer_roles, is_header


@pytest.mark.parametrize(
    ("cells", "header"),
    [
        (["split", "image_uri", "label"], True),
        ([" Label", "URI "], True),
        (["photo", "class"], True),
        (["TRAIN", "a.jpg", "cat"], False),
        (["TRAIN", "gs://b/a.jpg", "image"], False),
        (["TRAIN", "a.jpg", "file"], False),
        (["label", "a.JPG"], False),
    ],
)
def test_a_header_has_known_columns_and_no_image(cells, header):
    assert is_header([cells]) is header


@pytest.mark.parametrize("column", ["w/h", "image/mean", "a/b.jpg", "</script>", "gs://b/c"])
def test_a_further_column_of_a_header_may_look_like_an_image(column):
    header = ["split", "image_uri", "label", column]
    assert is_header([header])
    assert is_header([header, ["TRAIN", "a.jpg", "cat", "1.5"]])
    assert is_header([header, ["TRAIN", "1", "cat", "1.5"], ["TRAIN", "2", "cat", "1.5"]])
    assert is_header([["uri", column], ["a.jpg", "1.5"]])


@pytest.mark.parametrize(
    "first", [["TRAIN", "x/a.jpg", "image"], ["TRAIN", "x/a.jpg", "image", "label"]]
)
def test_labels_with_the_names_of_columns_are_not_a_header(first):
    others = [["TRAIN", "x/b.jpg", "cat"], ["TEST", "x/c.jpg", "file"]]
    assert not is_header([first, *others])


@pytest.mark.parametrize(
    ("records", "names"),
    [
        ([["TRAIN", "a.jpg", "cat"]], ["split", "image_uri", "label"]),
        ([["UNASSIGNED", "a.jpg", "cat"]], ["split", "image_uri", "label"]),
        ([["", "a.jpg", "cat"], ["", "b.jpg", "cat"]], ["split", "image_uri", "label"]),
        ([["", "a.jpg", "cat"], ["TEST", "b.jpg", "dog"]], ["split", "image_uri", "label"]),
        ([["a.jpg", "cat"]], ["image_uri", "label"]),
        ([["cat", "x/a"]], ["label", "image_uri"]),
        ([["a.jpg", "test/blood"]], ["image_uri", "label"]),
        ([["St. Bernard", "gs://b/1.jpg"]], ["label", "image_uri"]),
        ([["a/b/c", "gs://b/1"]], ["label", "image_uri"]),
        ([["1.5", "x/a"], ["2.5", "x/b"]], ["label", "image_uri"]),
        ([["TRAIN", "a.jpg", "1.5"]], ["split", "image_uri", "label"]),
        ([["TRAIN", "a.jpg", "train"]], ["split", "image_uri", "label"]),
        ([["TRAIN", "a.jpg", "cat", "dog"]], ["split", "image_uri", "label", ""]),
        ([["TRAIN", "a.jpg"], ["TEST", "b.jpg", "cat"]], ["split", "image_uri", "label"]),
        ([["a.jpg"]], ["image_uri"]),
    ],
)
def test_columns_without_a_header_are_told_by_their_content(records, names):
    assert infer_roles(records) == names


def test_columns_without_anything_like_a_path_are_an_error():
    with pytest.raises(DataError, match=r"no column looks like image paths: \['1', 'cat'\]"):
        infer_roles([["1", "cat"], ["2", "dog"]])


def test_a_header_of_unknown_names_is_an_error():
    records = [["part", "photo", "klass"], ["TRAIN", "a.jpg", "cat"], ["TEST", "b.jpg", "dog"]]
    with pytest.raises(DataError, match=r"header with unknown names.*'photo'") as caught:
        infer_roles(records)
    assert "image_uri" in caught.value.hint
