"""Images that a list or a folder names, read from their own files without a conversion.

Splits, labels, keys and pixels are those that `darkroom convert` would give. An image that would
get other pixels is rejected; see `darkroom.input.graph.file_forms`. A conversion decodes every
image and so finds the damaged and the missing ones first; here they are found when they are read.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import NamedTuple

import tensorflow as tf

from darkroom import storage
from darkroom.data.images import list_images
from darkroom.data.splits import ImageSplit, describe_target
from darkroom.dataset.sources import AnySource
from darkroom.errors import DataError, UsageError
from darkroom.input.graph.file_forms import check_decodable, describe_form
from darkroom.input.source import EpochOrder, LabeledImage, spread
from darkroom.input.undecodable import find_undecodable
from darkroom.options.checks import DEFAULT_MAX_REJECTS
from darkroom.options.input import NO_CACHE, InputOptions
from darkroom.options.manifest import ManifestOptions
from darkroom.runtime.text import MAX_LISTED_ROWS
from darkroom.targets.kind import find_kind

__all__ = ["check_all_decodable"]

# An element is the number of an image.
_ELEMENT_BYTES = 8


class FileSource:
    """Image files with labels; see `darkroom.input.source.ImageSource`.

    Attributes:
        split: The paths of the images, and the numbers of their labels.
        element_bytes: Size of an element, which is the number of an image.
        is_counted: The number of images is known.
    """

    element_bytes: float = _ELEMENT_BYTES
    is_counted: bool = True

    def __init__(self, split: ImageSplit) -> None:
        """Opens images.

        Raises:
            DataError: There are no images.
            UsageError: They are in a store that TensorFlow cannot read.
        """
        if not split.uris:
            raise DataError("There is no image to read.", "Check that the split has rows.")
        known = tf.io.gfile.get_registered_schemes()
        for uri in split.uris:
            scheme = uri.partition("://")[0]
            if storage.is_remote(uri) and scheme not in known:
                raise UsageError(
                    f"The image {uri} is in a store that this TensorFlow cannot read "
                    f"({scheme}://).",
                    "Convert the images with darkroom convert, or copy them to a local disk.",
                )
        self.split = split

    @functools.cached_property
    def _tables(self) -> tuple[tf.Tensor, tf.Tensor]:
        """The paths, string [N], and what the images are labelled with, [N, ...].

        They are made on first use, because a training must find its other workers before
        TensorFlow makes a tensor. They are made outside of any graph, which would copy them.
        """
        with tf.init_scope():
            kind = find_kind(self.split.target.kind)
            labels = kind.make_array(self.split.numbers, len(describe_target(self.split).names))
            return tf.constant(self.split.uris), tf.constant(labels)

    def count_images(self, part: tuple[int, int] = (0, 1)) -> int:
        """Returns the number of images in a part."""
        return len(self.split.uris[part[0] :: part[1]])

    def select(self, part: tuple[int, int]) -> FileSource:
        """Returns the source of a part: (index, count) is every `count`-th image from `index`."""
        index, count = part
        if count > len(self.split.uris):
            raise UsageError(
                f"shard is {part!r}, but there are only {len(self.split.uris)} images."
            )
        return self if count == 1 else FileSource(self.split.select(index, count))

    def make_elements(self, options: InputOptions, order: EpochOrder | None) -> tf.data.Dataset:
        """Returns the numbers of the images, int64 [] each.

        All of them are shuffled at once, unless `shuffle_records` is 0.

        Raises:
            UsageError: The options ask for a cache.
        """
        if options.record_cache != NO_CACHE:
            raise UsageError(
                f"record_cache is {options.record_cache!r}, but images that are read from their "
                "own files are not cached.",
                "Set it to none (the system keeps local files in memory), or convert the images.",
            )
        numbers = tf.data.Dataset.range(len(self.split.uris))
        if order is None or not options.shuffle_records:
            return numbers
        return order.shuffle(numbers, len(self.split.uris))

    def make_sample(self, count: int) -> tf.data.Dataset:
        """Returns the numbers of some images, int64 [] each."""
        return tf.data.Dataset.from_tensor_slices(spread(count, len(self.split.uris)))

    def parse(self, element: tf.Tensor) -> LabeledImage:
        """Reads an image and checks that TensorFlow decodes it as a conversion would."""
        uris, labels = self._tables
        uri = tf.gather(uris, element)
        encoded = check_decodable(tf.io.read_file(uri), uri)
        return LabeledImage(encoded, tf.gather(labels, element), None)

    def parse_label(self, element: tf.Tensor) -> tf.Tensor:
        """Returns the label of an image, and does not read its file."""
        return tf.gather(self._tables[1], element)

    def find_damaged(self) -> list[int]:
        """Decodes all images and returns the numbers of those that cannot be decoded."""
        count = len(self.split.uris)
        return find_undecodable(tf.data.Dataset.range(count), count, self.parse)

    def describe_damage(self, number: int) -> str:
        """Returns the path of an image that cannot be decoded, and the reason."""
        uri = self.split.uris[number]
        try:
            form = describe_form(tf.io.read_file(uri)).numpy().decode()
        except tf.errors.NotFoundError:
            return f"{uri} (it is missing)"
        except tf.errors.InvalidArgumentError:
            form = ""
        except tf.errors.OpError as error:
            return f"{uri} (it cannot be read: {type(error).__name__})"
        return f"{uri} (it is {form or 'damaged'})"

    def identify(self) -> str:
        """Returns a hash of the images' paths, labels and versions, 32 hexadecimal digits."""
        return self.split.identify()


def check_all_decodable(sources: Sequence[FileSource]) -> None:
    """Decodes all images of some sources, to name the ones that cannot be decoded.

    Raises:
        DataError: Some cannot be decoded. The first ten are named.
    """
    damaged = [(source, number) for source in sources for number in source.find_damaged()]
    if not damaged:
        return
    named = [source.describe_damage(number) for source, number in damaged[:MAX_LISTED_ROWS]]
    if more := len(damaged) - len(named):
        named.append(f"and {more:,} more")
    total = sum(source.count_images() for source in sources)
    raise DataError(
        f"{len(damaged):,} of {total:,} images cannot be decoded: {'; '.join(named)}.",
        "Fix them or remove them from the list. darkroom convert reads more formats, and leaves "
        "out damaged images.",
    )


class ImageSplits(NamedTuple):
    """The images that a list or a folder names.

    Attributes:
        labels: The label map.
        splits: The images of each split that has some, by name.
    """

    labels: tuple[str, ...]
    splits: dict[str, FileSource]


def open_images(
    source: AnySource,
    options: ManifestOptions | None = None,
    max_rejects: float = DEFAULT_MAX_REJECTS,
) -> ImageSplits:
    """Opens images for training and evaluation, without a conversion.

    Args:
        source: Path of a CSV, JSONL or Parquet file, a pattern of such files, a folder
            `<label>/<file>` or `<split>/<label>/<file>`, or a DataFrame.
        options: How rows become entries; see `ManifestOptions.parse`.
        max_rejects: The largest share of rejected rows that is allowed, 0 to 1.

    Returns:
        The label map and the splits, for `input_fn`.

    Raises:
        DataError: The source cannot be used, has no images or no labels, or too many of its rows
            are rejected.
        UsageError: The source has an unknown kind, an option does not fit it, or images are in a
            store that TensorFlow cannot read.
    """
    labels, splits = list_images(source, options, max_rejects)
    return ImageSplits(labels, {name: FileSource(split) for name, split in splits.items()})
