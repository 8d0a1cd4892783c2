"""Reads results of a detector, as columns of numbers, beside the images of a dataset.

They are COCO's results, an array of JSON, also as ultralytics writes it; or a folder of
ultralytics' label files with scores, a file an image. Nothing is unpickled.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import msgspec
import numpy as np
import pyarrow as pa

from darkroom import storage
from darkroom.errors import DataError, UsageError
from darkroom.runtime.arrays import Array
from darkroom.runtime.text import format_count, list_first
from darkroom.targets.form import UPRIGHT

# Columns of an index by which results find their images.
RESULT_COLUMNS = ["uri", "id", "listed", "source_height", "source_width"]
_BLOCK_RESULTS = 8192
_COLUMNS = 6
# Boxes are cut at the edge of images by some tools, and not by others.
_BEYOND = 1.1
_FORM = (
    "Results are an array of JSON, each with image_id, category_id, bbox [x, y, width, height] and "
    "score, as pycocotools takes them; or a folder of label files of ultralytics (save_txt=True, "
    "save_conf=True)."
)
GIVE_ANNOTATIONS = "Name the JSON that the detector had: --annotations (annotations= in Python)."


class Results(NamedTuple):
    """What a detector says of the images of a dataset.

    Attributes:
        image: The places of the images in the index, int64 [N].
        label: The numbers of the classes in the label map, from 0, int64 [N].
        score: From 0 to 1, float64 [N].
        boxes: Left, top, right and bottom as shares of the image, float64 [4, N].
        left_out: How many results are of images that the annotations have, and the dataset not.
    """

    image: Array
    label: Array
    score: Array
    boxes: Array
    left_out: int = 0

    def take(self, chosen: Array) -> Results:
        """Returns some of them, by their numbers or a mask."""
        image, label, score = (each[chosen] for each in self[:3])
        return Results(image, label, score, self.boxes[:, chosen], self.left_out)


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
    id: int
    name: str


class _Annotations(msgspec.Struct):
    images: list[_Image]
    categories: list[_Category]


class _Said(NamedTuple):
    """Results as a file has them.

    Attributes:
        images: The id or the name of each image, text [N].
        classes: The numbers of the classes, int64 [N].
        values: Score, left, top, width and height, float64 [5, N].
        first_class: The number of the first class.
        in_shares: Whether places are shares of the image, and not pixels.
    """

    images: pa.Array
    classes: Array
    values: Array
    first_class: int = 1
    in_shares: bool = False


class _Places(NamedTuple):
    """Images of the dataset for what results name.

    Attributes:
        rows: Places in the index, int64 [M]; -1 for those that the annotations alone have.
        sizes: Widths and heights of what places are in, float64 [2, M].
    """

    rows: Array
    sizes: Array


def read_detections(
    path: str, index: pa.Table, labels: Sequence[str], annotations: str | None = None
) -> Results:
    """Reads results.

    Args:
        path: A file of JSON, or a folder of text files.
        index: `RESULT_COLUMNS` of the index.
        labels: The label map of the dataset.
        annotations: The file of COCO that the detector had: ids of images and classes are those of
            that file. Without it, those of images are those of the list, or the names of files, and
            class n is the nth of the labels.

    Raises:
        DataError: It is none, or images or classes are not those of the dataset.
        UsageError: Annotations are given for label files.
        OSError: Something cannot be read.
    """
    if storage.is_folder(path):
        if annotations is not None:
            raise UsageError("Annotations are for results as JSON: label files have no ids.")
        said, known = _read_folder(path), None
    else:
        said = _read_json(path)
        known = None if annotations is None else _decode(annotations, _Annotations)
    _check_values(path, said.values)
    images = said.images.dictionary_encode()
    places = _find_images(path, images.dictionary.to_pylist(), index, known)
    numbers = images.indices.to_numpy()
    label = _find_labels(path, said, labels, known)
    score, left, top, width, height = said.values
    boxes = np.stack([left, top, left + width, top + height])
    if not said.in_shares:
        _check_turned(path, places, index)
        boxes /= np.tile(places.sizes[:, numbers], (2, 1))
    _check_boxes(path, boxes)
    found = Results(places.rows[numbers], label, score, boxes)
    is_there = found.image >= 0
    return found.take(is_there)._replace(left_out=int((~is_there).sum()))


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
    return _Said(pa.array(images, pa.string()), number.astype(np.int64), values, 0, in_shares=True)


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


def _check_values(path: str, values: Array) -> None:
    is_wrong = ~np.isfinite(values).all(0) | (values[3:] < 0).any(0)
    is_wrong |= (values[0] < 0) | (values[0] > 1)
    if is_wrong.any():
        first = np.flatnonzero(is_wrong)[0]
        score, *box = values[:, first].tolist()
        raise DataError(
            f"{path}: {is_wrong.sum():,} of {format_count(len(is_wrong), 'result')} cannot be "
            f"used, the first of them number {first + 1:,}, with score {score:g} and box {box}.",
            "A score is from 0 to 1, and a box is [x, y, width, height].",
        )


def _check_turned(path: str, places: _Places, index: pa.Table) -> None:
    rows = places.rows
    sides = [index[f"source_{side}"].to_numpy()[rows] for side in ("height", "width")]
    is_turned = (rows >= 0) & (places.sizes == sides).all(0) & (sides[0] != sides[1])
    if is_turned.any():
        raise DataError(
            f"{path}: {is_turned.sum():,} of {format_count(len(rows), 'image')} are turned by "
            "EXIF, and their annotations declare the size before that.",
            "Take them out of the results. Or detect in images as they are shown, and give the "
            "results as label files, with shares of the image.",
        )


def _check_boxes(path: str, boxes: Array) -> None:
    is_beyond = (boxes[2:] > _BEYOND).any(0)
    if is_beyond.mean() > 0.5:
        raise DataError(
            f"{path}: {is_beyond.sum():,} of {format_count(len(is_beyond), 'box')} reach beyond "
            "their images.",
            "A box is [x, y, width, height], in pixels of the image as it is shown, or of the size "
            "that its annotations declare. These may be corners, or of the size of the network.",
        )


def _find_labels(
    path: str, said: _Said, labels: Sequence[str], known: _Annotations | None
) -> Array:
    """Returns the numbers of the classes of results, from 0.

    Raises:
        DataError: The dataset does not have some of them.
    """
    ids, inverse = np.unique(said.classes, return_inverse=True)
    numbers = {number + said.first_class: number for number in range(len(labels))}
    where = f"the dataset has {said.first_class} to {len(labels) - 1 + said.first_class}"
    if known is not None:
        by_name = {name: number for number, name in enumerate(labels)}
        numbers = {each.id: by_name.get(each.name, -1) for each in known.categories}
        where = "the annotations have no such class, or the dataset not its name"
    found = np.array([numbers.get(each, -1) for each in ids.tolist()], np.int64)
    if (found < 0).any():
        strange = [*map(str, ids[found < 0].tolist())]
        hint = GIVE_ANNOTATIONS if known is None else "Name the JSON of this dataset."
        raise DataError(
            f"{path}: {len(strange)} of {len(ids)} numbers of classes are not known: "
            f"{list_first(strange)}; {where}.",
            hint,
        )
    return found[inverse]


def _find_images(
    path: str, named: Sequence[str], index: pa.Table, known: _Annotations | None
) -> _Places:
    """Returns the images that results name, each once.

    Raises:
        DataError: One is not known, or the name of several.
    """
    sizes = _list_sizes(index)
    by_id = {f"{each.id}": each for each in known.images} if known else {}
    if by_id.keys() & {*named}:
        _check_known(path, [name for name in named if name not in by_id], named, "annotations")
        images = [by_id[name] for name in named]
        rows = _find_names(path, [each.file_name for each in images], index)
        said = np.array([(each.width or np.nan, each.height or np.nan) for each in images]).T
        return _Places(rows, np.where(np.isnan(said), sizes[:, rows], said))
    rows = _find_ids(path, named, index)
    strange = [name for name, row in zip(named, rows.tolist(), strict=True) if row < 0]
    _check_known(path, strange, named, "dataset")
    return _Places(rows, sizes[:, rows])


def _check_known(path: str, strange: Sequence[str], named: Sequence[str], where: str) -> None:
    if strange:
        raise DataError(
            f"{path}: {len(strange):,} of {format_count(len(named), 'image')} are not in the "
            f"{where}: {list_first(strange)}.",
            f"Give results for the images of this dataset. {GIVE_ANNOTATIONS}",
        )


def _find_ids(path: str, named: Sequence[str], index: pa.Table) -> Array:
    """Returns the places of images by the ids of the list, else by their names; -1 for none."""
    ids = _take_listed(index, "image_id")
    rows = _look_up(path, named, zip(ids, range(len(ids)), strict=False))
    return rows if (rows >= 0).any() else _find_names(path, named, index)


def _find_names(path: str, named: Sequence[str], index: pa.Table) -> Array:
    """Returns the places of images by their names without endings; -1 for none.

    A name may have folders, as `val2017/1.jpg`, which then count if the images have them.
    """
    uris, ids = (index[name].to_pylist() for name in ("uri", "id"))
    paths = [uri or name for uri, name in zip(uris, ids, strict=True)]
    rows = np.full(len(named), -1, np.int64)
    for depth in range(max(name.count("/") for name in named), -1, -1):
        known = ((_shorten(each, depth), row) for row, each in enumerate(paths))
        left = np.flatnonzero(rows < 0)
        rows[left] = _look_up(path, [_shorten(named[each], depth) for each in left], known)
    return rows


def _shorten(path: str, depth: int) -> str:
    """Returns a name without its ending and leading zeros, with so many folders above it."""
    *folders, name = path.split("/")[-depth - 1 :]
    stem = posixpath.splitext(name)[0]
    return "/".join([*folders, stem.lstrip("0") if stem.isdecimal() else stem])


def _look_up(path: str, named: Sequence[str], known: Iterable[tuple[str | None, int]]) -> Array:
    """Returns the numbers of texts; -1 for none.

    Raises:
        DataError: One has several numbers.
    """
    numbers: dict[str | None, int] = {}
    twice = {name for name, number in known if numbers.setdefault(name, number) != number}
    if strange := [name for name in named if name in twice]:
        raise DataError(
            f"{path}: {len(strange):,} of {format_count(len(named), 'image')} could each be "
            f"several of the dataset: {list_first(strange)}.",
            GIVE_ANNOTATIONS,
        )
    return np.array([numbers.get(name, -1) for name in named], np.int64)


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
