"""What every kind of target says about the answers of a model, loaded when something is scored.

Numbers are plain NumPy. Whatever shows them draws the same `darkroom.targets.description`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from darkroom.errors import DataError
from darkroom.runtime.text import list_first
from darkroom.targets.description import Summary, View
from darkroom.targets.learned import Learned

Floats = npt.NDArray[np.floating[Any]]
Ints = npt.NDArray[np.int64]

# Images of a group on a page.
MAX_LISTED = 24


@dataclass(frozen=True)
class Prediction:
    """What a model says of an image.

    Attributes:
        path: Path or URI of the image.
    """

    path: str

    def list_cells(self) -> Mapping[str, Any]:
        """Returns the values of a row of a list of images, by column."""
        return {name: value for name, value in vars(self).items() if name != "path"}

    def list_names(self) -> Sequence[str]:
        """Returns the labels that a summary counts."""
        return ()


class Scores(Protocol):
    """What numbers say of how good a model is, for one kind of target.

    Attributes:
        metrics: The dataclass of its numbers, values for JSON. Its `records` counts the images that
            are annotated.
        names_are: What the names of a model are: labels, numbers or classes.
        score_name: The name of the one number that decides: accuracy, mean average precision, R².
        scalars: The fields of `metrics` that a UI shows. The first one decides.
        tfma_score: TFMA's name of that, where TFMA measures it itself; else it is empty.
        has_recalls: Whether the labels have a recall each, which may have a bound.
    """

    metrics: type[Any]
    names_are: str
    score_name: str
    scalars: tuple[str, ...]
    tfma_score: str = ""
    has_recalls: bool = False

    def get_score(self, metrics: Any) -> float:
        """Returns the one number that decides: the higher the better."""
        return float(getattr(metrics, self.scalars[0]))

    def list_scalars(self, metrics: Any) -> Mapping[str, float]:
        """Returns the numbers that a UI shows, by name."""
        return {name: getattr(metrics, name) for name in self.scalars}

    def list_properties(self, metrics: Any, where: str) -> Mapping[str, Any]:
        """Returns what the UI of Kubeflow draws besides, by the names that it knows.

        Args:
            metrics: The numbers.
            where: The split that they are of, as part of a sentence.
        """
        return {}

    def list_recalls(self, metrics: Any) -> Mapping[str, float | None]:
        """Returns the recall of each label, for bounds; None if no image has it."""
        return {}

    def summarize(self, metrics: Any, where: str) -> Summary:
        """Returns the numbers as texts.

        Args:
            metrics: The numbers.
            where: The split that they are of, as part of a sentence.
        """

    def show(self, answers: Any, truth: Any, learned: Learned) -> View:
        """Returns which images and charts a page shows."""


class Scoring(Scores, Protocol):
    """What the answers of a model say, for one kind of target.

    Attributes:
        outputs: The outputs of the signature for image files; the last one has a row of numbers an
            image.
        records_key: The output of the signature for records.
        number_format: How files show a number of a prediction.
        agree_on: What `agree` compares; empty for a kind whose answers are never the same.
    """

    outputs: tuple[str, ...]
    records_key: str
    number_format: str
    agree_on: str = ""

    def match(self, truth: Any, places: Ints, size: int) -> Any:
        """Returns what images are labelled with in the numbers of the model.

        Args:
            truth: The tensors of the images, as `TargetKind.make_array` has them.
            places: The number that each name of the data has in the model, int64.
            size: How many names the model has.
        """

    def check(self, answers: Floats, folder: str, *, from_logits: bool) -> Floats:
        """Returns what the model says of each image, [N, C], after a check.

        Args:
            answers: The output of the model, [N, C].
            folder: The folder of its SavedModel.
            from_logits: Whether it gives logits.

        Raises:
            DataError: The answers are not what they should be.
        """

    def agree(self, answers: Floats, others: Floats, learned: Learned) -> float | None:
        """Returns the share of images for which two models say the same; None if none can.

        Args:
            answers: What `check` returns for one, [N, C].
            others: The same for the other.
            learned: What both answer.
        """
        return None

    def measure(self, answers: Floats, truth: Any, learned: Learned) -> Any:
        """Compares answers with the truth; images that are not annotated do not count.

        Raises:
            DataError: No image is annotated.
        """

    def predict(
        self, paths: Sequence[str], answers: Floats, learned: Learned
    ) -> Sequence[Prediction]:
        """Returns what the model says of images.

        Args:
            paths: The N paths or URIs of the images.
            answers: What `check` returns for them, [N, C].
            learned: What the model answers.
        """


def find_scoring(kind: str) -> Scoring:
    """Returns what a kind says about scores."""
    scoring: Scoring = import_module(f"darkroom.targets.{kind}.scoring").SCORING
    return scoring


def match_names(names: Sequence[str], learned: Learned) -> Ints:
    """Returns the number that each name of a split has in the model.

    Args:
        names: The labels of the split, or the names of its numbers.
        learned: What the model answers.

    Raises:
        DataError: The model does not know one of them.
    """
    places = {name: number for number, name in enumerate(learned.names)}
    if strange := [name for name in names if name not in places]:
        what = find_scoring(learned.kind).names_are
        raise DataError(
            f"The records have {len(strange)} of {len(names)} {what} that the model does not "
            f"know: {list_first(strange)}. It knows {list_first(learned.names)}.",
            f"Evaluate the model on records with the {what} that it was trained on.",
        )
    return np.array([places[name] for name in names], np.int64)


def find_annotated(truth: Floats) -> npt.NDArray[np.bool_]:
    """Tells which images are annotated, bool [N]: those with a value that is known.

    Args:
        truth: [N, C]; NaN where it is not known.

    Raises:
        DataError: None is.
    """
    known = ~np.isnan(truth).all(axis=1)
    if not known.any():
        raise DataError(
            f"None of the {len(truth):,} images to score is annotated.",
            "Score a split whose images are.",
        )
    return np.asarray(known)


def count_unannotated(count: int, where: str) -> list[str]:
    """Returns a note on images that are not annotated; none if there are none."""
    return [f"Not annotated, and not scored: {count:,} records of {where}."] if count else []


def check_finite(answers: Floats) -> None:
    """Checks that the answers for images are finite numbers, [N, C].

    Raises:
        DataError: Some are not.
    """
    if wrong := int((~np.isfinite(answers)).any(axis=1).sum()):
        raise DataError(
            f"The model gives scores that are not finite numbers for {wrong:,} of {len(answers):,} "
            "images.",
            "Train again with a lower learning rate.",
        )
