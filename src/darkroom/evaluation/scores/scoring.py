"""Scores the images of a split with an exported model, and reads single ones again."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from darkroom.dataset import example
from darkroom.errors import DataError
from darkroom.evaluation.scores.metrics import Floats, Ints
from darkroom.evaluation.scores.serving import ServedModel
from darkroom.images.pixels import encode_stored
from darkroom.runtime import progress
from darkroom.runtime.text import list_first
from darkroom.validation.report.sources import SourceImages

if TYPE_CHECKING:
    from darkroom.input.source import ImageSource

_BATCH_SIZE = 64


@dataclass(frozen=True)
class Scored:
    """The scores of a model for the images of a split.

    Attributes:
        source: The images, in the order of the numbers below.
        scores: [N, C], the probabilities of the model's labels.
        truth: [N], the number that the label of each image has in the model.
    """

    source: ImageSource
    scores: Floats
    truth: Ints


class StoredImage(NamedTuple):
    """An image of a split.

    Attributes:
        name: Its file name or URI.
        data: The bytes of a JPEG, PNG or other file.
    """

    name: str
    data: bytes


def score_split(model: ServedModel, source: ImageSource, labels: Sequence[str]) -> Scored:
    """Sends all images of a split through the model's own signature, as a server would.

    Args:
        model: The model.
        source: The images.
        labels: Their label map. Its numbers may differ from the model's.

    Raises:
        DataError: The model does not know a label, an image is damaged, or the model does not give
            probabilities.
    """
    from darkroom.input.damage import explain_damage

    numbers = match_labels(labels, model.labels)
    total, done = source.count_images(), 0
    scores, truth = [], []
    with progress.step("Scoring"), explain_damage(source):
        for found, labels_found in _score_batches(model, source):
            scores.append(found)
            truth.append(labels_found)
            done += len(found)
            progress.advance(done, total, "images")
    return Scored(source, np.concatenate(scores), numbers[np.concatenate(truth)])


def match_labels(labels: Sequence[str], known: Sequence[str]) -> Ints:
    """Returns the number that each label of a split has in the model.

    Raises:
        DataError: The model does not know one of them.
    """
    places = {label: number for number, label in enumerate(known)}
    if strange := [label for label in labels if label not in places]:
        raise DataError(
            f"The records have {len(strange)} of {len(labels)} labels that the model does not "
            f"know: {list_first(strange)}. It knows {list_first(known)}.",
            "Evaluate the model on records with the labels that it was trained on.",
        )
    return np.array([places[label] for label in labels], np.int64)


def read_images(source: ImageSource, numbers: Collection[int]) -> Iterator[tuple[int, StoredImage]]:
    """Reads images of a split again: yields their numbers and them, one after the other.

    Files that are not read, as of a store that does not answer, have no bytes.
    """
    from darkroom.input.files import FileSource

    wanted = frozenset(numbers)
    if isinstance(source, FileSource):
        images = SourceImages()
        for number in sorted(wanted):
            uri = source.split.uris[number]
            yield number, StoredImage(uri, images.read(uri))
        return
    for number, record in enumerate(_list_elements(source).as_numpy_iterator()):
        if number in wanted:
            features: Any = example.decode_example(record)
            name: Any = next(iter(features.get(example.IMAGE_FILENAME, ())), b"")
            yield number, StoredImage(name.decode(errors="replace"), encode_stored(features))


def _list_elements(source: ImageSource) -> Any:
    import tensorflow as tf

    from darkroom.options.input import InputOptions

    # The size of the images does not matter: the model decodes them.
    elements = source.make_elements(InputOptions(image_size=(1, 1), batch_size=1), None)
    settings = tf.data.Options()
    # There is nothing to tune, and the tuner's thread may outlive its iterator.
    settings.autotune.enabled = False
    return elements.with_options(settings)


def _score_batches(model: ServedModel, source: ImageSource) -> Iterator[tuple[Floats, Ints]]:
    """Yields the scores and the label numbers of each batch."""
    import tensorflow as tf

    from darkroom.input.files import FileSource

    is_files = isinstance(source, FileSource)

    def parse(element: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        image = source.parse(element)
        return (image.encoded if is_files else element), image.label

    plain = tf.autograph.experimental.do_not_convert(parse)
    threads = len(os.sched_getaffinity(0))
    batches = _list_elements(source).map(plain, num_parallel_calls=threads)
    score = model.score_images if is_files else model.score_examples
    for stored, labels in batches.batch(_BATCH_SIZE).prefetch(1):
        yield score(stored), labels.numpy()
