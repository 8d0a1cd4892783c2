"""What every kind of target says about itself, and where the kinds are found."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache
from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from darkroom.errors import DataError, RejectError
from darkroom.targets.form import Form, as_text

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa

    from darkroom.targets.arrays import Targets
    from darkroom.targets.description import Filter, Shape
    from darkroom.targets.geometry import Matrix, Placement

KINDS = ("label", "labels", "numbers", "boxes")
# Windows that lose most of an image need more epochs and images than most trainings have.
USUAL_AUGMENTATION = "flip"
# Most sources repeat a few texts; where all differ, they must not fill memory.
MAX_KNOWN = 65_536
_KEYS = (str, int)


class Lost(NamedTuple):
    """An object of an image that is rejected, while the image is not.

    Attributes:
        value: The target as the list says it, with this object alone.
        fault: Why it cannot be used.
    """

    value: Any
    fault: RejectError


class Parsed(NamedTuple):
    """What the cells of rows hold.

    Attributes:
        values: The targets of the rows without a fault, in their order; None where there is none.
        faults: Why the others cannot be used, by their places.
        lost: The objects of rows that cannot be used, by the places of the rows.
    """

    values: Sequence[Any]
    faults: Mapping[int, RejectError]
    lost: Mapping[int, Sequence[Lost]] = MappingProxyType({})


class Placed(NamedTuple):
    """A target as a record has it.

    Attributes:
        value: The target, as `list_values` gives it of the column `label` of an index.
        numbers: The numbers of its names.
        listed: The same as the list says it, for kinds that are listed otherwise.
        lost: Its objects that are not in the image.
        merged: How many of its objects equal others of it, and are left out.
        cut: How many were cut at the edge of the image, by less than what loses them.
    """

    value: Any
    numbers: Any
    listed: Any = None
    lost: Sequence[Lost] = ()
    merged: int = 0
    cut: int = 0


class TargetKind(Protocol):
    """A kind of target. Its value is None when an image is not annotated.

    Attributes:
        name: Its name, in `dataset.json`.
        version: The version of how it makes records of what a list says. `dataset.json` has it from
            2 on, and an update takes no record of another one.
        column: Type of the column `label` in the index. It tells the kind, so no two kinds
            have the same. TFDV has no statistics of bool: take int64.
        listed: Type of the column `label` in a manifest, which the index then has as `listed`:
            places as the list says them. None: both have the same.
        features: Types of its features in a record, by name.
        shown: The one of them that has what the column has.
        says: SQL of the text that all rows of an image must have in common, of the column `label`
            of a manifest.
        joined: SQL that makes one target of those of several rows of an image, in the column
            `label` of a manifest; None if all have the same.
        parts: SQL of the list of what rows are joined from, of their column `{column}`: equal parts
            of an image count once; None if all rows have the same.
        same: SQL of what two rows have in common if they say the same, of their column `{column}`.
        objects: SQL of the list of objects in the column `{column}` of a manifest, each of which
            may be lost alone; None for a target that is whole.
        image_id: SQL of the id that the list has for an image, text in the column `{column}` of a
            manifest. Records then have a number as `image/source_id`; None: they have the key.
        identified: SQL of the column `label` of a manifest with the id `{image_id}`.
        names: SQL that makes a row of each name in the column `{column}` of an index; None without
            a label map.
        augmentation: The random augmentation of training images where none is named.
        moves: Whether targets say places in an image, and so move with its pixels.
        is_learned: Whether models of darkroom learn it, and features of images foretell it.
        summary: SQL of a table for people, besides the number of images of each name: it reads
            what that of a `TargetCheck` reads; None for no table.
        value_column: The column of the views of an index that has the value; `label` has its text.
        told: SQL of the text for people, of the columns `label` and `label_list`.
        said: SQL of what is the same for images that are labelled with the same, of both.
        changes: SQL of the objects that are not the same in images of two datasets: it reads the
            tables `old`, `new` and `pairs` of `darkroom.validation.diff`. Its rows have `change`,
            which is one of `OBJECT_CHANGES` there, and those of a finding.
        differs: SQL by the name of what differs of images that are labelled with the same, where
            the columns `label` of the tables `old` and `new` are not equal.
        lists: Those of `features` that hold any number of values.
        filters: What of `measure` people may choose images by.
        relabels: How many labels a decision gives an image: `one`, `several`, or "" where none can.
    """

    name: str
    version: int = 1
    column: pa.DataType
    listed: pa.DataType | None = None
    features: Mapping[str, str]
    shown: str
    says: str
    joined: str | None = None
    parts: str | None = None
    same: str = "{column}"
    objects: str | None = None
    image_id: str | None = None
    identified: str = "label"
    names: str | None
    augmentation: str = USUAL_AUGMENTATION
    moves: bool = False
    is_learned: bool = True
    summary: str | None = None
    value_column: str = "label_list"
    told: str = "label"
    said: str = "label"
    lists: Collection[str] = ()
    relabels: str = ""
    filters: Sequence[Filter] = ()
    changes: str | None = None
    differs: Mapping[str, str] = MappingProxyType({"label": "TRUE"})

    def list_names(self, values: pa.Array) -> pa.ListArray:
        """Returns the names in each value of a column, list<string> [N]: no name twice.

        A value that is null has null.
        """

    def parse(self, columns: Sequence[Sequence[Any]], form: Form) -> Parsed:
        """Returns the targets that the cells of rows hold.

        Args:
            columns: The cells of each column: texts, numbers, lists of values, or what else a
                source gives for the kind.
            form: How they hold it.
        """
        known = find_memory(self.name, form)
        values = recall(known, columns[0]) if len(columns) == 1 else [None] * len(columns[0])
        faults: dict[int, RejectError] = {}
        for place in [place for place, value in enumerate(values) if value is None]:
            cell, *more = cells = [column[place] for column in columns]
            try:
                if not isinstance(cell, list | dict):
                    cells = [as_text(each) for each in cells]
                values[place] = self.parse_row(cells, form)
            except RejectError as error:
                faults[place] = error
                continue
            if not more and type(cell) in _KEYS and len(known) < MAX_KNOWN:
                known[cell] = values[place]
        return Parsed([each for n, each in enumerate(values) if n not in faults], faults)

    def parse_row(self, cells: Sequence[Any], form: Form) -> Any:
        """Returns the target that the cells of a row hold.

        Args:
            cells: Texts, or one list of values.
            form: How they hold it.

        Raises:
            RejectError: They hold none, or a wrong one.
            TypeError: The kind parses many rows at once.
        """
        raise TypeError(f"{self.name} parses many rows at once")

    def number(self, values: pa.Array, label_map: pa.Array) -> tuple[pa.Array, pa.Array]:
        """Returns a column in the order of the numbers of its names, and these numbers."""

    def encode(self, value: Any, numbers: Any) -> dict[str, Any]:
        """Returns the features of a record by name.

        Args:
            value: The target, as in `Placed`.
            numbers: The numbers of its names.
        """

    def make_array(self, numbers: Sequence[Any], size: int) -> np.ndarray[Any, Any]:
        """Returns the targets of many images as a model learns them.

        Args:
            numbers: Of each image, what `number` gives; the target itself where that is nothing.
            size: How many labels or numbers there are.

        Returns:
            [N] or [N, size], as `darkroom.targets.learning.Learning` says.
        """

    def hold(
        self, values: pa.Array, numbers: pa.Array, size: int, sides: tuple[Any, Any]
    ) -> Targets:
        """Returns what many records are labelled with, to take batches of it.

        Args:
            values: The column of an index, in the order of `number`.
            numbers: Their numbers; the values themselves where they have none.
            size: How many labels or numbers there are.
            sides: Heights and widths of the stored images in pixels, int [N] each.
        """
        # Whoever lists the options needs no NumPy.
        from darkroom.targets.arrays import ArrayTargets

        return ArrayTargets(self.make_array, numbers, size)

    def follow(self, targets: Any, matrix: Matrix, size: tuple[Any, Any], options: Any) -> Any:
        """Returns the targets of a batch where they are in its views, if the kind `moves`.

        Args:
            targets: Those of the stored images, as `Targets.take` gives them.
            matrix: Where a point of each stored image is in its view, in pixels: numbers, or [B].
            size: (height, width) of the views in pixels: numbers, or int [B].
            options: What has the options of `InputOptions` for it, such as `min_visible`.
        """
        return targets

    def find_wrong(self, column: pa.Array) -> int:
        """Returns the first row of an index whose target cannot be right; -1 if there is none.

        Args:
            column: The column `label`. Whether its names are known is asked elsewhere.
        """
        return -1

    def decode(self, features: Mapping[str, Sequence[Any]]) -> Any:
        """Returns the target of a record."""

    def place(self, value: Any, numbers: Any, image: Placement) -> Placed:
        """Returns the target of a stored image: the same, unless it says places.

        Args:
            value: The target as the list says it, as `list_values` gives it of a manifest.
            numbers: The numbers of its names.
            image: Where the pixels of the file went.

        Raises:
            RejectError: The list says another image.
        """
        return Placed(value, numbers)

    def count(self, value: Any) -> int:
        """Returns the number of objects in a target as a list says it."""
        return 0

    def show(self, value: Any) -> str:
        """Returns the target as text for people."""

    def measure(self, rows: pa.Table) -> Mapping[str, pa.Array]:
        """Returns what statistics count, by the name of a feature: a value, or a list, an image.

        Args:
            rows: The columns `label`, `height` and `width` of an index.
        """
        return {self.shown: rows["label"]}

    def list_shapes(self, value: Any, names: Sequence[str]) -> Sequence[Shape]:
        """Returns what is drawn over the image: nothing, unless the target says places.

        Args:
            value: The target.
            names: The label map, in which a class has the number of its color.
        """
        return ()

    @property
    def listed_type(self) -> pa.DataType:
        """Type of the column `label` in a manifest."""
        return self.column if self.listed is None else self.listed

    @property
    def listed_id(self) -> str:
        """SQL of the id that a list has for the image of a row of a manifest; null where none."""
        return (self.image_id or "NULL").format(column="label")

    @property
    def is_known(self) -> str:
        """SQL that tells whether the column `label` of a manifest has a target."""
        return f"{(self.objects or '{column}').format(column='label')} IS NOT NULL"

    @property
    def listed_names(self) -> str | None:
        """SQL that makes a row of each name in the column `label` of a manifest."""
        column = (self.objects or "{column}").format(column="label")
        return None if self.names is None else self.names.format(column=column)


@lru_cache(maxsize=8)
def find_memory(name: str, form: Form) -> dict[Any, Any]:
    """Returns what is known of cells of a form, which a kind adds to, by the cells."""
    return {}


def recall(known: Mapping[Any, Any], cells: Sequence[Any]) -> list[Any]:
    """Returns what is known of cells; None for others."""
    # 1 is equal to true.
    return [known.get(cell) if type(cell) in _KEYS else None for cell in cells]


def find_column_kind(column: pa.DataType) -> TargetKind:
    """Returns the kind of an index, by the type of its column `label`.

    Raises:
        DataError: No kind has such a column.
    """
    for kind in map(find_kind, KINDS):
        if kind.column == column:
            return kind
    raise DataError(
        f"No kind of target has an index with labels of the type {column}.",
        "List all faults with darkroom verify.",
    )


def find_kind(name: str) -> TargetKind:
    """Returns a kind by its name.

    Raises:
        DataError: There is no such kind.
    """
    if name not in KINDS:
        raise DataError(
            f"The images are labelled with {name!r:.80}, which this darkroom does not know.",
            f"It knows {', '.join(KINDS)}: read the data with a newer version.",
        )
    kind: TargetKind = import_module(f"darkroom.targets.{name}.kind").KIND
    return kind


def check_learned(name: str) -> None:
    """Checks that models of darkroom learn a kind.

    Raises:
        DataError: They do not.
    """
    if not find_kind(name).is_learned:
        raise DataError(
            f"The images are labelled with {name}, which darkroom's own models do not learn.",
            "Read the records with darkroom.load or darkroom.input.input_fn, and train a detector, "
            "as those of KerasHub or torchvision. In a pipeline of KFP, the component "
            "train_with_function calls your training.",
        )


def list_learned() -> list[str]:
    """Returns the names of the kinds that models of darkroom learn."""
    return [name for name in KINDS if find_kind(name).is_learned]
