import pytest

from darkroom.errors import DataError
from darkroom.manifest.formats.places import find_images


@pytest.fixture
def find(write, tmp_path):
    """Makes empty files, and returns the folder where the images of one are, and their paths."""

    def find(annotations, *files, names=("a.jpg", "b.jpg"), image_dir=None):
        write(dict.fromkeys((annotations, *files), ""))
        image_dir = image_dir and f"{tmp_path}/{image_dir}"
        place = find_images(f"{tmp_path}/{annotations}", lambda: names, image_dir)
        folder = place.folder.removeprefix(f"{tmp_path}").lstrip("/")
        return folder, *map(place.spell, names)

    return find


@pytest.mark.parametrize(
    ("annotations", "images"),
    [
        ("train/_annotations.coco.json", "train"),
        ("annotations/instances_default.json", "images"),
        ("annotations/instances_train2017.json", "train2017"),
        ("annotations/instances_val.json", "images/val"),
        ("train/labels/list.json", "train/images"),
        ("labels.json", "data"),
        ("labels.json", ""),
        ("annotations/train.json", "train/images"),
    ],
)
def test_images_are_found_in_usual_folders(find, annotations, images):
    found = find(annotations, f"{images}/a.jpg".lstrip("/"), "other/c.jpg")
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
    found = find("train.json", *files, names=[name], image_dir=folder)
    assert found == (f"{folder}/train" if folder == "more" else folder, path)


def test_images_that_are_nowhere_are_one_error_with_the_places(find, tmp_path):
    with pytest.raises(DataError) as caught:
        find("set/annotations/val.json", names=["a.jpg", "/photos/b.jpg"])
    places = [f"{tmp_path}/set/{name}" for name in ("annotations", "", "annotations/val", "val")]
    assert caught.value.message.endswith(
        "are not found, as a.jpg, /photos/b.jpg. Tried: "
        f"{', '.join(place.rstrip('/') for place in places)} and 18 more."
    )
    assert "--image-dir" in caught.value.hint
    with pytest.raises(DataError, match="not found"):
        find("a.json", "a.jpg", "photos/c.jpg", image_dir="photos")


def test_the_place_is_that_of_most_names(find):
    names = ["a.jpg", "b.jpg", "c.jpg"]
    files = "a.jpg", "images/a.jpg", "images/b.jpg", "images/c.jpg"
    assert find("list.json", *files, names=names)[0] == "images"
    # One is where an older list was, too.
    assert find("list.json", *files, "data/a.jpg", names=names)[0] == "images"


@pytest.mark.parametrize(
    ("files", "name", "path"),
    [
        (["valid/a.jpg", "valid/more/b.jpg"], "b.jpg", "valid/more/b.jpg"),
        (["valid/a.jpg", "valid/b.JPG"], "b.jpg", "valid/b.JPG"),
        (["valid/a.jpg", "valid/x/b.jpg", "valid/y/b.jpg"], "b.jpg", "valid/b.jpg"),
        (["valid/a.jpg", "valid/b.png"], "b.jpg", "valid/b.jpg"),
        (["valid/a.jpg", "b.jpg"], "../b.jpg", "b.jpg"),
    ],
)
def test_what_is_missing_is_looked_for_once_more_by_name(write, tmp_path, files, name, path):
    write(dict.fromkeys(("valid/list.json", *files), ""))
    place = find_images(f"{tmp_path}/valid/list.json", lambda: ["a.jpg", name], None)
    assert place.resolve(name) == f"{tmp_path}/{path}"


def test_no_store_is_asked(find):
    names = ["gs://bucket/a.jpg", "http://example.com/b.jpg"]
    assert find("a.json", names=names) == ("", *names)
    assert find("a.json", names=[" "])[0] == ""


def test_first_folders_stay_where_they_tell_images_apart(find):
    with pytest.raises(DataError, match="not found"):
        find("a.json", "a.jpg", names=["day1/a.jpg", "day2/a.jpg"])
