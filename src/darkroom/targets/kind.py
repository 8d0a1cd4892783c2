"""What every kind of target says about itself, and where the kinds are found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol

from darkroom.errors import DataError
from darkroom.targets.checks import KINDS
from darkroom.targets.form import Form
from darkroom.targets.geometry import Matrix

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa

# Windows that lose most of an image need more epochs and images than most trainings have.
USUAL_AUGMENTATION = "flip"


class Kind(Protocol):
    """A kind of target. Its value is None when an image is not annotated.

    Attributes:
        name: Its name, in `dataset.json`.
        column: Type of the column `label` in manifest and index. It tells the kind, so no two kinds
            have the same. TFDV has no statistics of bool: take int64.
        features: Types of its features in a record, by name.
        shown: The one of them that has what the column has.
        says: SQL of the text that all rows of an image must have in common, of the column `label`;
            None if they may differ, and are joined.
        names: SQL that makes a row of each name in the column `{column}`; None without a label map.
        augmentation: The random augmentation of training images where none is named.
        summary: SQL of a table for people, besides the number of images of each name: it reads
            what that of a `TargetCheck` reads; None for no table.
    """

    name: str
    column: pa.DataType
    features: Mapping[str, str]
    shown: str
    says: str | None
    names: str | None
    augmentation: str = USUAL_AUGMENTATION
    summary: str | None = None

    def parse(self, cells: Sequence[Any], form: Form) -> Any:
        """Returns the target that the cells of a row hold; None if there is none.

        Args:
            cells: Texts, or one list of values.
            form: How they hold it.

        Raises:
            RejectError: They hold none, or a wrong one.
        """

    def number(self, values: pa.Array, label_map: pa.Array) -> tuple[pa.Array, pa.Array]:
        """Returns a column in the order of the numbers of its names, and these numbers."""

    def encode(self, value: Any, numbers: Any) -> dict[str, Any]:
        """Returns the features of a record by name.

        Args:
            value: The target.
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

    def decode(self, features: Mapping[str, Sequence[Any]]) -> Any:
        """Returns the target of a record."""

    def move(self, value: Any, matrix: Matrix, size: tuple[int, int]) -> Any:
        """Returns the target after the pixels moved: the same, unless it says places.

        Args:
            value: The target.
            matrix: Where points went.
            size: (height, width) of the image then.
        """
        return value

    def show(self, value: Any) -> str:
        """Returns the target as text for people."""


def find_column_kind(column: pa.DataType) -> Kind:
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


def find_kind(name: str) -> Kind:
    """Returns a kind by its name.

    Raises:
        DataError: There is no such kind.
    """
    if name not in KINDS:
        raise DataError(
            f"The images are labelled with {name!r:.80}, which this darkroom does not know.",
            f"It knows {', '.join(KINDS)}: read the data with a newer version.",
        )
    kind: Kind = import_module(f"darkroom.targets.{name}.kind").KIND
    return kind
