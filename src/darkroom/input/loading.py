"""`darkroom.load`: batches from datasets or lists of images. Only the call imports TensorFlow."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from darkroom import storage
from darkroom.data.open import find_roots, open_data
from darkroom.dataset.opening import read_unchanged
from darkroom.dataset.splits import name_split
from darkroom.errors import MissingKeyError, UsageError, find_missing_extra
from darkroom.manifest.sources import AnySource
from darkroom.options.checks import check_flag
from darkroom.options.fields import merge_options
from darkroom.options.input import InputOptions
from darkroom.options.manifest import ManifestOptions
from darkroom.runtime import cards, progress, streams
from darkroom.runtime.lazy_names import LazyModule
from darkroom.runtime.text import find_similar, format_count

if TYPE_CHECKING:
    import tensorflow as tf

    from darkroom.input.source import ImageSource
else:
    tf = LazyModule("tensorflow")


class LoadedSplits(dict[str, "tf.data.Dataset"]):
    """The result of `load`: a `tf.data.Dataset` for each split, and facts about the images.

    A split has all names that a source may have for it: `data["val"]` is `data["eval"]`.

    Attributes:
        labels: The label map: the text of each label, in the order of their numbers.
        num_images: Number of images in each split, in all parts of it.
    """

    def __init__(
        self,
        splits: Mapping[str, tf.data.Dataset],
        labels: Sequence[str],
        num_images: Mapping[str, int],
    ) -> None:
        super().__init__(splits)
        self.labels = tuple(labels)
        self.num_images = dict(num_images)

    def __contains__(self, name: object) -> bool:
        return super().__contains__(name_split(name))

    def get(self, name: Any, default: Any = None) -> Any:
        """Returns the dataset of a split, or the default if there are none of its images."""
        return super().get(name_split(name), default)

    def __missing__(self, name: object) -> tf.data.Dataset:
        """Returns the split of another name, or says which splits there are."""
        if (known := name_split(name)) in self:
            return self[known]
        near = find_similar(str(known).lower(), self)
        raise MissingKeyError(
            f"There is no split {name!r}: the splits are {', '.join(self)}.",
            f"Did you mean {near!r}?" if near else "Take one of these.",
        )

    def __repr__(self) -> str:
        counts = ", ".join(f"{split}={count:,}" for split, count in self.num_images.items())
        return f"LoadedSplits({counts}, labels={len(self.labels):,})"

    def _repr_html_(self) -> str:
        """Returns the number of images and the labels as a notebook shows them; reads none."""
        return cards.make_card(
            f"{format_count(sum(self.num_images.values()), 'image')} as tf.data",
            {"images": self.num_images, "labels": self.labels},
        )


@storage.report_failures
@progress.shown
def load(
    source: AnySource,
    *,
    image_size: tuple[int, int] | int | None = None,
    batch_size: int | None = None,
    training: bool = False,
    augment: str | None = None,
    verify: bool = False,
    stage: bool = True,
    cache_dir: str | os.PathLike[str] | None = None,
    manifest: ManifestOptions | None = None,
    options: InputOptions | None = None,
) -> LoadedSplits:
    """Opens a converted dataset, or the images that a list or a folder names.

    Every shard of a dataset must exist and have the size that was committed.

    Args:
        source: A folder that `darkroom.convert` wrote, a pattern of such folders with one label
            map, or a source that it takes: the path of a CSV, JSONL or Parquet file, a pattern of
            such files, a folder of images, a DataFrame; see `darkroom.input.files`.
        image_size: Height and width of the images that the model gets, in pixels. One number is
            for both. Needed without `options`.
        batch_size: Images per batch. 32 if None.
        training: Shuffle the train split, and augment it as `augment` says.
        augment: Random augmentation of training images: none, or parts such as crop,flip,color=0.4.
            `darkroom.options.augmentation.parse_augmentation` describes the parts, and has the
            default.
        verify: Read every shard first and check its SHA-256, which finds any damage.
        stage: Copy a remote dataset to a local cache first; False: TensorFlow reads the store.
        cache_dir: The cache; see `darkroom.data.cache`.
        manifest: How the rows of a list or folder are read; see `ManifestOptions.parse`.
        options: All other options. The arguments above replace its values.

    Returns:
        A dataset for each split that has records (train, eval, test), by its name; `labels` has the
        label map, and `num_images` the number of images of each split. Batches are
        (uint8 [B, height, width, 3], int64 [B]): RGB pixels, label numbers; with mixup
        float32 [B, C] instead, shares of the C labels, in all splits. Their number is known, except
        for training by a tf.data service.

        If a Python loop over them meets a damaged file, or the dataset is replaced meanwhile, the
        loop ends with a `DataError` that says so. Elsewhere, as in `model.fit`,
        `darkroom.input.explain_damage` does that.

    Raises:
        DataError: There is no valid `dataset.json`, a shard is missing or has another size or hash,
            or the records have no image or no label.
        UsageError: An option is wrong.
        MissingExtraError: TensorFlow is not installed.
        OSError: There is nothing at the path, or it cannot be read.
    """
    load_tensorflow()
    from darkroom.input.opening import input_fn

    for name, flag in (("training", training), ("verify", verify), ("stage", stage)):
        check_flag(name, flag)
    if cache_dir is not None:
        storage.absolute(cache_dir)  # checks that it is a path
    if manifest is not None and not isinstance(manifest, ManifestOptions):
        raise UsageError(
            f"manifest is {manifest!r:.80}, expected ManifestOptions.",
            "Make them with darkroom.options.ManifestOptions.parse(...).",
        )
    if image_size is None and options is None:
        raise UsageError("image_size is missing.", "Give image_size=224, or (height, width).")
    size = (image_size, image_size) if isinstance(image_size, int) else image_size
    given = {"image_size": size, "batch_size": batch_size, "augment": augment}
    made = merge_options(InputOptions, options, given)
    labels, sources = _open_source(source, verify, stage, cache_dir, manifest)
    if made.num_classes is None:
        made = replace(made, num_classes=len(labels))
    loaded = {}
    for name, images in sources.items():
        trains = training and name == "train"
        own = made if trains else replace(made, shard_by="record")
        loaded[name] = input_fn(images, own, trains)
    return LoadedSplits(
        loaded, labels, {name: images.count_images() for name, images in sources.items()}
    )


def load_tensorflow() -> None:
    """Imports TensorFlow, without its messages about a missing GPU.

    Raises:
        MissingExtraError: It is not installed.
    """
    streams.quiet_tensorflow()
    try:
        import tensorflow  # noqa: F401
    except ModuleNotFoundError as error:
        if missing := find_missing_extra(error):
            raise missing from error
        raise


def _open_source(
    source: AnySource,
    verify: bool,
    stage: bool,
    cache_dir: str | os.PathLike[str] | None,
    manifest: ManifestOptions | None,
) -> tuple[Sequence[str], Mapping[str, ImageSource]]:
    """Returns the label map, and the images of each split; see `load` for the arguments."""
    from darkroom.input.opening import open_splits

    [roots] = find_roots([source])
    if verify and not roots:
        raise UsageError(
            "verify is for converted datasets: files have no committed SHA-256.",
            "Leave out verify, or convert the images.",
        )
    if roots and manifest is not None:
        raise UsageError(
            f"{source} is converted: options of a manifest do not apply to it.",
            "Leave out manifest.",
        )

    def open_now() -> tuple[Sequence[str], Mapping[str, ImageSource]]:
        # Read each time: on a store, a new dataset has a new folder.
        data = open_data([source], manifest=manifest, roots=roots)
        sources = open_splits(data.splits, verify=verify, stage=stage, cache_dir=cache_dir)
        return data.labels, sources

    return read_unchanged(roots, open_now)
