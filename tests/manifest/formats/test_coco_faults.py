"""What can be wrong with a file of COCO: one object, one image, or the file as a whole."""

import json
import math
import tracemalloc

import pytest
from tests.parsed import parse_rows

from darkroom.errors import DataError
from darkroom.manifest.opening import open_sources
from darkroom.options.manifest import ManifestOptions

CAT = {"id": 5, "image_id": 10, "category_id": 1, "bbox": [1, 2, 3, 4]}
IMAGE = {"id": 10, "file_name": "a.jpg", "width": 40, "height": 30}


@pytest.fixture
def write(tmp_path):
    """Writes a file of COCO, or its text, beside an image."""
    (tmp_path / "a.jpg").touch()

    def write(*annotations, images=(IMAGE,), categories=({"id": 1, "name": "cat"},), **further):
        path = tmp_path / "a.json"
        if annotations and isinstance(annotations[0], str | bytes):
            text = annotations[0]
            path.write_bytes(text if isinstance(text, bytes) else text.encode())
        else:
            made = {"images": images, "annotations": annotations, "categories": categories}
            path.write_text(json.dumps({**made, **further}))
        return path

    return write


def list_rows(path, **options):
    (source,) = open_sources(path, ManifestOptions(format="coco", **options))
    return list(source.rows())


def list_faults(path):
    """Returns reason and detail of the objects that cannot be used; a good one stays."""
    objects = [each for row in list_rows(path) for each in row.values[-1]["objects"]]
    assert [each["id"] for each in objects if "fault" not in each] == [5]
    return [each["fault"].args for each in objects if "fault" in each]


def refuse(path, **options):
    with pytest.raises(DataError) as caught:
        list_rows(path, **options)
    assert caught.value.hint
    return caught.value.message


@pytest.mark.fault(95, "numbers of a box that are none", "the object is rejected", code="`bad_box`")
@pytest.mark.parametrize(
    ("box", "said"),
    [
        ([1, 2, 3], "bbox is [1.0, 2.0, 3.0], expected four numbers"),
        ([1, 2, 3, 4, 5], "bbox is [1.0, 2.0, 3.0, 4.0, 5.0], expected four numbers"),
        ([1, None, 3, 4], "bbox is [1, None, 3, 4], expected four numbers"),
        (["1", 2, 3, 4], "bbox is ['1', 2, 3, 4], expected four numbers"),
        ([1, math.nan, 3, 4], "bbox is [1, '?', 3, 4], expected four numbers"),
        ([1, 2, math.inf, -math.inf], "bbox is [1, 2, '?', '?'], expected four numbers"),
        (None, "it has no bbox, and no polygon or RLE to find it"),
    ],
)
def test_a_box_that_is_not_four_numbers_is_a_lost_object(write, box, said):
    (fault,) = list_faults(write({**CAT, "id": 6, "bbox": box}, CAT))
    assert fault == ("bad_box", said)


@pytest.mark.fault(95, "a box of negative size", "the object is rejected", code="`bad_box`")
def test_a_negative_size_is_found_by_the_kind_of_target(write):
    (source,) = open_sources(write({**CAT, "bbox": [5, 5, -2, 3]}, CAT), ManifestOptions())
    entry, lost = parse_rows([source], ManifestOptions())
    assert len(entry.label["objects"]) == 1
    assert lost.reason == "bad_box"


@pytest.mark.fault(95, "an area that is NaN, as pandas writes it", "an area that is not known")
def test_nan_is_an_area_that_is_not_known(write):
    ((*_, said),) = [row.values for row in list_rows(write({**CAT, "area": math.nan}))]
    assert said["objects"][0]["area"] is None


@pytest.mark.fault(
    96, "a `category_id` without category", "the object is rejected", code="`unknown_class`"
)
def test_a_category_that_is_not_there_is_a_lost_object(write):
    assert list_faults(write({**CAT, "id": 6, "category_id": 2}, CAT)) == [
        ("unknown_class", "category_id is 2, and no category has this id")
    ]


def test_a_lost_object_has_its_box_for_whoever_corrects_it(write):
    ((*_, said),) = [row.values for row in list_rows(write({**CAT, "category_id": 2}))]
    x, y, width, height = CAT["bbox"]
    assert said["objects"][0]["box"] == [x, y, x + width, y + height]


@pytest.mark.fault(
    97, "keys that are missing, numbers of any length, no object at all", "it is rejected"
)
@pytest.mark.parametrize(
    ("element", "said"),
    [
        ('{"id": 6, "image_id": 10, "bbox": [1, 1, 1, 1], "category_id": [1]}',
         "Expected `int | float | str`, got `array` - at `$.category_id`"),
        ('{"id": 6, "image_id": 10, "bbox": [1, 1, 1, 1]}', "missing required field `category_id`"),
        ('7', "Expected `object`, got `int`"),
    ],
)  # fmt: skip
def test_an_element_that_is_not_an_object_of_coco_is_lost_alone(write, element, said):
    text = json.dumps({"images": [IMAGE], "categories": [{"id": 1, "name": "cat"}]})[:-1]
    rows = list_rows(write(f'{text}, "annotations": [{element}, {json.dumps(CAT)}]}}'))
    found = [each for row in rows for each in row.values[-1]["objects"]]
    assert [each["id"] for each in found if "fault" not in each] == [5]
    ((reason, detail),) = [each["fault"].args for each in found if "fault" in each]
    assert reason == "bad_value"
    assert said in detail


@pytest.mark.parametrize("number", ["9" * 6000, "1e999", "-" + "9" * 400])
def test_a_number_that_is_too_large_is_a_lost_object(write, number):
    text = json.dumps({"images": [IMAGE], "categories": [{"id": 1, "name": "cat"}]})[:-1]
    wrong = f'{{"id": 6, "image_id": 10, "category_id": 1, "bbox": [1, {number}, 3, 4]}}'
    # The second has a box that is a number, and another fault.
    again = f'{{"id": 7, "image_id": 10, "area": [], "bbox": [{number}, 1, 1.5, 2]}}'
    faults = list_faults(write(f'{text}, "annotations": [{wrong}, {again}, {json.dumps(CAT)}]}}'))
    assert {reason for reason, _ in faults} <= {"bad_box", "bad_value"}
    assert max(len(detail) for _, detail in faults) < 200


@pytest.mark.fault(
    98,
    "annotations of images that are not there",
    "a rejected row for each of these images, with its objects",
    code="`unknown_image`",
)
def test_a_name_of_an_image_that_is_nothing_keeps_its_objects(write):
    lost = [{**CAT, "image_id": [10]}, {**CAT, "image_id": None}, {**CAT, "image_id": 11}]
    _, *rows = list_rows(write(CAT, *lost))
    assert {row.fault and row.fault.reason for row in rows} == {"unknown_image"}
    assert sum(len(row.values[-1]["objects"]) for row in rows) == 3


@pytest.mark.fault(
    99, "an image without a name, or with a wrong size", "its row is rejected", code="`bad_value`"
)
@pytest.mark.parametrize(
    "image",
    [{"id": 10}, {"id": 10, "file_name": 7}, {**IMAGE, "width": [4]}, {**IMAGE, "file_name": None}],
)
def test_an_image_that_cannot_be_used_is_rejected_with_its_objects(write, image):
    good = {"id": 1, "file_name": "a.jpg"}
    first, second = list_rows(write(CAT, images=[good, image]))
    assert first.values[-1]["objects"] == []
    assert second.fault
    assert second.fault.reason == "bad_value"
    assert [each["id"] for each in second.values[-1]["objects"]] == [5]


@pytest.mark.fault(
    99, "an image that is outside the allowed folders", "rejected", code="`outside_root`"
)
def test_a_path_outside_the_allowed_folders_is_rejected(write, tmp_path):
    images = [IMAGE, {"id": 11, "file_name": "../../etc/passwd"}]
    options = ManifestOptions(allowed_roots=(str(tmp_path),))
    sources = open_sources(write(CAT, {**CAT, "image_id": 11}, images=images), options)
    _, reject = parse_rows(sources, options)
    assert reject.reason == "outside_root"
    assert json.loads(reject.label)["objects"][0]["id"] == 5


@pytest.mark.fault(
    100,
    "a file that is cut, no JSON, or has bytes that are not UTF-8",
    "refused",
    code="exit 1",
)
@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda text: text[:-40], "is not complete, or not JSON"),
        (lambda text: text + b"x", "is not complete, or not JSON"),
        (lambda text: text.replace(b'"bbox"', b"bbox"), "is not complete, or not JSON"),
        (lambda text: text.replace(b'"images"', b'"im\xffages"'), "is not complete, or not JSON"),
        (lambda text: text.decode().encode("utf-16"), "is UTF-16"),
        (lambda text: text.decode().encode("utf-16-le"), "is UTF-16"),
        (lambda text: text.decode().encode("utf-32"), "is UTF-16 or UTF-32"),
        (lambda text: b"", "is empty"),
        (lambda text: b"7", "is not an object of JSON"),
    ],
)
def test_a_file_that_is_not_json_is_refused(write, change, said):
    text = write(CAT).read_bytes()
    assert said in refuse(write(change(text)))


def test_nan_in_a_text_is_a_text(write):
    text = json.dumps({**CAT, "area": math.nan, "note": 'values: 1, NaN, "-Infinity"'})
    ((_, said),) = [row.values for row in list_rows(write(json.loads(text)))]
    assert [(each["id"], each["area"]) for each in said["objects"]] == [(5, None)]


def test_a_file_that_is_cut_while_it_is_read_stays_as_it_was(write):
    path = write(*[CAT] * 50_000)
    (source,) = open_sources(path, ManifestOptions())
    with path.open("r+b") as file:
        file.truncate(4096)
    ((*_, said),) = [row.values for row in source.rows()]
    assert len(said["objects"]) == 50_000


@pytest.mark.fault(
    99,
    "label files, lists or annotations outside the allowed folders, also by links",
    "the image is rejected, or the source refused; nothing of them is read",
    code="`outside_root`, exit 1",
)
def test_a_file_outside_the_allowed_folders_is_not_read(write, tmp_path):
    (tmp_path / "set/annotations").mkdir(parents=True)
    (tmp_path / "set/annotations/instances.json").symlink_to(write(CAT))
    with pytest.raises(DataError, match="outside the allowed folders"):
        open_sources(tmp_path / "set", ManifestOptions(allowed_roots=(str(tmp_path / "set"),)))


def test_the_mark_of_utf8_is_left_out(write):
    assert len(list_rows(write(b"\xef\xbb\xbf" + write(CAT).read_bytes()))) == 1


def test_a_name_that_is_not_utf8_is_one_bad_image(write):
    images = [IMAGE, {"id": 11, "file_name": "b.jpg"}]
    text = write(CAT, images=images).read_bytes().replace(b"b.jpg", b"\xe9.jpg")
    first, second = list_rows(write(text))
    assert len(first.values[-1]["objects"]) == 1
    assert second.fault


def test_a_mask_that_is_not_utf8_is_none(write):
    runs = {"size": [5, 4], "counts": "5:5"}
    objects = [{**CAT, "segmentation": runs}, {**CAT, "segmentation": runs, "bbox": None, "id": 6}]
    text = write(*objects).read_bytes().replace(b"5:5", b"5:\xff")
    assert list_faults(write(text)) == [
        ("bad_box", "it has no bbox, and no polygon or RLE to find it")
    ]


@pytest.mark.fault(101, "JSON that is nested very deeply", "refused", code="exit 1")
def test_deep_json_is_refused(write):
    deep = f'"x": {"[" * 1_000_000}{"]" * 1_000_000}, "bbox"'
    text = write(CAT).read_text().replace('"bbox"', deep)
    assert "is nested too deeply" in refuse(write(text))


@pytest.mark.fault(102, "the lists of the file twice, or none of them", "refused", code="exit 1")
def test_lists_that_are_there_twice_or_not_at_all_are_refused(write):
    text = write(CAT).read_text()
    twice = text[:-1] + ', "annotations": []}'
    assert "has one of its keys twice" in refuse(write(twice))
    assert "has no list of images" in refuse(write('{"annotations": [], "categories": []}'))
    other = write(CAT, images={"a": 1})
    assert "images is" in refuse(other)


@pytest.mark.fault(
    103, "two images, or two categories, with one id or one name", "refused", code="exit 1"
)
def test_ids_that_are_not_clear_are_refused(write):
    images = [IMAGE, {"id": 10, "file_name": "b.jpg"}]
    assert "two images have the id 10" in refuse(write(CAT, images=images))
    categories = [{"id": 1, "name": "cat"}, {"id": 1, "name": "dog"}]
    assert "two categories have the id 1: 'cat' and 'dog'" in refuse(
        write(CAT, categories=categories)
    )
    assert "the category {'id': 1} cannot be used" in refuse(write(CAT, categories=[{"id": 1}]))


@pytest.mark.fault(
    104,
    "results of a model, captions, keypoints alone, panoptic segments",
    "refused by name, with their number",
    code="exit 1",
)
@pytest.mark.parametrize(
    ("annotations", "said"),
    [
        ([{"id": 1, "image_id": 10, "caption": "a cat"}] * 3, "3 annotations with captions"),
        ([{"image_id": 10, "segments_info": [], "file_name": "a.png"}], "panoptic segments"),
        (
            [{"image_id": 10, "category_id": 1, "keypoints": [1, 2, 2]}] * 2,
            "2 annotations with key",
        ),
    ],
)
def test_annotations_without_boxes_are_refused_with_their_number(write, annotations, said):
    assert said in refuse(write(*annotations))


def test_results_of_a_model_are_refused(write):
    results = [{**CAT, "score": 0.9}]
    assert "is a list, as one of results of a model" in refuse(write(json.dumps(results)))


@pytest.mark.fault(105, "very many objects in one image, or one that is very large", "taken")
def test_many_objects_in_one_image_are_all_read(write):
    large = {**CAT, "id": 6, "segmentation": [[0.5] * 100_000]}
    ((*_, said),) = [row.values for row in list_rows(write(*[CAT] * 20_000, large, CAT))]
    assert len(said["objects"]) == 20_002
    assert said["objects"][-2]["id"] == 6


def test_memory_does_not_grow_with_the_text_of_a_file(write):
    path = write(*[{**CAT, "segmentation": [[0.25] * 500]}] * 3_000)
    assert path.stat().st_size > 8_000_000
    tracemalloc.start()
    assert len(list_rows(path)) == 1
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 3_000_000
