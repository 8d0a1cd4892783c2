"""The forms of annotated images that darkroom knows by their content.

Some have a reader in `darkroom.manifest.formats`. An error about a source of another one names its
form, and says what to do.
"""

from __future__ import annotations

import csv
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
MAX_FILES = 8
_ENDINGS = (".json", ".xml", ".yaml", ".yml", ".txt")
METADATA_FILES = ("metadata.jsonl", "metadata.csv", "metadata.parquet")
JSON_LINES_ENDINGS = (".jsonl", ".ndjson")
_OBJECT_LIST = re.compile(r'"(\w+)"\s*:\s*\[\s*[{\]]')
# A class, and a box or the corners of a polygon.
_YOLO_LINE = re.compile(r"\d+(\s+-?\d+(\.\d+)?([eE]-?\d+)?){4,}")
# Of data.yaml, or of the .data file of darknet.
_YOLO_SETTING = re.compile(r"(names|nc):|names *=")
# Split, path, label, and the corners of a box, of which some may be left out.
_AUTOML_LINE = re.compile(r"[^,]*,[^,]+,[^,]*(,\s*(-?\d*\.?\d+([eE]-?\d+)?)?\s*){8}")
OTHER_BOXES = (
    "These seem to be boxes. Write them into a column objects, or as one of the forms in "
    "docs/guides/boxes.md. To use the classes alone, write a CSV with the columns image_uri and "
    "label."
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
    def header(self) -> list[str]:
        """The cells in its first line; none where that is not one of a CSV, as in UTF-16."""
        with suppress(csv.Error):
            cells = next(csv.reader(self.lines[:1], skipinitialspace=True), [])
            return [name.strip() for name in cells]
        return []

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
        advice: What to do where it is not read; `{path}` is the path of the source.
        format: The name of its reader, as `--format` has it; empty without one.
    """

    name: str
    is_it: Callable[[Evidence], bool]
    advice: str = "Convert these annotations: darkroom convert {path}"
    format: str = ""

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
    return is_whole and found.text.lstrip().startswith(("[", "{"))


def _is_vertex(found: Evidence) -> bool:
    # The first line may be longer than what is known of it.
    is_line = bool(found.lines) and re.match(r'\{\s*"', found.lines[0]) is not None
    return is_line and "imageGcsUri" in found.keys


def _is_automl(found: Evidence) -> bool:
    fitting = [*filter(None, map(_AUTOML_LINE.fullmatch, found.lines))]
    # Some lines may have faults.
    return 2 * len(fitting) > len(found.lines)


def _is_yolo(found: Evidence) -> bool:
    is_settings = any(map(_YOLO_SETTING.match, found.lines))
    return is_settings or bool(found.lines and all(map(_YOLO_LINE.fullmatch, found.lines)))


def _has_keys(*keys: str) -> Callable[[Evidence], bool]:
    """Returns a function that tells whether JSON has keys, in any of its objects."""
    return lambda found: found.keys.issuperset(keys)


def _write_coco(name: str) -> str:
    """Returns how to write a form as COCO, by its name in panlabel, which knows dozens."""
    return (
        "Write it as COCO, and convert coco.json:\n  pip install panlabel\n"
        f"  panlabel convert -f {name} -t coco -i {{path}} -o coco.json"
    )


_ROWS = '  rows = [json.loads(line) for line in open("{path}")]\n'


COCO = KnownForm("a file of annotations of COCO", _is_coco, format="coco")


def is_voc(found: Evidence) -> bool:
    """Tells whether a file is an annotation of Pascal VOC; labelImg writes attributes into it."""
    return re.search(r"<annotation[\s>]", found.text) is not None


_VOC = KnownForm(
    "an annotation of Pascal VOC",
    is_voc,
    "Convert the folder that has it and the images: darkroom convert FOLDER --format voc",
)
_CVAT = KnownForm(
    "a file of annotations of CVAT",
    lambda found: "<annotations>" in found.text,
    "Export the task from CVAT again, as COCO 1.0 with its images, and convert that.",
)
_YOLO = KnownForm(
    "a file of YOLO",
    _is_yolo,
    "Put data.yaml, or classes.txt with a name of a class in each line, into the folder of the "
    "dataset, and convert that with --format yolo.",
    format="yolo",
)
_LABELME = KnownForm(
    "an annotation of Labelme", _has_keys("shapes", "imagePath"), _write_coco("labelme")
)
_VIA = KnownForm(
    "a file of annotations of VGG Image Annotator",
    _has_keys("filename", "regions"),
    _write_coco("via"),
)
_CREATE_ML = KnownForm(
    "a file of annotations of Create ML",
    _has_keys("annotations", "coordinates"),
    _write_coco("create-ml"),
)
_FIFTYONE = KnownForm(
    "a file of annotations of FiftyOne",
    _has_keys("classes", "labels", "bounding_box"),
    "Write it as COCO, and convert that folder:\n"
    '  folder, types = os.path.dirname("{path}"), fiftyone.types\n'
    "  data = fiftyone.Dataset.from_dir(folder, types.FiftyOneImageDetectionDataset)\n"
    '  data.export("coco", dataset_type=types.COCODetectionDataset)',
)
_IN_FOLDERS = (COCO, _VOC, _CVAT, _YOLO, _LABELME, _VIA, _CREATE_ML, _FIFTYONE)
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
    KnownForm("an export of Label Studio", _is_label_studio, format="label_studio"),
    KnownForm(
        "an export of Label Studio as JSON-MIN",
        _has_keys("annotator", "annotation_id"),
        "Export it as JSON, which has all of the annotations.",
    ),
    KnownForm("an import file of Vertex AI", _is_vertex, format="vertex"),
    KnownForm(
        "an import file of Vertex AI, but not one object a line",
        _has_keys("imageGcsUri"),
        'Write it so:\n  rows = json.load(open("{path}"))\n'
        "  rows = rows if isinstance(rows, list) else [rows]\n"
        '  open("list.jsonl", "w").write("\\n".join(map(json.dumps, rows)))',
    ),
    KnownForm("an import file of AutoML with boxes", _is_automl, format="automl"),
    KnownForm(
        "a manifest of SageMaker with classes",
        lambda found: {"source-ref", "class-name"} <= found.keys,
        f"Write its lines flat:\n{_ROWS}"
        '  flat = [{"image_uri": row["source-ref"], "label": each["class-name"]} for row in rows '
        'for name, each in row.items() if name.endswith("-metadata")]\n'
        '  pandas.DataFrame(flat).to_csv("flat.csv", index=False)',
    ),
    KnownForm(
        "a manifest of SageMaker with boxes",
        _has_keys("source-ref", "image_size"),
        _write_coco("sagemaker"),
    ),
    KnownForm(
        "a file of TFRecords with images already",
        lambda found: "\0" in found.text and "image/encoded" in found.text,
        "tf.data.TFRecordDataset reads it. darkroom.load reads only a folder that darkroom wrote: "
        "to get one, convert the images and the annotations that this file was made from.",
    ),
    _JSON_LINES,
    KnownForm(
        "an array of JSON",
        lambda found: found.text.lstrip().startswith("[") and bool(found.keys),
        "Write JSON Lines, one object a line: "
        'frame.to_json("list.jsonl", orient="records", lines=True).',
    ),
)


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
    if lists := [path for path in paths if path.rpartition("/")[2] in METADATA_FILES]:
        return _HUGGING_FACE, lists[0]
    by_ending = ([path for path in paths if path.lower().endswith(ending)] for ending in _ENDINGS)
    for path in (path for found in by_ending for path in found[:MAX_FILES]):
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
