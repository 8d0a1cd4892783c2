"""Reads results of a detector, as columns of numbers, beside the images of a dataset.

They are COCO's results, an array of JSON, also as ultralytics writes it; or a folder of
ultralytics' label files with scores, a file an image. Nothing is unpickled.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from darkroom import storage
from darkroom.dataset.commit import Dataset
from darkroom.dataset.labels import normalise_label, read_labels
from darkroom.dataset.layout import LABELS_FILE
from darkroom.dataset.read_as import ReadAs
from darkroom.errors import DataError, UsageError
from darkroom.runtime import progress
from darkroom.runtime.arrays import Array
from darkroom.runtime.text import format_count, list_first
from darkroom.targets.form import UPRIGHT

# Columns of an index by which results find their images.
RESULT_COLUMNS = ["uri", "id", "split", "listed", "source_height", "source_width"]
_BLOCK_RESULTS = 8192
_COLUMNS = 6
# Instead of the place of an image.
_UNKNOWN, _SEVERAL = -1, -2
# In the folder of a detector, beside its weights, and perhaps a label map.
_RESULTS_FILE = "results.json"
# Boxes are cut at the edge of images by some tools, and not by others.
_BEYOND = 1.1
_FORM = (
    "Results are an array of JSON, each with image_id, category_id, bbox [x, y, width, height] and "
    "score, as pycocotools takes them; a folder with them in results.json; or one of label files "
    "of ultralytics (save_txt=True, save_conf=True)."
)
OF_DETECTOR = "Results are those of a detector"
GIVE_ANNOTATIONS = (
    "--annotations (annotations= in Python) names the JSON that the detector had, or labels.txt of "
    "the records that it learned from."
)


class Results(NamedTuple):
    """What a detector says of the images of a dataset.

    Attributes:
        image: The places of the images in the index, int64 [N].
        label: The numbers of the classes in the label map, from 0, int64 [N].
        score: From 0 to 1, float64 [N].
        boxes: Left, top, right and bottom as shares of the image, float64 [4, N].
    """

    image: Array
    label: Array
    score: Array
    boxes: Array

    def take(self, chosen: Array | slice) -> Results:
        """Returns some of them, by their numbers, a mask or a slice."""
        image, label, score = (each[chosen] for each in self[:3])
        return Results(image, label, score, self.boxes[:, chosen])


class DetectorFiles(NamedTuple):
    """What a detector wrote and had.

    Attributes:
        results: A file of JSON, or a folder of text files.
        annotations: The file of COCO that it had: ids of images and classes are those of that
            file. Or the label map of the records that it learned from, whose lines are classes,
            from 1. None for none.
    """

    results: str
    annotations: str | None = None

    @classmethod
    def of(cls, results: storage.UserPath, annotations: storage.UserPath | None) -> DetectorFiles:
        """Returns those that a user named; the folder of a detector may have both."""
        path = storage.absolute(results)
        had = None if annotations is None else storage.absolute(annotations)
        if not storage.exists(storage.join(path, _RESULTS_FILE)):
            return cls(path, had)
        classes = storage.join(path, LABELS_FILE)
        if had is None and storage.exists(classes):
            had = classes
        return cls(storage.join(path, _RESULTS_FILE), had)


class _Result(msgspec.Struct, gc=False):
    image_id: int | str
    category_id: int
    bbox: tuple[float, float, float, float]
    score: float


class _Image(msgspec.Struct, gc=False):
    id: int | str
    file_name: str
    width: float | None = None
    height: float | None = None


class _Category(msgspec.Struct, gc=False):
    id: int | str
    name: str


class _Annotations(msgspec.Struct):
    images: list[_Image]
    categories: list[_Category]

    @classmethod
    def read(cls, path: str) -> _Annotations:
        """Reads COCO, or a label map, by its content: artifacts of KFP have no ending."""
        if not path.endswith(".txt") and _starts_json(path):
            return _decode(path, cls)  # type: ignore[no-any-return]
        lines = enumerate(read_labels(path), 1)
        return cls([], [_Category(number, name) for number, name in lines])


class _Said(NamedTuple):
    """Results as a file has them.

    Attributes:
        images: The id or the name of each image, text [N].
        classes: The numbers of the classes, int64 [N].
        values: Score, left, top, width and height, float64 [5, N].
        in_shares: Whether places are shares of the image, and not pixels, and classes are counted
            from 0, as label files have both.
    """

    images: pa.Array
    classes: Array
    values: Array
    in_shares: bool = False


def check_boxes(dataset: Dataset, root: str, what: str, hint: str) -> None:
    """Checks that a dataset has boxes.

    Args:
        dataset: The dataset.
        root: Its folder.
        what: What needs boxes, as the beginning of a sentence.
        hint: What to do without.

    Raises:
        UsageError: It has none.
    """
    if dataset.objects is None:
        kind = dataset.target.kind
        raise UsageError(f"{what}, and the images in {root} are labelled with {kind}.", hint)


def read_detections(
    files: DetectorFiles,
    index: pa.Table,
    labels: Sequence[str],
    read_as: ReadAs | None,
) -> tuple[Results, Array]:
    """Reads results; returns also which images the detector looked at, bool [images].

    They are those of the splits that results are about, of which its annotations have images.

    Args:
        files: What the detector wrote and had. Without annotations, ids of images and classes are
            those of the list, or names of files and lines of `labels.txt`: whichever knows most
            of them.
        index: `RESULT_COLUMNS` of the index.
        labels: The label map of the dataset.
        read_as: How the source of the dataset was read; None where nobody knows.

    Raises:
        DataError: It is none, or images or classes are not those of the dataset.
        UsageError: Annotations are given for label files.
        OSError: Something cannot be read.
    """
    path, known = files.results, None
    if storage.is_folder(path):
        if files.annotations is not None:
            raise UsageError("Annotations are for results as JSON: label files have no ids.")
        said = _read_folder(path)
    else:
        said = _read_json(path)
        known = None if files.annotations is None else _Annotations.read(files.annotations)
    _check_values(path, said.values)
    images = said.images.dictionary_encode()
    names = images.dictionary.to_pylist()
    rows, had, sizes = _find_images(path, names, index, known, said.in_shares)
    numbers = images.indices.to_numpy()
    label = _find_labels(path, said.classes, labels, _list_readings(said, labels, read_as, known))
    score, left, top, width, height = said.values
    boxes = np.stack([left, top, left + width, top + height])
    if not said.in_shares:
        is_tiny = (boxes[2:] <= 1).all(0)
        hint = "A box is in pixels: multiply shares by the width and the height of the image."
        _refuse(path, is_tiny & is_tiny.all(), "box", "are within the first pixel", hint)
        _check_turned(path, rows, sizes, index)
        boxes /= np.tile(sizes[:, numbers], (2, 1))
    _check_boxes(path, boxes)
    found = Results(rows[numbers], label, score, boxes)
    is_there = found.image >= 0
    if not is_there.all():
        progress.warn(f"Results of images that are not in the dataset: {(~is_there).sum():,}.")
    found = found.take(is_there)
    return found, _find_looked(found, had, index)


def _read_json(path: str) -> _Said:
    parts = _decode(path, list[msgspec.Raw])
    decoder = msgspec.json.Decoder(list[_Result], strict=False)
    images, classes, values = list[str](), list[Array](), list[Array]()
    for start in range(0, len(parts), _BLOCK_RESULTS):
        text = b",".join(map(bytes, parts[start : start + _BLOCK_RESULTS]))
        try:
            found = decoder.decode(b"[%b]" % text)
        except msgspec.ValidationError as error:
            raise DataError(f"{path} is not a file of results: {error}.", _FORM) from error
        images += [str(each.image_id) for each in found]
        classes.append(np.array([each.category_id for each in found], np.int64))
        values.append(np.array([(each.score, *each.bbox) for each in found]).T)
    if not parts:
        raise DataError(f"{path} has no results.", _FORM)
    return _Said(pa.array(images, pa.string()), np.concatenate(classes), np.concatenate(values, 1))


def _starts_json(path: str) -> bool:
    with storage.open_read(path) as file:
        return file.read(64).lstrip()[:1] in b"{["


def _decode(path: str, kind: Any) -> Any:
    """Returns what a file of JSON has.

    Raises:
        DataError: It is none, or has something else.
    """
    try:
        return msgspec.json.decode(storage.read_bytes(path), type=kind, strict=False)
    except (ValueError, RecursionError) as error:
        if kind is _Annotations:
            what, hint = "annotations of COCO", "Name the file with images and categories."
        else:
            what, hint = "results", _FORM
        raise DataError(f"{path} is not a file of {what}: {error!s:.200}.", hint) from error


def _read_folder(path: str) -> _Said:
    inner = storage.join(path, "labels")  # of what ultralytics' `predict` and `val` write
    folder = inner if storage.is_folder(inner) else path
    names = [name for name in storage.list_folder(folder) if name.endswith(".txt")]
    found = [_read_text(storage.join(folder, name)) for name in names]
    if not any(map(len, found)):
        raise DataError(f"{folder} has no label files with results.", _FORM)
    images = np.repeat([name.removesuffix(".txt") for name in names], [*map(len, found)])
    number, middle, center, width, height, score = np.concatenate(found).T
    values = np.stack([score, middle - width / 2, center - height / 2, width, height])
    return _Said(pa.array(images, pa.string()), number.astype(np.int64), values, in_shares=True)


def _read_text(path: str) -> Array:
    """Returns the lines of a label file, float64 [N, 6].

    Raises:
        DataError: They are others.
    """
    lines = [line.split() for line in storage.read_bytes(path).splitlines() if line.strip()]
    try:
        return np.array(lines, np.float64).reshape(len(lines), _COLUMNS)
    except ValueError:
        columns = sorted({*map(len, lines)})
        raise DataError(
            f"{path} is not a label file with scores: its lines have {columns} columns, expected "
            f"{_COLUMNS} numbers.",
            _FORM,
        ) from None


def _refuse(path: str, is_wrong: Array, noun: str, what: str, hint: str) -> None:
    """Raises an error if something is wrong, which says how much of it; `what` begins as a verb."""
    if is_wrong.any():
        verb, *rest = what.split(" ", 1)
        count = format_count(int(is_wrong.sum()), noun, verb, len(is_wrong))
        raise DataError(f"{path}: {' '.join([count, *rest])}.", hint)


def _check_values(path: str, values: Array) -> None:
    is_wrong = ~np.isfinite(values).all(0) | (values[3:] < 0).any(0)
    is_wrong |= (values[0] < 0) | (values[0] > 1)
    first = is_wrong.argmax()
    score, *box = values[:, first].tolist()
    what = f"cannot be used, the first of them number {first + 1:,}, with score {score:g} and box "
    hint = "A score is from 0 to 1, and a box is [x, y, width, height]."
    _refuse(path, is_wrong, "result", f"{what}{box}", hint)


def _check_turned(path: str, rows: Array, sizes: Array, index: pa.Table) -> None:
    sides = [index[f"source_{side}"].to_numpy()[rows] for side in ("height", "width")]
    is_turned = (rows >= 0) & (sizes == sides).all(0) & (sides[0] != sides[1])
    names = index["uri"].take(pa.array(rows[is_turned])).to_pylist()
    _refuse(
        path,
        is_turned,
        "image",
        f"are turned by EXIF, and their annotations declare the size before that: "
        f"{list_first(names)}",
        "Take them out of the results. Or detect in images as they are shown, and give the results "
        "as label files, with shares of the image.",
    )


def _check_boxes(path: str, boxes: Array) -> None:
    is_beyond = (boxes[2:] > _BEYOND).any(0)
    _refuse(
        path,
        is_beyond & (is_beyond.mean() > 0.5),
        "box",
        "reach beyond their images",
        "A box is [x, y, width, height], in pixels of the image as it is shown, or of the size "
        "that its annotations declare. These may be corners, or of the size of the network.",
    )


def _list_readings(
    said: _Said, labels: Sequence[str], read_as: ReadAs | None, known: _Annotations | None
) -> list[Mapping[str, str]]:
    """Returns the names of classes by their numbers, as results may mean these."""
    if known is not None:
        return [{f"{each.id}": each.name for each in known.categories}]
    if said.in_shares:
        return [{f"{number}": name for number, name in enumerate(labels)}]
    lines = {f"{number}": name for number, name in enumerate(labels, 1)}
    # A detector that learned from records numbers classes by lines, also where the list has ids.
    return [read_as.class_ids if read_as else {}, lines]


def _find_labels(
    path: str, classes: Array, labels: Sequence[str], readings: Iterable[Mapping[str, str]]
) -> Array:
    """Returns the numbers of classes in the label map, by the reading that knows most of them.

    Raises:
        DataError: The dataset does not have some of them, or readings that know all differ.
    """
    ids, inverse = np.unique(classes, return_inverse=True)
    numbers = {name: number for number, name in enumerate(labels)}
    named = [[normalise_label(names.get(f"{each}", "")) for each in ids] for names in readings]
    found = np.array([[numbers.get(name, _UNKNOWN) for name in names] for names in named])
    best = int((found >= 0).sum(1).argmax())
    strange = [f"{each} {name}".strip() for each, name in zip(ids, named[best], strict=True)]
    for is_wrong, what in (
        (found[best] < 0, "are not known"),
        (
            (found >= 0).all() & (found != found[0]).any(0),
            "mean one class as ids, another as lines",
        ),
    ):
        which = list_first([strange[each] for each in np.flatnonzero(is_wrong)])
        what = f"{what}: {which}. The dataset has {list_first(labels)}"
        _refuse(path, is_wrong, "class number", what, GIVE_ANNOTATIONS)
    chosen: Array = found[best]
    return chosen[inverse]


def _find_images(
    path: str, named: Sequence[str], index: pa.Table, known: _Annotations | None, are_files: bool
) -> tuple[Array, Array, Array]:
    """Returns the images that results name, each once.

    Returns:
        Places in the index, int64 [M], with `_UNKNOWN` for those that the annotations alone have;
        the places of all images of the annotations, or of the index, where ids are not of those;
        and widths and heights of what boxes are in, float64 [2, M].

    Raises:
        DataError: One is not known, or the name of several.
    """
    sizes, said = _list_sizes(index), np.full((2, len(named)), np.nan)
    images = known.images if known else []
    had = np.arange(len(index))
    places = _look_up(named, ((f"{each.id}", number) for number, each in enumerate(images)))
    if (places == _UNKNOWN).all():
        rows = _find_names(named, index) if are_files else _find_listed(named, index)
        _check_found(path, named, rows, "dataset")
    else:
        _check_found(path, named, places, "annotations")
        had = _find_names([each.file_name for each in images], index)
        rows, images = had[places], [images[place] for place in places]
        said = np.array([(each.width or np.nan, each.height or np.nan) for each in images]).T
        # Some may be rejected, but not all.
        is_left_out = rows == _UNKNOWN
        _check_found(path, named, np.where(is_left_out & ~is_left_out.all(), 0, rows), "dataset")
    return rows, had, np.where(np.isnan(said), sizes[:, rows], said)


def _check_found(path: str, named: Sequence[str], places: Array, where: str) -> None:
    hint = (
        f"Give results for the images of this dataset. {GIVE_ANNOTATIONS} With that JSON, results "
        "of rejected images are left out."
    )
    for wrong, what in ((_UNKNOWN, f"are not in the {where}"), (_SEVERAL, "could be several")):
        strange = list_first([named[number] for number in np.flatnonzero(places == wrong)])
        _refuse(path, places == wrong, "image", f"{what}: {strange}", hint)


def _find_listed(named: Sequence[str], index: pa.Table) -> Array:
    """Returns the places of images by the ids of the list, or by names: whatever knows most.

    What is the id of one image and the name of another one, as 7 of 0007.png, means several.
    """
    ids = _take_listed(index, "image_id")
    by_id = _look_up(named, zip(ids, range(len(ids)), strict=True))
    by_name = _find_names(named, index)
    if (by_id >= 0).all() and (by_name >= 0).all():
        return np.where(by_id == by_name, by_id, _SEVERAL)
    return max(by_id, by_name, key=lambda rows: (rows != _UNKNOWN).sum())


def _find_names(named: Sequence[str], index: pa.Table) -> Array:
    """Returns the places of images by their names without endings.

    A name may have folders, as `val2017/1.jpg`, which then count if the images have them.
    """
    uris, ids = (index[name].to_pylist() for name in ("uri", "id"))
    paths = [uri or name for uri, name in zip(uris, ids, strict=True)]
    rows = np.full(len(named), _UNKNOWN, np.int64)
    for depth in range(max(name.count("/") for name in named), -1, -1):
        known = ((_shorten(each, depth), row) for row, each in enumerate(paths))
        left = np.flatnonzero(rows == _UNKNOWN)
        rows[left] = _look_up([_shorten(named[each], depth) for each in left], known)
    return rows


def _find_looked(found: Results, had: Array, index: pa.Table) -> Array:
    """Returns which images the detector looked at, of those that it had; see `read_detections`."""
    splits = index["split"].take(pa.array(np.unique(found.image))).combine_chunks()
    of_splits = pc.is_in(index["split"], value_set=splits).to_numpy()
    is_looked: Array = of_splits & np.isin(np.arange(len(index)), had)
    return is_looked


def _shorten(path: str, depth: int) -> str:
    """Returns a name without its ending and leading zeros, with so many folders above it."""
    *folders, name = path.split("/")[-depth - 1 :]
    stem = posixpath.splitext(name)[0]
    return "/".join([*folders, stem.lstrip("0") if stem.isdecimal() else stem])


def _look_up(named: Sequence[str], known: Iterable[tuple[str | None, int]]) -> Array:
    """Returns the numbers of texts; `_UNKNOWN` for none, `_SEVERAL` for more than one."""
    numbers: dict[str | None, int] = {}
    for name, number in known:
        numbers[name] = number if numbers.get(name, number) == number else _SEVERAL
    return np.array([numbers.get(name, _UNKNOWN) for name in named], np.int64)


def _take_listed(index: pa.Table, name: str) -> list[Any]:
    """Returns what the list says of each image; None where it does not."""
    listed = index["listed"].combine_chunks()
    place = listed.type.get_field_index(name)
    return [None] * len(listed) if place < 0 else listed.flatten()[place].to_pylist()


def _list_sizes(index: pa.Table) -> Array:
    """Returns width and height of what the list says places in, float64 [2, images]."""
    upright = np.array([index[f"source_{side}"].to_pylist() for side in ("width", "height")], float)
    said = np.array([_take_listed(index, side) for side in ("width", "height")], float)
    # Tools show an image turned, and let the file say its size.
    is_upright = np.array([each == UPRIGHT for each in _take_listed(index, "orientation")])
    is_said = ~np.isnan(said).any(0) & (said != 1).any(0)
    is_said &= ~(is_upright & (said == upright[::-1]).all(0))
    return np.where(is_said, said, upright)
