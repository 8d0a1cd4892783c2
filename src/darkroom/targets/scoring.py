"""What every kind of target says about the answers of a model, loaded when something is scored.

Numbers are plain NumPy. Whatever shows them, a page, a card, a terminal, TensorBoard or a UI, asks
for the same texts and tables.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any, NamedTuple, Protocol

from darkroom.targets.learned import Learned


class Metrics(Protocol):
    """How good a model is: a dataclass of values for JSON.

    Attributes:
        records: Number of records that are annotated.
    """

    records: int


class Table(NamedTuple):
    """A table of texts.

    Attributes:
        title: What it shows.
        header: The names of its columns.
        rows: Its rows.
    """

    title: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]


class Scoring(Protocol):
    """What the answers of a model say, for one kind of target.

    Attributes:
        metrics: The dataclass of its numbers.
        score_name: The name of the one number that decides: accuracy, mean average precision, R².
        images_key: Which output of the signature for image files has a row of numbers an image.
        records_key: The same of the signature for records.
    """

    metrics: type[Any]
    score_name: str
    images_key: str
    records_key: str

    def match(self, truth: Any, names: Sequence[str], learned: Learned) -> Any:
        """Returns what images are labelled with in the numbers of the model.

        Args:
            truth: The tensors of the images, as `Learning.make_array` has them.
            names: The label map of the data, or the names of its numbers.
            learned: What the model answers.

        Raises:
            DataError: The model does not know one of the names.
        """

    def check(self, answers: Any, folder: str, *, from_logits: bool = False) -> Any:
        """Returns what the model says of each image, float [N, C], after a check.

        Raises:
            DataError: The answers are not what they should be.
        """

    def measure(self, answers: Any, truth: Any, learned: Learned) -> Metrics:
        """Compares answers with the truth; images that are not annotated do not count."""

    def get_score(self, metrics: Any) -> float:
        """Returns the one number that decides: the higher the better."""

    def list_scalars(self, metrics: Any) -> Mapping[str, float]:
        """Returns the numbers that a UI shows, by name."""


def find_scoring(kind: str) -> Scoring:
    """Returns what a kind says about scores."""
    scoring: Scoring = import_module(f"darkroom.targets.{kind}.scoring").SCORING
    return scoring
