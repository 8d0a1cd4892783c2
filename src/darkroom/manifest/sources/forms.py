"""The forms of annotated images that darkroom knows by their content, and does not read.

An error about a source that cannot be read names its form, if it has one of these, and says what to
do. A form that gets a reader leaves this table.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import Any, NamedTuple

from darkroom import storage
from darkroom.errors import DataError

_SAMPLE_BYTES = 1 << 16
# So many files of a folder are looked into.
_MAX_FILES = 8
_ENDINGS = (".json", ".xml", ".yaml", ".yml", ".txt")
_METADATA = ("metadata.jsonl", "metadata.csv", "metadata.parquet")
JSON_LINES_ENDINGS = (".jsonl", ".ndjson")
_OBJECT_LIST = re.compile(r'"(\w+)"\s*:\s*\[\s*[{\]]')
# A class, and a box or the corners of a polygon.
_YOLO_LINE = re.compile(r"\d+(\s+-?\d+(\.\d+)?([eE]-?\d+)?){4,}")
# Split, path, label, and the corners of a box, of which some may be left out.
_VERTEX_BOX = re.compile(r"[^,]*,[^,]+,[^,]*(,([01](\.\d+)?)?){8}")
_BOXES = ("xmin ymin xmax ymax", "x_min y_min x_max y_max", "x1 y1 x2 y2", "bbox", "boxes")
NO_BOXES = (
    "darkroom reads labels and numbers of an image, and no boxes or masks yet. To use the classes "
    "alone, write a CSV with the columns image_uri and label."
)


@dataclass(frozen=True)
class Evidence:
    """What is known of a source.

    Attributes:
        text: The beginning and the end of its text.
    """

    text: str

    @cached_property
    def keys(self) -> frozenset[str]:
        """The keys of JSON in the text, whatever they are in."""
        return frozenset(re.findall(r'"([\w-]+)"\s*:', self.text))

    @property
    def row_keys(self) -> frozenset[str]:
        """The keys of the object in its first line, or the cells there, as a CSV has them."""
        first = self.first_value
        return frozenset(first if isinstance(first, dict) else ",".join(self.lines[:1]).split(","))

    @cached_property
    def lines(self) -> list[str]:
        """The first lines of the text that are not blank."""
        return list(islice(filter(None, map(str.strip, self.text.splitlines())), 20))

    @cached_property
    def first_value(self) -> Any:
        """The value of JSON in the first line; None if that is not JSON."""
        with suppress(ValueError, RecursionError):
            return json.loads(self.lines[0]) if self.lines else None
        return None


class KnownForm(NamedTuple):
    """A form of annotated images.

    Attributes:
        name: Its name, as in "the annotations of COCO".
        is_it: Tells whether a source has it.
        advice: What to do; `{path}` is the path of the source.
    """

    name: str
    is_it: Callable[[Evidence], bool]
    advice: str

    def format_advice(self, path: str) -> str:
        """Returns what to do with a source."""
        return self.advice.replace("{path}", path)


def _is_coco(found: Evidence) -> bool:
    # A large file has its images anywhere, so its objects tell it, too.
    lists = {*_OBJECT_LIST.findall(found.text)}
    is_whole = "images" in lists and not lists.isdisjoint(("annotations", "categories"))
    is_object = {"image_id", "category_id"} <= found.keys
    return is_whole or (is_object and not found.keys.isdisjoint(("bbox", "segmentation")))


def _is_label_studio(found: Evidence) -> bool:
    is_whole = "data" in found.keys and not found.keys.isdisjoint(("annotations", "predictions"))
    is_short = {"annotator", "annotation_id"} <= found.keys
    return found.text.lstrip().startswith(("[", "{")) and (is_whole or is_short)


def _is_yolo(found: Evidence) -> bool:
    is_settings = any(line.startswith(("names:", "nc:")) for line in found.lines)
    return is_settings or bool(found.lines and all(map(_YOLO_LINE.fullmatch, found.lines)))


def _has_keys(*keys: str) -> Callable[[Evidence], bool]:
    """Returns a function that tells whether JSON has keys, in any of its objects."""
    return lambda found: found.keys.issuperset(keys)


def _is_row_with(*names: str) -> Callable[[Evidence], bool]:
    """Returns a function that tells whether rows have columns, or keys, of these names."""
    return lambda found: found.row_keys.issuperset(names)


_ROWS = '  rows = [json.loads(line) for line in open("{path}")]\n'
_ML_USE = '"aiplatform.googleapis.com/ml_use"'


_COCO = KnownForm("a file of annotations of COCO", _is_coco, NO_BOXES)
_VOC = KnownForm(
    "an annotation of Pascal VOC", lambda found: "<annotation>" in found.text, NO_BOXES
)
_CVAT = KnownForm(
    "a file of annotations of CVAT", lambda found: "<annotations>" in found.text, NO_BOXES
)
_YOLO = KnownForm("a file of YOLO", _is_yolo, NO_BOXES)
_LABELME = KnownForm("an annotation of Labelme", _has_keys("shapes", "imagePath"), NO_BOXES)
_VIA = KnownForm(
    "a file of annotations of VGG Image Annotator", _has_keys("filename", "regions"), NO_BOXES
)
_CREATE_ML = KnownForm(
    "a file of annotations of Create ML", _has_keys("annotations", "coordinates"), NO_BOXES
)
_IN_FOLDERS = (_COCO, _VOC, _CVAT, _YOLO, _LABELME, _VIA, _CREATE_ML)
_JSON_LINES = KnownForm(
    "JSON Lines",
    lambda found: isinstance(found.first_value, dict),
    "Give it the ending .jsonl.",
)
_HUGGING_FACE = KnownForm(
    "a list of Hugging Face", lambda _: False, "Convert the list: darkroom convert {path}"
)
KNOWN_FORMS = (
    *_IN_FOLDERS,
    KnownForm(
        "an export of Label Studio",
        _is_label_studio,
        "Export it as CSV, and name the columns: --columns "
        '\'{"image": "image", "choice": "string_label"}\' (columns= in Python).',
    ),
    KnownForm(
        "an import file of Vertex AI with classes",
        _is_row_with("imageGcsUri", "classificationAnnotation"),
        f"Write its lines flat:\n{_ROWS}"
        '  flat = [{"image_uri": row["imageGcsUri"], **row["classificationAnnotation"], '
        '**row.get("dataItemResourceLabels", {})} for row in rows]\n'
        '  pandas.DataFrame(flat).rename(columns={"displayName": "label", '
        f'{_ML_USE}: "ml_use"}}).to_csv("flat.csv", index=False)',
    ),
    KnownForm(
        "an import file of Vertex AI with several labels of an image",
        _is_row_with("imageGcsUri", "classificationAnnotations"),
        f"Write its lines flat, and convert flat.jsonl with --label-kind labels:\n{_ROWS}"
        '  flat = [{"image_uri": row["imageGcsUri"], "label": [each["displayName"] for each in '
        'row["classificationAnnotations"]], **row.get("dataItemResourceLabels", {})} '
        "for row in rows]\n"
        f'  pandas.DataFrame(flat).rename(columns={{{_ML_USE}: "ml_use"}})'
        '.to_json("flat.jsonl", orient="records", lines=True)',
    ),
    KnownForm("an import file of Vertex AI", _is_row_with("imageGcsUri"), NO_BOXES),
    KnownForm(
        "an import file of Vertex AI, but not one object a line",
        _has_keys("imageGcsUri"),
        'Write it so:\n  rows = json.load(open("{path}"))\n'
        "  rows = rows if isinstance(rows, list) else [rows]\n"
        '  open("list.jsonl", "w").write("\\n".join(map(json.dumps, rows)))',
    ),
    KnownForm(
        "an import file of Vertex AI with boxes",
        lambda found: bool(found.lines) and all(map(_VERTEX_BOX.fullmatch, found.lines)),
        NO_BOXES,
    ),
    KnownForm(
        "a manifest of SageMaker with classes",
        lambda found: {"source-ref", "class-name"} <= found.keys,
        f"Write its lines flat:\n{_ROWS}"
        '  flat = [{"image_uri": row["source-ref"], "label": each["class-name"]} for row in rows '
        'for name, each in row.items() if name.endswith("-metadata")]\n'
        '  pandas.DataFrame(flat).to_csv("flat.csv", index=False)',
    ),
    KnownForm(
        "a manifest of SageMaker with boxes", _has_keys("source-ref", "image_size"), NO_BOXES
    ),
    _JSON_LINES,
    KnownForm(
        "an array of JSON",
        lambda found: found.text.lstrip().startswith("[") and bool(found.keys),
        "Write JSON Lines, one object a line: "
        'frame.to_json("list.jsonl", orient="records", lines=True).',
    ),
)


def has_boxes(names: Iterable[str]) -> bool:
    """Tells whether columns have boxes of objects."""
    found = {name.strip().lower() for name in names}
    return any(found.issuperset(boxes.split()) for boxes in _BOXES)


def find_form(found: Evidence) -> KnownForm | None:
    """Returns the form that a source has; None for an unknown one."""
    return next((form for form in KNOWN_FORMS if form.is_it(found)), None)


def find_folder_form(folder: str, files: Iterable[str]) -> tuple[KnownForm, str] | None:
    """Returns the form of the annotations in a folder, and the path of one; None for none.

    Args:
        folder: The folder.
        files: Paths of the files below it that are not images, relative to it.

    Raises:
        OSError: A file cannot be read.
    """
    paths = [storage.join(folder, name) for name in files]
    if lists := [path for path in paths if path.rpartition("/")[2] in _METADATA]:
        return _HUGGING_FACE, lists[0]
    by_ending = ([path for path in paths if path.lower().endswith(ending)] for ending in _ENDINGS)
    for path in (path for found in by_ending for path in found[:_MAX_FILES]):
        form = find_form(read_evidence(path))
        if form in _IN_FOLDERS:
            return form, path
    return None


def read_evidence(path: str) -> Evidence:
    """Returns the beginning and the end of a text file.

    Raises:
        OSError: It cannot be read.
    """
    size = storage.stat_file(path).size_bytes
    with storage.open_read(path) as file:
        data = file.read(_SAMPLE_BYTES)
        if size > 2 * _SAMPLE_BYTES:
            file.seek(size - _SAMPLE_BYTES)
            data += b"\n" + file.read(_SAMPLE_BYTES)
    return Evidence(data.decode("utf-8-sig", errors="replace"))


@contextmanager
def name_form(path: str) -> Iterator[None]:
    """Turns the error of a source that cannot be read into one that names its form, if it is known.

    Raises:
        DataError: It cannot be read.
        OSError: The same.
    """
    try:
        yield
    except DataError as error:
        form = find_form(read_evidence(path))
        if form is None or (form is _JSON_LINES and path.lower().endswith(JSON_LINES_ENDINGS)):
            raise
        raise DataError(f"{path} is {form.name}.", form.format_advice(path)) from error
