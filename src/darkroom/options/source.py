"""How the rows of a source are read, as users say it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from darkroom.options.fields import SEED_HELP, document, option
from darkroom.targets.form import EMPTY_CELLS, ORIENTATIONS, UNANNOTATED

DEFAULT_SOURCE_ENCODING = "utf-8"
DEFAULT_SPLIT_RATIOS = "80/10/10"
# Of the splits, the order of records, and of training: one seed for all of them.
AUTO_LABEL, ONE_LABEL, MANY_LABELS = LABEL_KINDS = ("auto", "label", "labels")
REFUSE_MERGE, MERGE_FIRST = MERGES = ("refuse", "first")
# What darkroom decides about a source and may get wrong; see `darkroom.dataset.read_as`.
SPLIT_COLUMN, FIRST_LINE, NUMBER_ORDER = "split_column", "first_line", "number_order"
SPLIT_CLASS, TASK_CLASS, ONE_CLASS = "split_class", "task_class", "one_class"
SIMILAR_LABELS, FIRST_CLASS, CLASS_ORDER = "similar_labels", "first_class", "class_order"
SPLIT_NAMES, BOX_COLUMNS = "split_names", "box_columns"
POLYGON_BOXES, ODD_BOXES = "polygon_boxes", "odd_boxes"
NO_OBJECTS, UNUSED_LABELS = "no_objects", "unused_labels"
DOUBTS = (
    SPLIT_COLUMN,
    SPLIT_NAMES,
    BOX_COLUMNS,
    FIRST_LINE,
    NUMBER_ORDER,
    SPLIT_CLASS,
    TASK_CLASS,
    ONE_CLASS,
    SIMILAR_LABELS,
    FIRST_CLASS,
    CLASS_ORDER,
    POLYGON_BOXES,
    ODD_BOXES,
    NO_OBJECTS,
    UNUSED_LABELS,
)
JOIN_SUBFOLDERS, REJECT_SUBFOLDERS = SUBFOLDERS = ("label", "reject")
AUTO_FORMAT = "auto"
# Of annotations; see `darkroom.manifest.formats`.
SOURCE_FORMATS = (
    *(AUTO_FORMAT, "coco", "yolo", "voc", "tf_csv", "vertex", "automl", "label_studio"),
    "hugging_face",
)
DATA_HELP = (
    "CSV, JSONL or Parquet file, pattern of such files, folder of images, or annotations of boxes."
)


@document
@dataclass(frozen=True, kw_only=True)
class ParsedFields:
    """How the rows of a source are read: the options that are parsed."""

    columns: Mapping[str, str] | None = option(
        None,
        'Kind of each column by name, as in {"path": "image", "age": "integer"}.',
        group="data",
        metavar="JSON",
        shown="from the names of the columns",
        more="`darkroom.dataset.schema.Kind` lists the kinds.",
    )
    split_ratios: str | None = option(
        None,
        "Percentages of train, eval and test for rows that do not name a split.",
        group="data",
        metavar="TRAIN/EVAL/TEST",
        shown=DEFAULT_SPLIT_RATIOS,
        more="Where it is given, the names of lists, as train.csv, do not say the splits. Images "
        "of the dataset that is updated stay in theirs.",
        runtime=True,
    )


@document
@dataclass(frozen=True, kw_only=True)
class RowFields:
    """How the rows of a source are read: the options that stay as users say them."""

    group_column: str | None = option(
        None,
        "Column that names the group of a row, as a patient: rows of a group stay in one split.",
        group="data",
        metavar="NAME",
        more="Rows that say their split stay there. Those with an empty cell are in no group.",
    )
    groups: str | None = option(
        None,
        "List of groups that stay in one split: the file of `darkroom duplicates`.",
        group="data",
        metavar="FILE",
    )
    stratify: bool = option(
        False,
        "Give each split its share of each class, as split_ratios says; groups stay together.",
        group="data",
    )
    folds: int | None = option(
        None,
        "Number of folds, which a column `fold` numbers from 0; groups stay together.",
        group="data",
        least=2,
        most=100,
        metavar="NUMBER",
    )
    label_map: str | None = option(
        None,
        "Labels in the order of their numbers: a file with one label per line, data.yaml, a file "
        "of COCO, or a label map of TensorFlow (.pbtxt).",
        group="data",
        metavar="FILE",
        shown="labels sorted as text; classes of boxes in the order of the source",
    )
    seed: int = option(0, SEED_HELP, group="data", runtime=True)
    source_encoding: str = option(
        DEFAULT_SOURCE_ENCODING,
        "Text encoding of a CSV or JSONL file.",
        group="data",
        metavar="NAME",
    )
    format: str = option(
        AUTO_FORMAT,
        "Format of the annotations that the source is.",
        group="data",
        choices=SOURCE_FORMATS,
        more="`auto` knows it by its content, and takes all others for a list or a folder of "
        "images.",
    )
    image_dir: str | None = option(
        None,
        "Folder with the images that annotations name.",
        group="data",
        metavar="DIR",
        shown="beside the annotations, in a usual folder there or above, or below the source",
        more="Usual names are images, data, JPEGImages, and those of splits.",
    )
    voc_origin: int = option(
        0,
        "Number of the first pixel of a row in annotations of Pascal VOC: 1 subtracts one from all "
        "corners.",
        group="data",
        least=0,
        most=1,
        more="Tools write either, and no file says which: `Read as` has the smallest corner.",
    )
    label_kind: str = option(
        AUTO_LABEL,
        "Meaning of a text in the column of labels.",
        group="data",
        choices=LABEL_KINDS,
        more="With `label` each is one label. `auto` refuses texts that look like several labels "
        "in one, and numbers that look like no classes. With `labels` an image has any number of "
        "labels: in lists of JSON or Parquet, in several rows or folders, or in the columns of "
        "AutoML.",
    )
    label_separator: str | None = option(
        None,
        "Text between the labels in a cell, as ;: an image then has any number of labels.",
        group="data",
        metavar="TEXT",
        shown="one label a cell",
    )
    label_columns: tuple[str, ...] = option(
        (),
        "Columns that have 1 where an image has the label of their name, else 0.",
        group="data",
        metavar="NAME,...",
        shown="none",
    )
    target_columns: tuple[str, ...] = option(
        (),
        "Columns with numbers to predict, instead of labels.",
        group="data",
        metavar="NAME,...",
        shown="none",
    )
    span_column: str | None = option(
        None,
        "Column with a whole number: images of one span never share a shard with others.",
        group="data",
        metavar="NAME",
        shown="none",
        more="Images that come together, as in a week, then change few shards. Or the number is in "
        "the names of the lists: 'week-{SPAN}.csv'.",
    )
    empty_labels: str = option(
        UNANNOTATED,
        "Meaning of an empty cell where an image has any number of labels, or numbers.",
        group="data",
        choices=EMPTY_CELLS,
        more="`unannotated`: nobody has looked, and `load` gives NaN. `none`: it has none of the "
        "labels. `reject`: its row is rejected. An empty list, [], always means none.",
    )
    box_orientation: str | None = option(
        None,
        "Where boxes are in images that EXIF turns, if the list does not say it.",
        group="data",
        choices=ORIENTATIONS,
        shown="such images are rejected",
        more="`upright`: in the image as it is shown. `stored`: in the pixels of its file. A list "
        "with the width and height of a turned image says it itself.",
    )
    merge_rows: str = option(
        REFUSE_MERGE,
        "How to treat an image whose rows differ in further columns.",
        group="data",
        choices=MERGES,
        more="`first` keeps the row whose values come first in their order, wherever it is in the "
        "source.",
    )
    subfolders: str = option(
        JOIN_SUBFOLDERS,
        "How to treat images in folders below that of a label, as cat/persian/1.jpg.",
        group="data",
        choices=SUBFOLDERS,
        more="They have the `label` of the folder above, as in Keras; `reject` rejects them. "
        "Below a folder with the name of a split they are always rejected.",
    )
    accept: tuple[str, ...] = option(
        (),
        f"Doubts about the source that are accepted: {', '.join(DOUBTS)}.",
        group="data",
        metavar="NAME,...",
        shown="none",
        more="`Read as` and errors name them, and say what else settles them.",
    )
    allowed_roots: tuple[str, ...] = option(
        (),
        "Folders that may contain images; images elsewhere are rejected.",
        group="data",
        metavar="DIR",
        shown="any folder",
        flag="--allowed-root",
        more="Links are followed first. The reason is `outside_root`.",
    )
    exclude: str | None = option(
        None,
        "List of images to leave out: the file of `darkroom duplicates`, or keys or URIs.",
        group="data",
        metavar="FILE",
        more="Keys or URIs may be in a text, CSV or Parquet file. "
        "Excluded rows count as deduplicated.",
    )
    decisions: str | None = option(
        None,
        "Decisions of the gallery about images: to drop, relabel, move or ignore them.",
        group="data",
        metavar="FILE",
        more="What the gallery saves or copies, or lines of your own. Give the file in every run. "
        "Dropped rows count as excluded. Images whose bytes changed since are listed and left as "
        "they are.",
    )


@document
@dataclass(frozen=True, kw_only=True)
class SourceFields(RowFields, ParsedFields):
    """How the rows of a source are read; `ManifestOptions` is the parsed form.

    In Python `columns` may also be a `Schema`, `label_map` the labels themselves, `split_ratios`
    `SplitRatios`, and a path an `os.PathLike`.
    """
