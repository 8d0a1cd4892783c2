"""The kind of each column of a source: the split, the image, the label, an id, or a feature."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, NamedTuple

from darkroom.dataset.labels import SEE_FORMS
from darkroom.errors import DataError, UsageError
from darkroom.runtime.text import find_similar

IMAGE_PREFIX = "image/"
_INT64 = range(-(1 << 63), 1 << 63)
# Records have floats of 32 bits; numbers from here on would be rounded to infinity.
_FLOAT32_LIMIT = float.fromhex("0x1.ffffffp127")


class Kind(str, Enum):
    """The kinds of a column: tensorflow-recorder's types and ours.

    `LABELS` holds any number of labels, `LABEL_MARK` has 1 where an image has the label of its
    name, else 0, `TARGET` is a number to predict, and `OBJECTS` holds boxes. `SPAN` is a whole
    number: images of one span never share a shard with those of another one.
    """

    SPLIT = "split"
    IMAGE = "image"
    STRING_LABEL = "string_label"
    INTEGER_LABEL = "integer_label"
    LABELS = "labels"
    LABEL_MARK = "label_mark"
    TARGET = "target"
    OBJECTS = "objects"
    INTEGER = "integer"
    FLOAT = "float"
    STRING = "string"
    ID = "id"
    SPAN = "span"
    IGNORED = "ignored"


_INPUTS = (Kind.INTEGER, Kind.FLOAT, Kind.STRING)
_FORM = 'Write it as in {"path": "image", "species": "string_label"}'
# A column of these says alone what an image is labelled with; there are several of the others.
SINGLE_TARGETS = (Kind.STRING_LABEL, Kind.INTEGER_LABEL, Kind.LABELS, Kind.OBJECTS)
# The kind of target that columns hold; see `darkroom.targets`.
COLUMN_TARGETS = {
    Kind.STRING_LABEL: "label",
    Kind.INTEGER_LABEL: "label",
    Kind.LABELS: "labels",
    Kind.LABEL_MARK: "labels",
    Kind.TARGET: "numbers",
    Kind.OBJECTS: "boxes",
}

# Names that need no schema, compared in lower case.
KNOWN_NAMES = {
    Kind.SPLIT: ("split", "ml_use", "subset"),
    Kind.IMAGE: (
        "image_uri",
        "uri",
        "image",
        "image_path",
        "path",
        "file_name",
        "filename",
        "file",
    ),
    Kind.STRING_LABEL: ("label", "labels", "class", "category"),
    Kind.OBJECTS: ("objects",),
}


# Of boxes, in rows for one object each.
_CORNERS = ("xmin ymin xmax ymax", "x_min y_min x_max y_max", "x1 y1 x2 y2")
_SIZES = ("width height", "image_width image_height")
# Names that tools give to boxes which are read in no other way.
_OTHER_BOXES = (
    *("bbox", "boxes", "region_shape_attributes"),
    *("x y width height", "x y w h", "left top right bottom", "left top width height"),
    *("xmin ymin width height", "x_min y_min width height"),
)


class ObjectColumns(NamedTuple):
    """The names of the columns of a table with a row for each object.

    Attributes:
        image: That of the path of the image.
        split: That of the split; empty without one.
        size: Those of width and height of the image; none without them.
        label: That of the class.
        box: Those of the numbers of the box.
    """

    image: str
    split: str
    size: tuple[str, ...]
    label: str
    box: tuple[str, ...]

    @property
    def schema(self) -> Schema:
        """The columns of the image, and then those of the object, as AutoML has them in order."""
        split = [(self.split, Kind.SPLIT)] if self.split else []
        texts = [(name, Kind.STRING) for name in (*self.size, self.label, *self.box)]
        return Schema((*split, (self.image, Kind.IMAGE), *texts), self)


def find_object_columns(names: Sequence[str]) -> ObjectColumns | None:
    """Returns the columns of a table with a row for each object, by their names; None for others.

    Those of the size and of the split may be absent.
    """
    image = _find_together(names, *KNOWN_NAMES[Kind.IMAGE], "image_id")
    label = _find_together(names, *KNOWN_NAMES[Kind.STRING_LABEL], "class_name")
    box = _find_together(names, *_CORNERS)
    if not (image and label and box):
        return None
    split = "".join(_find_together(names, *KNOWN_NAMES[Kind.SPLIT]))
    return ObjectColumns(image[0], split, _find_together(names, *_SIZES), label[0], box)


def find_boxes(names: Sequence[str]) -> tuple[str, ...]:
    """Returns the columns that seem to have boxes of objects, by their names; none if none do."""
    return _find_together(names, *_CORNERS, *_OTHER_BOXES)


def _find_together(names: Sequence[str], *choices: str) -> tuple[str, ...]:
    """Returns the columns of the first choice of names that are all there; none for none."""
    known = {name.strip().lower(): name for name in reversed(names)}
    found = (choice.split() for choice in choices if known.keys() >= {*choice.split()})
    return tuple(known[name] for name in next(found, ()))


@dataclass(frozen=True)
class Schema:
    """The kind of every column, in the order of the source.

    Attributes:
        columns: Pairs of column name and kind. At most one column each is the split, the image,
            the label, the id and the span.
        objects: What the columns have where each row is one object.
    """

    columns: tuple[tuple[str, Kind], ...]
    objects: ObjectColumns | None = None

    def __post_init__(self) -> None:
        """Checks the columns.

        Raises:
            UsageError: A column is named twice, two columns are of a kind that only one can be, a
                column has the name of one of our features, or there is no column to write.
        """
        names = [name for name, _ in self.columns]
        if repeated := sorted({name for name in names if names.count(name) > 1}):
            raise UsageError(
                f"The schema names columns twice: {repeated}.", "Name each column once."
            )
        for kinds in ((Kind.SPLIT,), (Kind.IMAGE,), SINGLE_TARGETS, (Kind.ID,), (Kind.SPAN,)):
            found = {name: kind for name, kind in self.columns if kind in kinds}
            if len(found) > 1:
                used = " or ".join(repr(kind.value) for kind in kinds if kind in found.values())
                raise UsageError(
                    f"Only one column can be of kind {used}, got {[*found]}.",
                    "Give the others another kind, or 'ignored'.",
                )
        targets = {kind for _, kind in self.columns if kind in COLUMN_TARGETS}
        if len(targets) > 1:
            raise UsageError(
                "An image is labelled in one way, but there are columns of the kinds "
                f"{', '.join(sorted(kind.value for kind in targets))}.",
                f"Give the columns of one way these kinds, and the others another one. {SEE_FORMS}",
            )
        if taken := [name for name, _ in self.inputs if name.startswith(IMAGE_PREFIX)]:
            raise UsageError(
                f"Columns {taken} would overwrite darkroom's own features.",
                f"Rename them, as names that begin with {IMAGE_PREFIX!r} are reserved, or leave "
                "them out: --columns with the others (columns= in Python).",
            )
        if self.image is None and not self.inputs:
            raise UsageError(
                f"The columns {self.to_json()} have neither an image nor an input column.",
                "Name one, as in {'image_uri': 'image'}.",
            )

    @property
    def split(self) -> str | None:
        """Name of the column of the split."""
        return self._single(Kind.SPLIT)

    @property
    def image(self) -> str | None:
        """Name of the column of the image's URI."""
        return self._single(Kind.IMAGE)

    @property
    def label(self) -> str | None:
        """Name of the column of the label, or of the labels."""
        return self._single(*SINGLE_TARGETS)

    @property
    def targets(self) -> tuple[str, ...]:
        """Names of the columns that say what an image is labelled with."""
        return tuple(name for name, kind in self.columns if kind in COLUMN_TARGETS)

    @property
    def target_kind(self) -> str:
        """The kind of target that they hold; `label` when there are none."""
        return next(
            (COLUMN_TARGETS[kind] for _, kind in self.columns if kind in COLUMN_TARGETS), "label"
        )

    @property
    def id(self) -> str | None:
        """Name of the column of the declared id."""
        return self._single(Kind.ID)

    @property
    def span(self) -> str | None:
        """Name of the column of the span."""
        return self._single(Kind.SPAN)

    @property
    def has_integer_labels(self) -> bool:
        """Whether labels are class numbers rather than names."""
        return any(kind is Kind.INTEGER_LABEL for _, kind in self.columns)

    @property
    def inputs(self) -> tuple[tuple[str, Kind], ...]:
        """Name and kind of the columns that become features under their own names."""
        return tuple((name, kind) for name, kind in self.columns if kind in _INPUTS)

    def _single(self, *kinds: Kind) -> str | None:
        return next((name for name, kind in self.columns if kind in kinds), None)

    def to_json(self) -> str:
        """Returns the schema as a JSON object from name to kind."""
        return json.dumps({name: kind.value for name, kind in self.columns})

    @classmethod
    def parse(cls, given: str | Mapping[str, Any] | Schema) -> Schema:
        """Returns the schema of a mapping from column name to kind, or of its JSON text.

        Raises:
            UsageError: A kind is unknown, or the columns do not make a schema.
        """
        if isinstance(given, Schema):
            return given
        hint = f"{_FORM}; kinds: {_list_kinds()}."
        try:
            mapping = json.loads(given) if isinstance(given, str) else given
        except (ValueError, RecursionError) as error:
            message = f"columns is {given!r:.200}, which is not JSON: {error}."
            raise UsageError(message, hint) from error
        if not isinstance(mapping, Mapping):
            message = f"columns is {given!r:.200}, expected the kind of each column by its name."
            raise UsageError(message, hint)
        return cls(tuple((str(name), _parse_kind(name, kind)) for name, kind in mapping.items()))


def _parse_kind(name: object, text: Any) -> Kind:
    try:
        return Kind(text)
    except ValueError:
        near = find_similar(str(text).lower(), [kind.value for kind in Kind])
        raise UsageError(
            f"Column {name!r} has the kind {text!r:.80}, which does not exist.",
            f"Did you mean {near!r}?" if near else f"Kinds: {_list_kinds()}.",
        ) from None


def _list_kinds() -> str:
    return ", ".join(kind.value for kind in Kind)


def infer_schema(names: Sequence[str], kinds: Mapping[str, Kind]) -> Schema:
    """Returns the schema of a source by the names of its columns.

    Args:
        names: Names of the columns.
        kinds: Kind of each column that is an input; text for columns that are not in it.

    Raises:
        DataError: No column has images, a name occurs twice, or a name is a likely misspelling
            of a known one.
    """
    _check_unique(names)
    # In JSON, half of a character can be alone; for Arrow, a NUL ends a name; DuckDB needs one.
    texts = {name: name.encode(errors="ignore").decode().replace("\0", "") for name in names}
    if odd := [name for name, text in texts.items() if not text or text != name]:
        raise DataError(
            f"The name of column {odd[0]!r} is empty, is not Unicode text, or has a NUL.",
            "Rename the column.",
        )
    _check_unambiguous(names)
    roles = {}
    for kind, known in KNOWN_NAMES.items():
        lowered = {name.strip().lower(): name for name in reversed(names)}
        found = next((lowered[name] for name in known if name in lowered), None)
        # A number of objects is a feature.
        if found and (kind is not Kind.OBJECTS or kinds.get(found, Kind.STRING) is Kind.STRING):
            roles[found] = kind
    for kind in KNOWN_NAMES.keys() - roles.values() - {Kind.OBJECTS}:
        _check_misspelt(kind, names, roles)
    return Schema(tuple((name, roles.get(name, kinds.get(name, Kind.STRING))) for name in names))


def _check_unambiguous(names: Sequence[str]) -> None:
    """Checks that no known name occurs twice, apart from letter case and white space."""
    seen: dict[str, str] = {}
    known = {name for names_of_kind in KNOWN_NAMES.values() for name in names_of_kind}
    for name in names:
        other = seen.setdefault(name.strip().lower(), name)
        if other != name and name.strip().lower() in known:
            raise DataError(
                f"Columns {other!r} and {name!r} have the same name except for letter case.",
                f"Rename one, or say which it is: --columns '{{\"{other}\": ..., ...}}' "
                "(columns= in Python).",
            )


def _check_misspelt(kind: Kind, names: Sequence[str], roles: Mapping[str, Kind]) -> None:
    """Checks a kind that no column has: images are required; a similar name is a typing error."""
    # Labels and splits may be missing, so only a very similar name counts.
    cutoff = 0.5 if kind is Kind.IMAGE else 0.8
    expected = KNOWN_NAMES[kind][0]
    others = {name.strip().lower(): name for name in names if name not in roles}
    found = find_similar(expected, others, cutoff)
    if kind is Kind.IMAGE and found is None:
        found = next((n for n in others if find_similar(n, KNOWN_NAMES[kind], 0.7)), None)
    if kind is not Kind.IMAGE and found is None:
        return
    near = None if found is None else others[found]
    what = {Kind.IMAGE: "image paths", Kind.SPLIT: "splits", Kind.STRING_LABEL: "labels"}[kind]
    guess = "" if near is None else f" Did you mean {near!r}?"
    columns = {name: role.value for name, role in roles.items()}
    columns["COLUMN" if near is None else near] = kind.value
    see = f" {SEE_FORMS}" if kind is Kind.STRING_LABEL else ""
    raise DataError(
        f"No column holds {what}: expected {expected!r}, found {list(names)}.{guess}",
        f"Rename the column, or name the kind of each: --columns '{json.dumps(columns)}' "
        f"(columns= in Python).{see}",
    )


def parse_input_value(text: str, kind: Kind) -> int | float | str | None:
    """Returns the value of an input cell; None when it is empty.

    Raises:
        ValueError: The cell does not contain a value of `kind`.
        OverflowError: It is larger than a record holds; the text says how large that is.
    """
    if kind is Kind.STRING:
        return text or None
    text = text.strip()
    if not text:
        return None
    if kind is Kind.FLOAT:
        value = float(text)
        if _FLOAT32_LIMIT <= abs(value) < math.inf:
            raise OverflowError("does not fit into a float of 32 bits")
        return value
    number = int(text)
    if number not in _INT64:
        raise OverflowError("does not fit into 64 bits")
    return number


@dataclass(frozen=True)
class Columns:
    """What a user says about the columns of a source.

    Attributes:
        schema: The kind of every column; inferred from their names when None.
        has_labels: Whether the column of the label holds any number of labels.
        label_marks: Columns that have 1 where an image has the label of their name, else 0.
        targets: Columns with numbers to predict.
        span: The column of the span.
    """

    schema: Schema | None = None
    has_labels: bool = False
    label_marks: tuple[str, ...] = ()
    targets: tuple[str, ...] = ()
    span: str | None = None

    @property
    def named_targets(self) -> dict[str, Kind]:
        """The kinds of the columns that are named and say what an image is labelled with."""
        said = self.schema.columns if self.schema else ()
        marks = dict.fromkeys(self.label_marks, Kind.LABEL_MARK)
        named = {name: kind for name, kind in said if kind in (Kind.LABEL_MARK, Kind.TARGET)}
        return {**named, **marks, **dict.fromkeys(self.targets, Kind.TARGET)}

    def spread(self, values: Sequence[Any]) -> dict[str, Any]:
        """Returns the cells of the columns of an image with these labels or numbers.

        In a list that darkroom wrote, a column with all labels is `label`.
        """
        if self.has_labels or (self.schema and Kind.LABELS in dict(self.schema.columns).values()):
            return {"label": values}
        named = self.named_targets
        marks = {name: int(name in values) for name in named if named[name] is Kind.LABEL_MARK}
        targets = [name for name in named if named[name] is Kind.TARGET]
        return {**marks, **dict(zip(targets, values, strict=False))}

    def find_schema(self, names: Sequence[str], kinds: Mapping[str, Kind]) -> Schema:
        """Returns the schema of a source.

        Args:
            names: Names of its columns.
            kinds: Kind of each column that is an input; text for columns that are not in it.

        Raises:
            DataError: A column is missing or there twice, or no column has images.
            UsageError: An image would be labelled in two ways.
        """
        if self == Columns() and (found := find_object_columns(names)):
            _check_unique(names)
            return found.schema
        schema = self.schema or infer_schema(names, kinds)
        check_columns(schema, names)
        targets = self.named_targets
        named = {**targets, **({self.span: Kind.SPAN} if self.span else {})}
        _check_present([*named], names, f"Name columns that the source has. {SEE_FORMS}")
        columns = {**dict(schema.columns), **named}
        if self.has_labels and schema.label:
            columns[schema.label] = Kind.LABELS
        elif targets and schema.label and self.schema is None:
            # Its name says that it has labels, and the user says that others are to be learned.
            columns[schema.label] = kinds.get(schema.label, Kind.STRING)
        return Schema(tuple(columns.items()))


def check_columns(schema: Schema, names: Sequence[str]) -> None:
    """Checks that a source has every column of its schema; other columns are ignored.

    Raises:
        DataError: A column is missing or there twice.
    """
    _check_unique(names)
    _check_present(
        [name for name, _ in schema.columns],
        names,
        "Rename the column, or name the columns of the source with --columns (columns= in Python).",
    )


def _check_present(expected: Sequence[str], names: Sequence[str], hint: str) -> None:
    if missing := [name for name in expected if name not in names]:
        near = find_similar(missing[0], names)
        guess = "" if near is None else f" Did you mean {near!r}?"
        raise DataError(
            f"Columns {missing} are missing: the source has {list(names)}.{guess}", hint
        )


def _check_unique(names: Sequence[str]) -> None:
    if repeated := sorted({name for name in names if names.count(name) > 1}):
        raise DataError(f"Columns occur twice: {repeated}.", "Give each column its own name.")
