"""Damage that is met while batches are read, told by errors that say what to do.

TensorFlow's own error names neither the file nor the record. Finding them takes another reading,
so nothing here costs anything before there is an error.
"""

from __future__ import annotations

import functools
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, ContextDecorator
from typing import Any

import tensorflow as tf

from darkroom import storage
from darkroom.dataset.example import IMAGE_FILENAME
from darkroom.errors import UsageError
from darkroom.input.files import FileSource, check_all_decodable
from darkroom.input.pipeline import list_elements
from darkroom.input.records import RecordSource
from darkroom.input.source import EpochOrder, ImageSource
from darkroom.options.input import InputOptions
from darkroom.runtime import progress

# The last one is the error of a dataset that has not as many batches as it had when it was opened.
_READ_ERRORS = (
    tf.errors.DataLossError,
    tf.errors.InvalidArgumentError,
    tf.errors.NotFoundError,
    tf.errors.FailedPreconditionError,
)


_NAME_FEATURES = {IMAGE_FILENAME: tf.io.FixedLenFeature([], tf.string, default_value="")}


class GuardedBatches(tf.data.Dataset):
    """Batches whose iterators explain damage. They are read as any dataset is.

    Attributes:
        source: The images that they are made of.
    """

    def __init__(self, batches: tf.data.Dataset, source: ImageSource) -> None:
        self._batches, self.source = batches, source
        super().__init__(tf.data.experimental.to_variant(batches))

    def __iter__(self) -> Any:
        """Returns an iterator. One that Keras gets stays one of TensorFlow's own kind."""
        iterator = super().__iter__()
        if tf.executing_eagerly():
            # Keras begins an iterator for each epoch.
            check_not_replaced(self.source)
            kind: Any = type(iterator)
            iterator.source, iterator.__class__ = self.source, _make_iterator_class(kind)
        return iterator

    @property
    def element_spec(self) -> Any:
        """The shapes and types of a batch."""
        return self._batches.element_spec

    def _inputs(self) -> list[tf.data.Dataset]:
        return [self._batches]


def explain_damage(
    *data: tf.data.Dataset | Mapping[str, tf.data.Dataset] | ImageSource,
) -> AbstractContextManager[None]:
    """Names the damaged images or records, if the block ends with an error.

    A Python loop over the batches of `load` and `input_fn` needs no such block. `model.fit` and
    loops in a `tf.function` do, because TensorFlow reads the batches there. It costs nothing if
    there is no error:

        with darkroom.input.explain_damage(data):
            model.fit(data["train"], validation_data=data["eval"])

    Args:
        data: The data of the block: the result of `load`, datasets of `input_fn` or datasets that
            were made from them, or open sources.

    Raises:
        DataError: The block ended with an error of TensorFlow, and some files cannot be decoded, a
            shard is missing or a record is damaged; or a dataset was replaced or deleted meanwhile.
        UsageError: `data` is not made from a darkroom dataset.
    """
    return _Explanation(data)


class _Explanation(ContextDecorator, AbstractContextManager[None]):
    """The block of `explain_damage`."""

    def __init__(self, data: Iterable[Any]) -> None:
        self._data = data

    @storage.report_failures
    def __enter__(self) -> None:
        self._sources = [source for each in self._data for source in _list_sources(each)]

    @storage.report_failures
    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, _READ_ERRORS):
            _check_images(self._sources)
        elif error is None:
            check_not_replaced(*self._sources)


@storage.report_failures
def check_not_replaced(*sources: ImageSource) -> None:
    """Checks that the datasets of sources are still those that were opened.

    Raises:
        DataError: One was replaced, or is gone.
    """
    for source in sources:
        if isinstance(source, RecordSource):
            source.check_not_replaced()


def name_batches(
    source: ImageSource, options: InputOptions, epoch: int, batches: range
) -> list[str]:
    """Returns the names of the images in some batches of an epoch, as far as there are names.

    Args:
        source: The images of all processes.
        options: How they become batches; those of a tf.data service have no order.
        epoch: Number of the epoch, from 0.
        batches: The numbers of the batches, from 0.
    """
    if options.service:
        return []
    part = source.select(options.shard) if options.shard_by == "file" else source
    elements = list_elements(source, part, options, EpochOrder(options.seed, epoch))
    size = options.batch_size
    chosen = elements.skip(batches.start * size).take(len(batches) * size)
    return _read_names(part, chosen.map(lambda _, element: element))


def name_images(source: ImageSource, options: InputOptions, numbers: Collection[int]) -> list[str]:
    """Returns the names of the images with some numbers, in the order of evaluation."""
    elements = source.make_elements(options, None)
    return [name for number, name in enumerate(_read_names(source, elements)) if number in numbers]


def _read_names(source: ImageSource, elements: tf.data.Dataset) -> list[str]:
    """Returns the path or the id of each image; an empty text where a record has none."""
    # A source that changes how often an image comes has the images themselves under this name.
    source = getattr(source, "images", source)

    def name(element: tf.Tensor) -> tf.Tensor:
        if isinstance(source, FileSource):
            return tf.gather(tf.constant(source.split.uris), element)
        return tf.io.parse_single_example(element, _NAME_FEATURES)[IMAGE_FILENAME]

    return [each.decode() for each in elements.map(name).as_numpy_iterator()]


def _check_images(sources: list[ImageSource]) -> None:
    """Raises one of our errors if images are the reason of TensorFlow's error."""
    for source in sources:
        if isinstance(source, RecordSource):
            with progress.step("Check the records"):
                source.check_records()
                source.check_targets()
                source.check_images()
    if lists := [source for source in sources if isinstance(source, FileSource)]:
        with progress.step("Check the images"):
            check_all_decodable(lists)


def _list_sources(data: Any) -> Iterator[ImageSource]:
    """Yields the sources of the data of `explain_damage`, each once."""
    if isinstance(data, RecordSource | FileSource):
        yield data
        return
    if isinstance(data, GuardedBatches):
        yield data.source
        return
    inputs: Any = data.values() if isinstance(data, Mapping) else getattr(data, "_inputs", list)()
    found = [source for each in inputs for source in _list_sources(each)]
    if not found:
        raise UsageError(
            f"explain_damage got {data!r:.80}, which is not made from a darkroom dataset.",
            "Pass the result of darkroom.load or darkroom.input.input_fn.",
        )
    yield from found


@functools.cache
def _make_iterator_class(kind: Any) -> Any:
    """Returns a subclass of TensorFlow's iterator, whose class has no public name."""

    class ImageBatchIterator(kind):
        source: ImageSource

        # TensorFlow's traceback says nothing more, in a hundred lines.
        @storage.report_failures
        def __next__(self) -> Any:
            try:
                return super().__next__()
            except StopIteration:
                check_not_replaced(self.source)
                raise
            except _READ_ERRORS:
                _check_images([self.source])
                raise

    return ImageBatchIterator
