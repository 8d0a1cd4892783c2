"""Scores the images of a split with an exported model, and reads single ones again."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from darkroom.dataset import example
from darkroom.evaluation.scores.serving import ServedModel
from darkroom.images.pixels import encode_stored
from darkroom.images.source_images import SourceImages
from darkroom.runtime import progress
from darkroom.runtime.machine import count_cores
from darkroom.targets.learned import Learned
from darkroom.targets.scoring import Floats, match_names

if TYPE_CHECKING:
    from darkroom.input.source import ImageSource

_BATCH_SIZE = 64


@dataclass(frozen=True)
class Scored:
    """The answers of a model for the images of a split.

    Attributes:
        source: The images, in the order of the numbers below.
        answers: [N, C], what the model says of each image.
        truth: What each image is labelled with, in the numbers of the model.
        learned: What the model answers.
    """

    source: ImageSource
    answers: Floats
    truth: Any
    learned: Learned


class StoredImage(NamedTuple):
    """An image of a split.

    Attributes:
        name: Its file name or URI.
        data: The bytes of a JPEG, PNG or other file.
    """

    name: str
    data: bytes


def score_split(model: ServedModel, source: ImageSource, names: Sequence[str]) -> Scored:
    """Sends all images of a split through the model's own signature, as a server would.

    Args:
        model: The model.
        source: The images.
        names: Their label map, or the names of their numbers. The model may have another order.

    Raises:
        DataError: The model does not know a name, an image is damaged, or the answers of the model
            are not of its kind.
    """
    from darkroom.input.damage import explain_damage

    places = match_names(names, model.learned)
    total, done = source.count_images(), 0
    answers, truth = [], []
    with progress.step("Scoring"), explain_damage(source):
        for found, targets in _score_batches(model, source):
            answers.append(found)
            truth.append(targets)
            done += len(found)
            progress.advance(done, total, "images")
    matched = model.scoring.match(np.concatenate(truth), places, len(model.learned.names))
    return Scored(source, np.concatenate(answers), matched, model.learned)


def read_numbered_images(
    source: ImageSource, numbers: Collection[int]
) -> Iterator[tuple[int, StoredImage]]:
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
    """Returns a tensor for each image, in order: a serialised record, or the number of a file."""
    import tensorflow as tf

    from darkroom.options.input import InputOptions

    # The size of the images does not matter: the model decodes them.
    elements = source.make_elements(InputOptions(image_size=(1, 1), batch_size=1), None)
    settings = tf.data.Options()
    # There is nothing to tune, and the tuner's thread may outlive its iterator.
    settings.autotune.enabled = False
    return elements.with_options(settings)


def _score_batches(model: ServedModel, source: ImageSource) -> Iterator[tuple[Floats, Any]]:
    """Yields the answers and the truth of each batch."""
    import tensorflow as tf

    from darkroom.input.files import FileSource

    is_files = isinstance(source, FileSource)

    def parse(element: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        image = source.parse(element)
        return (image.encoded if is_files else element), image.label

    plain = tf.autograph.experimental.do_not_convert(parse)
    batches = _list_elements(source).map(plain, num_parallel_calls=count_cores())
    ask = model.answer_images if is_files else model.answer_examples
    for stored, targets in batches.batch(_BATCH_SIZE).prefetch(1):
        yield ask(stored), targets.numpy()
