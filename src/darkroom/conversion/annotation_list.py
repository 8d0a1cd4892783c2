"""The objects of a dataset as a list that other tools read: COCO, YOLO or Pascal VOC."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain

import pyarrow as pa
import pyarrow.compute as pc

from darkroom import storage
from darkroom.dataset.commit import Dataset
from darkroom.dataset.example import decode_example
from darkroom.dataset.index import read_index
from darkroom.dataset.layout import REJECTS_LIST_FILE, Folders
from darkroom.dataset.named import find_named_data
from darkroom.dataset.opening import check_outside, open_dataset
from darkroom.dataset.read_as import read_read_as
from darkroom.dataset.splits import EVAL
from darkroom.dataset.tfrecord import read_records
from darkroom.errors import UsageError
from darkroom.images.headers import JPEG
from darkroom.images.pixels import encode_stored
from darkroom.options.checks import as_python, check_known, check_number
from darkroom.runtime import progress
from darkroom.runtime.result import Fact, Outcome, Result
from darkroom.runtime.text import format_count, list_first
from darkroom.sidecars.lists.coco import COCO
from darkroom.sidecars.lists.detections import PLACE_COLUMNS, make_labels
from darkroom.sidecars.lists.images import (
    ListedImage,
    ListForm,
    Unsaid,
    name_uniquely,
    spell_images,
)
from darkroom.sidecars.lists.voc import VOC
from darkroom.sidecars.lists.yolo import YOLO
from darkroom.storage import ledger
from darkroom.storage.parquet import BATCH_ROWS
from darkroom.storage.uris import relative_identity
from darkroom.targets.boxes.results import (
    RESULT_COLUMNS,
    DetectorFiles,
    check_boxes,
    read_detections,
)

FORMS = {"coco": COCO, "voc": VOC, "yolo": YOLO}

_SILENT, _TURNED, _REJECTED = "silent", "turned", "rejected"
_IMAGES, _OBJECTS = "images", "objects"
# How many of what is not said, and what is said of them.
_SAYS = {
    Unsaid.UNKNOWN: (
        "image",
        "that nobody looked at left out: in this form, it would say that nothing is there",
    ),
    _SILENT: ("image", "that the detector did not look at left out"),
    Unsaid.CROWDS: ("crowd", "left out: this form has no word for them"),
    Unsaid.DIFFICULT: ("difficult object", "written as others: this form has no word for them"),
    Unsaid.AREAS: ("area", "not written: readers take the areas of the boxes"),
    Unsaid.IDS: ("object id", "not written"),
    _TURNED: (
        "image",
        "turned by EXIF, with boxes in them as they are shown, which not all readers do. Convert "
        "with --box-orientation upright, or write upright images with --output-dir",
    ),
    _REJECTED: ("object", f"rejected by the conversion, alone or with images: {REJECTS_LIST_FILE}"),
}
_SPLITS = {EVAL: "val"}
_KEPT = ("source_id", "label", "listed")
_SIDES = ("width", "height")
_COLUMNS = [
    *dict.fromkeys((*_KEPT, *RESULT_COLUMNS, *PLACE_COLUMNS, "row", "key", "changes", "format"))
]


@dataclass(frozen=True)
class AnnotationList(Result):
    """What a list for other tools has, and what it does not say.

    Attributes:
        directory: Its folder.
        format: Its form.
        images: Number of its images.
        objects: Number of its objects.
        classes: Its classes with their numbers.
        unsaid: How many of what it does not say there are: `unknown` (images that nobody looked
            at), `silent` (that the detector did not look at), `crowds`, `difficult`, `areas`,
            `ids`, `turned` and `rejected`.
    """

    directory: str
    format: str
    images: int
    objects: int
    classes: dict[str, int]
    unsaid: dict[str, int] = field(default_factory=dict)

    def describe(self) -> Outcome:
        """Returns the counts, and what is not said, a line for each."""
        said = ((count, *_SAYS[name]) for name, count in self.unsaid.items())
        lines = [f"{format_count(count, noun)} {text}" for count, noun, text in said]
        facts = [Fact("Images", f"{self.images:,}"), Fact("Objects", f"{self.objects:,}")]
        classes = [f"{number} {label}" for label, number in self.classes.items()]
        facts += [Fact("Classes", list_first(classes))]
        facts += [Fact("Not said", "\n".join(lines))] if lines else []
        return Outcome("List", [f"Wrote {self.directory}.", *facts])


@storage.report_failures
@progress.shown
def write_annotations(
    directory: storage.UserPath,
    folder: storage.UserPath,
    format: str,
    output_dir: storage.UserPath | None = None,
    *,
    results: storage.UserPath | None = None,
    annotations: storage.UserPath | None = None,
    min_score: float = 0.3,
) -> AnnotationList:
    """Writes the objects of a dataset as a list that other tools read.

    Boxes are in images as they are shown, upright. `darkroom.convert` reads the list again, and
    gives equal objects, but for what the form cannot say, which is counted.

    Args:
        directory: A dataset with boxes.
        folder: Folder of the list, without files in it: `instances_SPLIT.json` (COCO), `data.yaml`
            (YOLO), or `Annotations`, `ImageSets` and `labels.txt` (Pascal VOC).
        format: `coco`, `voc` or `yolo`.
        output_dir: Folder to write the images to, as records have them, best `folder`. None for
            a list that names them by their paths, which YOLO cannot have.
        results: What a detector says, as for `darkroom.evaluate`: its boxes are written in place of
            the objects, for people who correct them, of the splits that it is about.
        annotations: The file of COCO that the detector had, or `labels.txt`, as for
            `darkroom.evaluate`.
        min_score: The least score of a result that is written, 0 to 1.

    Returns:
        The counts.

    Raises:
        UsageError: The form is unknown or needs `output_dir`, the dataset has no boxes, or
            `min_score` is not from 0 to 1.
        DataError: There is no dataset in the folder, or it is damaged.
        OutputError: A folder has files, or is in the dataset.
        OSError: A file cannot be read or written.
    """
    check_known([format], FORMS, "Lists are not written as")
    check_number("min_score", as_python(min_score), 0, 1)
    source, target = find_named_data(directory), storage.absolute(folder)
    images = None if output_dir is None else storage.absolute(output_dir)
    for place in filter(None, (target, images)):
        check_outside(source, place, "The list")
        # What people corrected there is theirs.
        ledger.check_alone(place, (), "Choose a folder without files: a list is never replaced.")
    dataset, form = open_dataset(source), FORMS[format]
    hint = "Write JSON Lines: leave out --format."
    check_boxes(dataset, source, f"A list of {format} has boxes", hint)
    if images is None and form.needs_images:
        raise UsageError(
            f"A list of {format} finds labels by the places of images.",
            "Name the folder for both: --output-dir DIR (output_dir= in Python).",
        )
    plan = _Plan(source, dataset, form, target, images)
    unsaid, counts = Counter[str](), Counter[str]()
    read_as = read_read_as(source)
    index = read_index(Folders.of_dataset(source).index, _COLUMNS)
    if results is None:
        unsaid[_REJECTED] = dataset.objects.rejected if dataset.objects else 0
    else:
        files = DetectorFiles.of(results, annotations)
        found, is_looked = read_detections(files, index, dataset.labels, read_as)
        found = found.take(found.score >= min_score)
        labels = make_labels(found, is_looked, index, dataset.labels)
        index = index.drop(["label", "listed"]).append_column("label", labels)
    classes = form.number(dataset.labels, read_as.class_ids if read_as else {})
    with progress.step("Writing the list"):
        spelled = _count(_spell(index, plan, unsaid), counts)
        for path, data in form.build(spelled, classes, unsaid):
            _write_file(storage.join(target, path), data)
    if results is not None:
        unsaid[_SILENT] = unsaid.pop(Unsaid.UNKNOWN, 0)
    said = {name: unsaid[name] for name in _SAYS if unsaid[name]}
    return AnnotationList(target, format, counts[_IMAGES], counts[_OBJECTS], classes, said)


@dataclass(frozen=True)
class _Plan:
    """What is written.

    Attributes:
        source: The folder of the dataset.
        dataset: Its commit.
        form: The form of the list.
        folder: The folder of the list.
        images: That of the images; None if they are named by their paths.
    """

    source: str
    dataset: Dataset
    form: ListForm
    folder: str
    images: str | None


def _count(images: Iterator[ListedImage], counts: Counter[str]) -> Iterator[ListedImage]:
    for each in images:
        counts[_IMAGES] += 1
        counts[_OBJECTS] += len(each.objects or ())
        yield each


def _spell(index: pa.Table, plan: _Plan, unsaid: Counter[str]) -> Iterator[ListedImage]:
    """Yields the images in the order of the source; writes them, if they have a folder."""
    rows = _place(index, plan)
    if plan.images:
        _write_images(rows, plan)
    else:
        unsaid[_TURNED] += pc.sum(pc.match_substring(index["changes"], "orientation")).as_py() or 0
    # Records are in the order of their hashes.
    order = pc.sort_indices(index["row"])
    for start in range(0, len(order), BATCH_ROWS):
        yield from spell_images(rows.take(order[start : start + BATCH_ROWS]), plan.form, unsaid)


def _place(index: pa.Table, plan: _Plan) -> pa.Table:
    """Returns the columns that `spell_images` takes, of the images that the list names."""
    splits, uris, keys, kinds = (
        index[name].to_pylist() for name in ("split", "uri", "key", "format")
    )
    splits = [_SPLITS.get(each, each) for each in splits]
    folders = [plan.form.images.format(split=each) for each in splits]
    names = name_uniquely(folders, uris, keys)
    if plan.images:
        endings = (".jpg" if each == JPEG else ".png" for each in kinds)
        files = map("{}/{}{}".format, folders, names, endings)
        uris = [storage.join(plan.images, each) for each in files]
    first = "" if plan.images else "source_"
    width, height, *stored = (index[f"{each}{side}"] for each in (first, "") for side in _SIDES)
    pixels = [pc.multiply(*each).cast(pa.float64()) for each in ((width, height), stored)]
    kept = {name: index[name] for name in _KEPT if name in index.column_names}
    sides = {"width": width, "height": height, "growth": pc.divide(*pixels)}
    seen = [relative_identity(uri, plan.folder) for uri in uris]
    placed = pa.table({**kept, "path": seen, "name": names, "split": splits, **sides})
    return placed.combine_chunks()


def _write_images(rows: pa.Table, plan: _Plan) -> None:
    """Writes the images that are in the list, each from its record."""
    paths, is_known = rows["path"].to_pylist(), rows["label"].is_valid().to_pylist()
    files = (storage.join(plan.source, shard.file) for shard in plan.dataset.shards)
    records = chain.from_iterable(map(read_records, files))
    for path, is_annotated, record in zip(paths, is_known, records, strict=True):
        if is_annotated or Unsaid.UNKNOWN not in plan.form.unsaid:
            _write_file(storage.join(plan.folder, path), encode_stored(decode_example(record)))


def _write_file(path: str, data: bytes) -> None:
    storage.make_folder(path.rpartition("/")[0])
    with storage.open_write(path) as file:
        file.write(data)
