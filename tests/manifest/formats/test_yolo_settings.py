import pytest

from darkroom.errors import DataError
from darkroom.manifest.formats.yolo.settings import find_settings, read_settings
from darkroom.manifest.sources.listing import Listing


@pytest.fixture
def parse(write):
    """Returns what a text of data.yaml says."""
    return lambda text: read_settings(f"{write({'data.yaml': text})}/data.yaml")


def test_what_roboflow_writes(parse):
    found = parse(
        "train: ../train/images\nval: ../valid/images\ntest: ../test/images\n\n"
        "nc: 2\nnames: ['helmet', 'head']\n\nroboflow:\n  workspace: w\n  version: 1\n"
    )
    assert found.path == ""
    assert found.classes == {0: "helmet", 1: "head"}
    assert found.entries == [
        ("train", "../train/images"),
        ("val", "../valid/images"),
        ("test", "../test/images"),
    ]


def test_what_ultralytics_writes(parse):
    found = parse(
        "path: ../datasets/coco  # root\ntrain:\n  - images/train2017\n  - extra.txt\n"
        "val: val2017.txt\ntest: # optional\nnames:\n  0: person\n  2: bicycle\n\n"
        "download: |\n  import os\n  os.remove('train: x')\n"
    )
    assert found.path == "../datasets/coco"
    assert found.classes == {0: "person", 2: "bicycle"}
    assert [place for _, place in found.entries] == [
        "images/train2017",
        "extra.txt",
        "val2017.txt",
    ]


def test_names_stay_as_they_are_written(parse):
    # Most readers of YAML would make False, 7, None and a date of them.
    found = parse("train: a\nnames: [no, 007, ~, 2020-01-01, 'a: b', é]")
    assert [*found.classes.values()] == ["no", "007", "~", "2020-01-01", "a: b", "é"]


@pytest.mark.fault(111, "data.yaml with objects of Python", "they are text, and not made")
def test_python_objects_are_text(parse, tmp_path):
    target = tmp_path / "made"
    found = parse(f"train: a\nnames: [cat]\nx: !!python/object/apply:os.mkdir [{target}]\n")
    assert found.classes == {0: "cat"}
    assert not target.exists()


BOMB = "a0: &a0 [x, x]\n" + "".join(
    f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 30)
)


@pytest.mark.fault(
    111,
    "data.yaml without names, with doubled ones, nested deeply, or a bomb of aliases",
    "refused",
    code="exit 1",
)
@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("train: a\nnc: 3", "does not name the classes"),
        ("train: a\nnames: cat", "does not name the classes"),
        ("train: a\nnames: []", "names no class"),
        ("train: a\nnames: [cat, [dog]]", "does not name the classes"),
        ("train: a\nnames: {0: cat, x: dog}", "does not name the classes, in order or by number"),
        ("train: a\nnames: {0: cat, 0: dog}", "a key occurs twice"),
        ("train: a\nnames: [cat, dog, cat]", "names 'cat' twice"),
        ("train: a\nnc: 3\nnames: [cat, dog]", "has nc: 3, but names 2 classes"),
        ("names: [cat]", "does not name folders or lists of images"),
        ("names: [cat]\ntrain: ~\nval: ''", "does not name folders or lists of images"),
        ("names: [cat]\ntrain: {a: b}", "does not name folders or lists of images"),
        ("names: [cat]\ntrain: [[a]]", "does not name folders or lists of images"),
        ("- a\n- b", "has no keys"),
        ("", "has no keys"),
        ("train: [a\nnames: [", "is not YAML"),
        ("train: \0", "is not YAML"),
        ("{" * 5_000, "nested too deeply"),
        (f"{BOMB}train: *a29\nnames: [cat]", "an alias is not read here"),
        (f"{BOMB}train: a\nnames: *a29", "an alias is not read here"),
        (f"{BOMB}train: a\nnames: [x]\nnc: *a29", "an alias is not read here"),
        ("train: a\nnames: &a [*a]", "is not YAML"),
        ("train: a\nnames: [x]\nkpt_shape: [17, 3]", "has kpt_shape: poses"),
    ],
)
def test_what_cannot_be_used_is_refused(parse, text, said):
    with pytest.raises(DataError, match=rf"data\.yaml.*{said}"):
        parse(text)


def test_a_file_of_darknet_names_the_file_of_classes(write):
    text = "classes= 2\ntrain  = data/train.txt\nvalid  = data/test.txt\nnames = data/obj.names\n"
    folder = write({"data/obj.data": text + "backup = backup/", "data/obj.names": "cat\ndog\n"})
    assert read_settings(f"{folder}/data/obj.data") == (
        {0: "cat", 1: "dog"},
        [("train", "data/train.txt"), ("valid", "data/test.txt")],
        "",
    )
    write({"data/obj.data": "train = a.txt\nnames = other.names"})
    with pytest.raises(DataError, match=r"classes of .*obj\.data are not found, as other\.names"):
        read_settings(f"{folder}/data/obj.data")


def test_the_file_of_classes_of_a_folder_is_found(write):
    folder = write({"labels/classes.txt": "\ufeffcat\ndog \n\n", "labels/a.txt": ""})
    file, settings = find_settings(Listing(folder))
    assert file == f"{folder}/labels/classes.txt"
    assert (settings.classes, settings.entries) == ({0: "cat", 1: "dog"}, ())


def test_classes_that_differ_are_refused(write):
    folder = write({"train/_darknet.labels": "cat\ndog", "valid/_darknet.labels": "dog\ncat"})
    with pytest.raises(DataError, match=r"train/_darknet.labels and valid/.* name other classes"):
        find_settings(Listing(folder))


def test_data_yaml_goes_before_others(write):
    one = "train: a\nnames: [cat]"
    folder = write({"data.yaml": one, "other.yaml": one, "args.yaml": "names: 3", "c.yml": "x: 1"})
    assert find_settings(Listing(folder))[0] == f"{folder}/data.yaml"


def test_several_files_without_a_usual_name_are_refused(write):
    one = "train: a\nnames: [cat]"
    folder = write({"a.yaml": one, "b.yml": one})
    with pytest.raises(DataError, match=r"has .*a\.yaml, .*b\.yml"):
        find_settings(Listing(folder))


@pytest.mark.fault(111, "data.yaml in another encoding, or very large", "refused", code="exit 1")
@pytest.mark.parametrize(
    ("data", "said"),
    [
        ("train: a\nnames: [café]".encode("latin-1"), "is not text in UTF-8"),
        ("train: a\nnames: [cat]".encode("utf-16"), "is not text in UTF-8"),
        (
            b"train: a\nnames: [cat]\n#" + b"x" * (1 << 20),
            "is not text in UTF-8 of at most 1,048,576",
        ),
    ],
)
def test_files_that_are_not_text_are_refused(write, data, said):
    folder = write({"data.yaml": data})
    with pytest.raises(DataError, match=rf"data\.yaml {said}"):
        find_settings(f"{folder}/data.yaml")


def test_a_folder_without_names_of_classes_is_refused(write):
    with pytest.raises(DataError, match="names the classes of YOLO"):
        find_settings(Listing(write({"labels/a.txt": "0 .5 .5 .1 .1"})))
