"""`darkroom.load`: batches from datasets or lists of images. Only the call imports TensorFlow."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from darkroom import storage
from darkroom.dataset.commit import read_dataset
from darkroom.errors import UsageError, find_missing_extra
from darkroom.manifest.sources import AnySource
from darkroom.options.augmentation import DEFAULT_AUGMENTATION
from darkroom.options.input import STRETCH, InputOptions
from darkroom.options.manifest import ManifestOptions
from darkroom.runtime.lazy_names import LazyModule

if TYPE_CHECKING:
    import tensorflow as tf

    from darkroom.input.source import ImageSource
else:
    tf = LazyModule("tensorflow")


def load(
    source: AnySource,
    *,
    image_size: tuple[int, int],
    batch_size: int = 32,
    training: bool = False,
    augment: str = DEFAULT_AUGMENTATION,
    resize: str = STRETCH,
    shuffle_records: int = 2048,
    deterministic: bool = True,
    seed: int = 0,
    verify: bool = False,
    stage: bool = True,
    cache_dir: str | os.PathLike[str] | None = None,
    manifest: ManifestOptions | None = None,
    **options: Any,
) -> dict[str, tf.data.Dataset]:
    """Opens a converted dataset, or the images that a list or a folder names.

    Every shard of a dataset must exist and have the size that was committed.

    Args:
        source: A folder that `darkroom.convert` wrote, or a source that it takes: the path of a
            CSV, JSONL or Parquet file, a pattern of such files, a folder of images, a DataFrame;
            see `darkroom.input.files`.
        image_size: (height, width) in pixels.
        batch_size: Images in a batch.
        training: Shuffle the train split, and augment it as `augment` says.
        augment: What training does to images, as "flip" or "crop,flip,color=0.4"; see
            `darkroom.options.augmentation.parse_augmentation`.
        resize: How a whole image becomes `image_size`: "stretch" or "center_crop".
        shuffle_records: Records held in memory to shuffle the train split.
        deterministic: The same training batches in every run.
        seed: Seed of everything random.
        verify: Read every shard first and check its SHA-256, which finds any damage.
        stage: Copy a remote dataset to a local cache first; False: TensorFlow reads the store.
        cache_dir: The cache; see `darkroom.input.cache`.
        manifest: How the rows of a list or folder are read; see `ManifestOptions.parse`.
        options: Other options of `InputOptions`, by name. `shard_by` applies to the split that is
            trained on; other splits may have few files, and are shared by record.

    Returns:
        A dataset for each split that has records (train, eval, test). Batches are
        (uint8 [B, height, width, 3], int64 [B]): RGB pixels, label numbers; with mixup
        float32 [B, C] instead, shares of the C labels, in all splits. Their number is known, except
        for training by a tf.data service.

    Raises:
        DataError: There is no valid `dataset.json`, a shard is missing or has another size or hash,
            or the records have no image or no label.
        UsageError: An option is wrong.
        MissingExtraError: TensorFlow is not installed.
        OSError: There is nothing at the path, or it cannot be read.
    """
    try:
        import tensorflow  # noqa: F401
    except ModuleNotFoundError as error:
        if missing := find_missing_extra(error):
            raise missing from error
        raise
    from darkroom.input.api import input_fn

    labels, sources = _open_source(source, verify, stage, cache_dir, manifest)
    input_options = InputOptions(
        image_size,
        batch_size=batch_size,
        augment=augment,
        resize=resize,
        shuffle_records=shuffle_records,
        deterministic=deterministic,
        seed=seed,
        **{"num_classes": len(labels), **options},
    )
    loaded = {}
    for name, images in sources.items():
        trains = training and name == "train"
        own = input_options if trains else replace(input_options, shard_by="record")
        loaded[name] = input_fn(images, own, trains)
    return loaded


def _open_source(
    source: AnySource,
    verify: bool,
    stage: bool,
    cache_dir: str | os.PathLike[str] | None,
    manifest: ManifestOptions | None,
) -> tuple[Sequence[str], Mapping[str, ImageSource]]:
    """Returns the label map, and the images of each split; see `load` for the arguments."""
    from darkroom.input.cache import stage_dataset
    from darkroom.input.files import is_converted, open_images
    from darkroom.input.records import open_splits

    if not is_converted(source):
        if verify:
            raise UsageError(
                "verify is for converted datasets: files have no committed SHA-256.",
                "Leave out verify, or convert the images.",
            )
        return open_images(source, manifest)
    if manifest is not None:
        raise UsageError(
            f"{source} is converted: options of a manifest do not apply to it.",
            "Leave out manifest.",
        )
    folder = storage.absolute(source)
    dataset = read_dataset(folder)
    if stage:
        folder = stage_dataset(folder, dataset, cache_dir)
    return dataset.labels, open_splits({folder: dataset}, verify)
