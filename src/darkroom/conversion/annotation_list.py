"""The objects of a dataset as a list that other tools read: COCO, YOLO or Pascal VOC."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice

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
_COLUMNS = ("key", "uri", "split", "source_id", "label", "listed", "width", "height")
_COLUMNS += ("source_width", "source_height", "changes", "format")


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
    directory: str | os.PathLike[str],
    folder: str | os.PathLike[str],
    format: str,
    output_dir: str | os.PathLike[str] | None = None,
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
    dataset = open_dataset(source)
    if dataset.objects is None:
        raise UsageError(
            f"{source} is labelled with {dataset.target.kind}, and a list of {format} has boxes.",
            "Write JSON Lines: leave out --format.",
        )
    form = FORMS[format]
    if images is None and form.needs_images:
        raise UsageError(
            f"A list of {format} finds labels by the places of images.",
            "Name the folder for both: --output-dir DIR (output_dir= in Python).",
        )
    counts: Counter[str] = Counter()
    unsaid = Counter({_REJECTED: dataset.objects.rejected})
    with progress.step("Writing the list"):
        tables = _read_tables(source, dataset, form, target, images, unsaid)
        listed = (each for table in tables for each in spell_images(table, form, unsaid))
        for path, data in form.build(_count(listed, counts), dataset.labels, unsaid):
            _write_file(storage.join(target, path), data)
    found = {name: unsaid[name] for name in _SAYS if unsaid[name]}
    return AnnotationList(target, format, counts[_IMAGES], counts[_OBJECTS], found)


def _count(images: Iterator[ListedImage], counts: Counter[str]) -> Iterator[ListedImage]:
    for each in images:
        counts[_IMAGES] += 1
        counts[_OBJECTS] += len(each.objects or ())
        yield each


def _read_tables(
    source: str,
    dataset: Dataset,
    form: ListForm,
    folder: str,
    images: str | None,
    unsaid: Counter[str],
) -> Iterator[pa.Table]:
    """Yields the index as `spell_images` takes it; writes the images, if they have a folder."""
    index = Folders.of_dataset(source).index
    columns = read_index(index, ["uri", "key"])
    paths = list_below(columns["uri"].to_pylist())
    names = iter(name_uniquely(paths, columns["key"].to_pylist()))
    for shard, tables in Described(dataset, index).read_index(_COLUMNS):
        records = read_records(storage.join(source, shard.file)) if images else iter(())
        for table in tables:
            rows = {name: table[name].to_pylist() for name in ("uri", "split", "format", "changes")}
            rows["name"] = [*islice(names, len(table))]
            rows["split"] = [_SPLITS.get(each, each) for each in rows["split"]]
            if images:
                rows["path"] = [*_name_files(rows, form, images)]
                _write_images(rows["path"], records, table, form)
            else:
                unsaid[_TURNED] += sum("orientation" in each for each in rows["changes"])
                rows["path"] = rows["uri"]
            rows["path"] = [relative_identity(each, folder) for each in rows["path"]]
            yield _place(table, rows, is_source=not images)


def _name_files(rows: Mapping[str, list[str]], form: ListForm, images: str) -> Iterator[str]:
    """Yields the path of the file for the image of each record."""
    for split, name, kind in zip(rows["split"], rows["name"], rows["format"], strict=True):
        ending = ".jpg" if kind == JPEG else ".png"
        yield storage.join(images, form.images.format(split=split), f"{name}{ending}")


def _write_images(
    paths: Sequence[str], records: Iterator[bytes], table: pa.Table, form: ListForm
) -> None:
    """Writes the images that are in the list, each from its record."""
    is_known = table["label"].is_valid().to_pylist()
    for path, is_annotated in zip(paths, is_known, strict=True):
        record = next(records)
        if is_annotated or Unsaid.UNKNOWN not in form.unsaid:
            _write_file(path, encode_stored(decode_example(record)))


def _place(table: pa.Table, rows: Mapping[str, list[str]], *, is_source: bool) -> pa.Table:
    """Returns the columns that `spell_images` takes, with the sizes of the images as named."""
    width, height = (table[f"source_{n}" if is_source else n] for n in ("width", "height"))
    pixels = [
        pc.multiply(*each).cast(pa.float64())
        for each in ((width, height), (table["width"], table["height"]))
    ]
    kept = {name: table[name] for name in ("source_id", "label", "listed")}
    taken = {name: rows[name] for name in ("path", "name", "split")}
    sides = {"width": width, "height": height, "growth": pc.divide(*pixels)}
    return pa.table({**kept, **taken, **sides})


def _write_file(path: str, data: bytes) -> None:
    storage.make_folder(path.rpartition("/")[0])
    with storage.open_write(path) as file:
        file.write(data)
