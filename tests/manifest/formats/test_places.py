import pytest

from darkroom.errors import DataError
from darkroom.manifest.formats.places import find_images


@pytest.fixture
def find(write, tmp_path):
    """Makes empty files, and returns the folder where the images of one are, and their paths."""

    def find(annotations, *files, names=("a.jpg", "b.jpg"), image_dir=None, split=""):
        write(dict.fromkeys((annotations, *files), ""))
        image_dir = image_dir and f"{tmp_path}/{image_dir}"
        place = find_images(f"{tmp_path}/{annotations}", names, image_dir, split)
        folder = place.folder.removeprefix(f"{tmp_path}").lstrip("/")
        return folder, *map(place.spell, names)

    return find


@pytest.mark.parametrize(
    ("annotations", "split", "images"),
    [
        ("train/_annotations.coco.json", "train", "train"),
        ("annotations/instances_default.json", "", "images"),
        ("annotations/instances_train2017.json", "train2017", "train2017"),
        ("annotations/instances_val.json", "val", "images/val"),
        ("train/labels/list.json", "train", "train/images"),
        ("labels.json", "", "data"),
        ("labels.json", "", ""),
        ("annotations/train.json", "train", "train/images"),
    ],
)
def test_images_are_found_in_usual_folders(find, annotations, split, images):
    found = find(annotations, f"{images}/a.jpg".lstrip("/"), "other/c.jpg", split=split)
    assert found == (images, "a.jpg", "b.jpg")


def test_some_images_may_be_missing(find):
    names = ["lost.jpg", "a.jpg", "b.jpg", "c.jpg"]
    assert find("a.json", "images/b.jpg", "images/c.jpg", names=names)[0] == "images"


def test_names_may_have_folders(find):
    assert find("annotations/a.json", "train2017/a.jpg", names=["train2017/a.jpg"])[0] == ""


@pytest.mark.parametrize(
    ("name", "folder", "path"),
    [
        ("a.jpg", "copies", "a.jpg"),
        ("gs://bucket/farm/b.jpg", "copies", "farm/b.jpg"),
        ("gs://bucket/farm/b.jpg", "copies/farm", "b.jpg"),
        ("/home/me/farm/b.jpg", "copies", "farm/b.jpg"),
        ("c.jpg", "more", "c.jpg"),
    ],
)
def test_names_lose_their_first_folders_where_the_user_says(find, name, folder, path):
    files = "copies/a.jpg", "copies/farm/b.jpg", "more/train/c.jpg"
    found = find("a.json", *files, names=[name], image_dir=folder, split="train")
    assert found == (f"{folder}/train" if folder == "more" else folder, path)


def test_images_that_are_nowhere_are_one_error_with_the_places(find, tmp_path):
    with pytest.raises(DataError) as caught:
        find("set/annotations/a.json", names=["a.jpg", "/photos/b.jpg"], split="val")
    assert "not found, as a.jpg, /photos/b.jpg" in caught.value.message
    for place in ("set/annotations", "set/annotations/images", "set/val", "set/images/val"):
        assert str(tmp_path / place) in caught.value.message
    assert "--image-dir" in caught.value.hint
    with pytest.raises(DataError, match="not found"):
        find("a.json", "a.jpg", "photos/c.jpg", image_dir="photos")


def test_no_store_is_asked(find):
    names = ["gs://bucket/a.jpg", "http://example.com/b.jpg"]
    assert find("a.json", names=names) == ("", *names)
    assert find("a.json", names=[" "])[0] == ""
