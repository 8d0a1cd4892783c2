"""The objects of a dataset as a list that other tools read: COCO, YOLO or Pascal VOC."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa
import pyarrow.compute as pc

from darkroom import storage
from darkroom.dataset.commit import Dataset
from darkroom.dataset.example import decode_example
from darkroom.dataset.index import read_index
from darkroom.dataset.layout import REJECTS_LIST_FILE, Folders
from darkroom.dataset.named import find_named
from darkroom.dataset.opening import check_outside, open_dataset
from darkroom.dataset.pointer import find_data
from darkroom.dataset.splits import EVAL, list_below
from darkroom.dataset.tfrecord import read_records
from darkroom.errors import UsageError
from darkroom.images.headers import JPEG
from darkroom.images.pixels import encode_stored
from darkroom.options.checks import check_known
from darkroom.runtime import progress
from darkroom.runtime.result import Fact, Outcome, Result
from darkroom.runtime.text import format_count
from darkroom.sidecars.described import Described
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
from darkroom.storage.uris import relative_identity
from darkroom.targets.boxes.results import RESULT_COLUMNS, read_detections

FORMS = {"coco": COCO, "voc": VOC, "yolo": YOLO}

_TURNED, _REJECTED = "turned", "rejected"
_IMAGES, _OBJECTS = "images", "objects"
# How many of what is not said, and what is said of them.
_SAYS = {
    Unsaid.UNKNOWN: (
        "image",
        "that nobody looked at left out: in this form, it would say that nothing is there",
    ),
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
_COLUMNS = (*_KEPT, *_SIDES, "source_width", "source_height", "uri", "split", "changes", "format")


@dataclass(frozen=True)
class AnnotationList(Result):
    """What a list for other tools has, and what it does not say.

    Attributes:
        directory: Its folder.
        format: Its form.
        images: Number of its images.
        objects: Number of its objects.
        unsaid: How many of what it does not say there are: `unknown` (images that nobody looked
            at), `crowds`, `difficult`, `areas`, `ids`, `turned` and `rejected`.
    """

    directory: str
    format: str
    images: int
    objects: int
    unsaid: dict[str, int] = field(default_factory=dict)

    def describe(self) -> Outcome:
        """Returns the counts, and what is not said, a line for each."""
        said = ((count, *_SAYS[name]) for name, count in self.unsaid.items())
        lines = [f"{format_count(count, noun)} {text}" for count, noun, text in said]
        facts = [Fact("Images", f"{self.images:,}"), Fact("Objects", f"{self.objects:,}")]
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
        annotations: The file of COCO that the detector had.
        min_score: The least score of a result that is written.

    Returns:
        The counts.

    Raises:
        UsageError: The form is unknown or needs `output_dir`, or the dataset has no boxes.
        DataError: There is no dataset in the folder, or it is damaged.
        OutputError: A folder has files, or is in the dataset.
        OSError: A file cannot be read or written.
    """
    check_known([format], FORMS, "Lists are not written as")
    source, target = find_data(find_named(directory)), storage.absolute(folder)
    images = None if output_dir is None else storage.absolute(output_dir)
    for place in filter(None, (target, images)):
        check_outside(source, place, "The list")
        # What people corrected there is theirs.
        ledger.check_alone(place, (), "Choose a folder without files: a list is never replaced.")
    dataset, form = open_dataset(source), FORMS[format]
    if dataset.objects is None:
        raise UsageError(
            f"{source} is labelled with {dataset.target.kind}, and a list of {format} has boxes.",
            "Write JSON Lines: leave out --format.",
        )
    if images is None and form.needs_images:
        raise UsageError(
            f"A list of {format} finds labels by the places of images.",
            "Name the folder for both: --output-dir DIR (output_dir= in Python).",
        )
    plan = _Plan(source, dataset, form, target, images)
    unsaid = Counter({_REJECTED: dataset.objects.rejected if results is None else 0})
    if results is not None:
        detected = _read_detected(plan, results, annotations, min_score)
        plan = replace(plan, detected=detected)
    with progress.step("Writing the list"):
        counts = _write_list(plan, unsaid)
    found = {name: unsaid[name] for name in _SAYS if unsaid[name]}
    return AnnotationList(target, format, counts[_IMAGES], counts[_OBJECTS], found)


@dataclass(frozen=True)
class _Plan:
    """What is written.

    Attributes:
        source: The folder of the dataset.
        dataset: Its commit.
        form: The form of the list.
        folder: The folder of the list.
        images: That of the images; None if they are named by their paths.
        detected: Objects of a detector in place of those of the index.
    """

    source: str
    dataset: Dataset
    form: ListForm
    folder: str
    images: str | None
    detected: pa.ListArray | None = None

    @property
    def index(self) -> str:
        """The folder of the index."""
        return Folders.of_dataset(self.source).index

    def name_file(self, split: str, name: str, kind: str) -> str:
        """Returns the path of the file for an image."""
        ending = ".jpg" if kind == JPEG else ".png"
        folder = self.form.images.format(split=split)
        return storage.join(f"{self.images}", folder, f"{name}{ending}")


def _write_list(plan: _Plan, unsaid: Counter[str]) -> Counter[str]:
    """Writes the list; returns how many images and objects it has."""
    counts: Counter[str] = Counter()
    tables = _read_tables(plan, unsaid)
    images = (each for table in tables for each in spell_images(table, plan.form, unsaid))
    for path, data in plan.form.build(_count(images, counts), plan.dataset.labels, unsaid):
        _write_file(storage.join(plan.folder, path), data)
    return counts


def _count(images: Iterator[ListedImage], counts: Counter[str]) -> Iterator[ListedImage]:
    for each in images:
        counts[_IMAGES] += 1
        counts[_OBJECTS] += len(each.objects or ())
        yield each


def _read_detected(
    plan: _Plan, results: storage.UserPath, annotations: storage.UserPath | None, min_score: float
) -> pa.ListArray:
    """Returns the column of objects with those that a detector found."""
    index, labels = read_index(plan.index, [*RESULT_COLUMNS, *PLACE_COLUMNS]), plan.dataset.labels
    known = None if annotations is None else storage.absolute(annotations)
    found = read_detections(storage.absolute(results), index, labels, known)
    return make_labels(found.take(found.score >= min_score), index, labels)


def _read_tables(plan: _Plan, unsaid: Counter[str]) -> Iterator[pa.Table]:
    """Yields the index as `spell_images` takes it; writes the images, if they have a folder."""
    columns = read_index(plan.index, ["uri", "key"])
    paths = list_below(columns["uri"].to_pylist())
    names = name_uniquely(paths, columns["key"].to_pylist())
    start = 0
    for shard, tables in Described(plan.dataset, plan.index).read_index(_COLUMNS):
        records = read_records(storage.join(plan.source, shard.file)) if plan.images else iter(())
        for table in tables:
            stop = start + len(table)
            if plan.detected is not None:
                own = plan.detected[start:stop]
                table = table.drop(["label", "listed"]).append_column("label", own)
            rows = _place(table, names[start:stop], plan)
            if plan.images:
                _write_images(rows, records, plan)
            else:
                changes = table["changes"].to_pylist()
                unsaid[_TURNED] += sum("orientation" in each for each in changes)
            yield rows
            start = stop


def _place(table: pa.Table, names: Sequence[str], plan: _Plan) -> pa.Table:
    """Returns the columns that `spell_images` takes, of the images that the list names."""
    splits = [_SPLITS.get(each, each) for each in table["split"].to_pylist()]
    paths = table["uri"].to_pylist()
    if plan.images:
        kinds = table["format"].to_pylist()
        paths = [*map(plan.name_file, splits, names, kinds)]
    first = "" if plan.images else "source_"
    width, height, *stored = (table[f"{each}{side}"] for each in (first, "") for side in _SIDES)
    pixels = [pc.multiply(*each).cast(pa.float64()) for each in ((width, height), stored)]
    kept = {name: table[name] for name in _KEPT if name in table.column_names}
    sides = {"width": width, "height": height, "growth": pc.divide(*pixels)}
    seen = [relative_identity(path, plan.folder) for path in paths]
    return pa.table({**kept, "path": seen, "name": [*names], "split": splits, **sides})


def _write_images(rows: pa.Table, records: Iterator[bytes], plan: _Plan) -> None:
    """Writes the images that are in the list, each from its record."""
    is_known = rows["label"].is_valid().to_pylist()
    for path, is_annotated in zip(rows["path"].to_pylist(), is_known, strict=True):
        record = next(records)
        if is_annotated or Unsaid.UNKNOWN not in plan.form.unsaid:
            _write_file(storage.join(plan.folder, path), encode_stored(decode_example(record)))


def _write_file(path: str, data: bytes) -> None:
    storage.make_folder(path.rpartition("/")[0])
    with storage.open_write(path) as file:
        file.write(data)
