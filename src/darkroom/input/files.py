"""Images that a list or a folder names as a source of input, without a conversion.

Rows become the same splits, labels and keys as by `darkroom convert`, and images the same pixels:
see `darkroom.input.graph.file_forms` for those that are rejected because they would not. What a
conversion finds by decoding every image (damage, missing files) is found when its turn comes.
"""

from __future__ import annotations

import functools
import hashlib
import os
import tempfile
from collections.abc import Sequence
from typing import NamedTuple, TypeGuard

import tensorflow as tf

from darkroom import storage
from darkroom.dataset import rejects
from darkroom.dataset.layout import DATASET_FILE, is_reserved
from darkroom.dataset.rejects import count_rejects, format_hint
from darkroom.errors import DataError, UsageError
from darkroom.input.graph.decode import decode_image
from darkroom.input.graph.file_forms import check_form, describe_form
from darkroom.input.source import EpochOrder, LabeledImage
from darkroom.manifest import writer
from darkroom.manifest.sources import LIST_ENDINGS, AnySource, find_sources
from darkroom.manifest.table import Manifest, read_manifest_rows
from darkroom.options import conversion
from darkroom.options.input import NO_CACHE, InputOptions
from darkroom.options.manifest import ManifestOptions
from darkroom.runtime.text import MAX_LISTED_ROWS
from darkroom.storage.locks import LOCK_FILE

# What is shuffled is a number.
_ELEMENT_BYTES = 8


class ManifestSource:
    """Image files with labels; see `darkroom.input.source.ImageSource`.

    Attributes:
        element_bytes: Size of what stands for an image.
        is_counted: The number of images is known.
    """

    element_bytes: float = _ELEMENT_BYTES
    is_counted: bool = True

    def __init__(self, uris: Sequence[str], labels: Sequence[int], version: str = "") -> None:
        """Opens images.

        Args:
            uris: Their paths, or URIs of a store that TensorFlow reads itself.
            labels: The numbers of their labels.
            version: Changes when one of the files does.

        Raises:
            DataError: There is none.
            UsageError: They lie in a store that TensorFlow does not read.
        """
        if not uris:
            raise DataError("There is no image to read.", "Check that the split has rows.")
        _check_schemes(uris)
        self._uris, self._labels, self._version = uris, labels, version

    @functools.cached_property
    def _tables(self) -> tuple[tf.Tensor, tf.Tensor]:
        """The paths, string [N], and the labels, int64 [N].

        They are made when they are first needed: a training with other workers has to know them
        before TensorFlow makes its first tensor. In a graph they would be copied into it.
        """
        with tf.init_scope():
            return tf.constant(self._uris), tf.constant(self._labels, tf.int64)

    def count_images(self, part: tuple[int, int] = (0, 1)) -> int:
        """Returns the number of images in a part."""
        return len(self._uris[part[0] :: part[1]])

    def select(self, part: tuple[int, int]) -> ManifestSource:
        """Returns the source of a part: (index, count) is every `count`-th image from `index`."""
        index, count = part
        if count > len(self._uris):
            raise UsageError(f"shard is {part!r}, but there are only {len(self._uris)} images.")
        if count == 1:
            return self
        return ManifestSource(self._uris[index::count], self._labels[index::count], self._version)

    def make_elements(self, options: InputOptions, order: EpochOrder | None) -> tf.data.Dataset:
        """Returns the numbers of the images, int64 [] each.

        All of a split are shuffled at once, unless `shuffle_records` is 0.

        Raises:
            UsageError: The options ask for a cache.
        """
        if options.cache != NO_CACHE:
            raise UsageError(
                f"cache is {options.cache!r}, but images that are read from their own files are "
                "not kept.",
                "Leave it at none (local files stay in the memory of the system), or convert them.",
            )
        numbers = tf.data.Dataset.range(len(self._uris))
        if order is None or not options.shuffle_records:
            return numbers
        return order.shuffle(numbers, len(self._uris))

    def parse(self, element: tf.Tensor) -> LabeledImage:
        """Reads an image, and checks that TensorFlow decodes it as a conversion would."""
        uris, labels = self._tables
        uri = tf.gather(uris, element)
        encoded = check_form(tf.io.read_file(uri), uri)
        return LabeledImage(encoded, tf.gather(labels, element), None)

    def find_damaged(self) -> list[int]:
        """Decodes all images, and returns the numbers of those for which that does not work."""
        whole = tf.data.Dataset.range(len(self._uris)).map(
            tf.autograph.experimental.do_not_convert(self._decode),
            num_parallel_calls=len(os.sched_getaffinity(0)),
            deterministic=True,
        )
        damaged: list[int] = []
        expected = 0
        # What cannot be decoded is left out, and the number of the next one tells.
        for number in (*whole.ignore_errors().as_numpy_iterator(), len(self._uris)):
            damaged += range(expected, int(number))
            expected = int(number) + 1
        return damaged

    def _decode(self, number: tf.Tensor) -> tf.Tensor:
        """Returns the number, when the image could be decoded."""
        encoded = self.parse(number).encoded
        pixels = decode_image(encoded, (1, 1), scaled=False, resized=False)
        with tf.control_dependencies((pixels,)):
            return tf.identity(number)

    def describe_damage(self, number: int) -> str:
        """Returns the place of an image that cannot be decoded, and why it cannot."""
        uri = self._uris[number]
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
        """Returns a hash of the images' places, labels and versions, 32 hexadecimal digits."""
        digest = hashlib.blake2b(self._version.encode(), digest_size=16)
        digest.update("\0".join(self._uris).encode())
        digest.update(repr(list(self._labels)).encode())
        return digest.hexdigest()


def check_images(sources: Sequence[ManifestSource]) -> None:
    """Decodes all images of some sources, to name those that end a training.

    Raises:
        DataError: Some cannot be decoded; the first ten of all sources are named.
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
        "Mend them or take them off the list; darkroom convert reads more formats, and leaves "
        "out what is damaged.",
    )


def is_converted(source: AnySource) -> TypeGuard[str | os.PathLike[str]]:
    """Tells whether a source is, or was meant to become, a folder that `darkroom.convert` wrote.

    A folder of images is one that has no `dataset.json` and something that conversion never makes.

    Raises:
        OSError: There is nothing at the path, or it cannot be seen.
    """
    if not isinstance(source, str | os.PathLike):
        return False
    path = storage.absolute(source)
    if storage.is_pattern(path) or os.path.splitext(path)[1].lower() in LIST_ENDINGS:
        return False
    # The commit first: of a remote dataset nothing else need be asked for.
    if storage.exists(storage.join(path, DATASET_FILE)):
        return True
    names = storage.list_folder(path)
    if not names:
        # A file or an empty folder; where there is nothing at all, this says so.
        find_sources(path)
    return bool(names) and all(is_reserved(name) or name == LOCK_FILE for name in names)


class ManifestSplits(NamedTuple):
    """What a list of images holds.

    Attributes:
        labels: The label map.
        splits: The images of each split that has some, by name.
    """

    labels: tuple[str, ...]
    splits: dict[str, ManifestSource]


def open_images(
    source: AnySource,
    options: ManifestOptions | None = None,
    max_rejects: float = conversion.DEFAULT_MAX_REJECTS,
) -> ManifestSplits:
    """Opens images where they lie, as training data without a conversion.

    Args:
        source: Path of a CSV, JSONL or Parquet file, a pattern of such files, a folder
            `<label>/<file>` or `<split>/<label>/<file>`, or a DataFrame.
        options: How rows become entries; see `ManifestOptions.parse`.
        max_rejects: Share of refused rows over which nothing is opened.

    Raises:
        DataError: The source cannot be used, has no images or no labels, or too many of its rows
            are refused.
        UsageError: The source is of no known kind, an option does not fit it, or images lie in a
            store that TensorFlow does not read.
    """
    with tempfile.TemporaryDirectory(prefix="darkroom-") as folder:
        manifest = writer.write_manifest(source, folder, folder, options)
        if not manifest.has_images or not manifest.has_labels:
            missing = "labels" if manifest.has_images else "images"
            raise DataError(
                f"The source has no {missing}.", "Training needs an image and a label in each row."
            )
        if manifest.rejected > max_rejects * manifest.rows:
            hint = format_hint(count_rejects(folder))
            raise DataError(
                f"{manifest.rejected} of {manifest.rows} rows were refused, more than the "
                f"{max_rejects:.2%} allowed. {rejects.list_rejects(folder)}",
                f"Mend them, or give open_images more max_rejects. {hint}".rstrip(),
            )
        splits = {name: _read_split(folder, manifest, name) for name in manifest.splits}
    return ManifestSplits(tuple(manifest.labels), splits)


def _read_split(folder: str, manifest: Manifest, name: str) -> ManifestSource:
    first, count = manifest.first_row(name), manifest.splits[name].rows
    rows = read_manifest_rows(folder, first, count)
    pairs = [(row.uri, row.label_id or 0) for row in rows]
    uris, labels = zip(*pairs, strict=True)
    return ManifestSource(uris, labels, manifest.fingerprint)


def _check_schemes(uris: Sequence[str]) -> None:
    known = tf.io.gfile.get_registered_schemes()
    for uri in uris:
        scheme = uri.partition("://")[0]
        if storage.is_remote(uri) and scheme not in known:
            raise UsageError(
                f"The image {uri} lies in a store that this TensorFlow does not read "
                f"({scheme}://).",
                "Convert the images with darkroom convert, or copy them to a local disk.",
            )
