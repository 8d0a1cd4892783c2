"""`darkroom.load`: batches from datasets or lists of images, for any framework.

Only a call for a framework imports it.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import fields, replace
from inspect import signature
from typing import Any, NamedTuple

from darkroom import storage
from darkroom.data.open import find_roots, open_data
from darkroom.data.splits import fetch_datasets
from darkroom.dataset.layout import INDEX_FOLDER
from darkroom.dataset.opening import read_unchanged
from darkroom.dataset.sources import AnySource
from darkroom.dataset.splits import name_split
from darkroom.errors import MissingExtraError, MissingKeyError, UsageError
from darkroom.options.checks import as_size, check_choice, check_flag, check_known
from darkroom.options.fields import merge_options
from darkroom.options.input import InputOptions
from darkroom.options.manifest import ManifestOptions
from darkroom.reader.opening import FRAMEWORKS, NUMPY, TENSORFLOW, TORCH, Transform, open_loaders
from darkroom.runtime import by_name, progress, streams
from darkroom.runtime.result import Outcome, list_facts
from darkroom.runtime.text import find_similar, format_count, list_first
from darkroom.targets.kind import find_kind

# Kinds of data, as errors name them.
_DATASETS, _IMAGES = "a converted dataset", "a list or folder of images"


class _Scope(NamedTuple):
    """Options that apply to some frameworks alone, or to one kind of data.

    Attributes:
        cases: The frameworks, or the kind of data.
        hint: What to do elsewhere.
        options: Their names.
    """

    cases: tuple[str, ...]
    hint: str
    options: tuple[str, ...]


_SCOPES = (
    _Scope((NUMPY, TORCH), "Map the datasets of tf.data.", ("transform", "order")),
    _Scope((TORCH,), "Leave it out: only PyTorch is given images on a GPU.", ("device",)),
    _Scope(
        # How TensorFlow reads, and `repeat`, for which there are methods of a loader.
        (TENSORFLOW,),
        "Leave it out.",
        (
            "shuffle_bytes",
            "record_cache",
            "cycle_length",
            "block_length",
            "deterministic",
            "repeat",
            "shard_by",
            "dtype",
            "bounding_box_format",
            "ragged",
            "service",
            "service_sharding",
            "service_job_name",
        ),
    ),
    _Scope(
        # Files of images have no index, no hashes that were committed, and no features.
        (_DATASETS,),
        "Leave it out, or convert the images: darkroom convert.",
        ("framework", "verify", "columns"),
    ),
    _Scope((_IMAGES,), "Leave it out: the rows were read by the conversion.", ("manifest",)),
)
# What is only for targets that say places.
_PLACED = ("min_visible", "first_label", "bounding_box_format", "ragged")


class LoadedSplits(dict[str, Any]):
    """The result of `load`: the batches of each split, and facts about the images.

    For TensorFlow, a split is a `tf.data.Dataset` of (uint8 [B, height, width, 3], int64 [B]): RGB
    pixels, label numbers; with mixup float32 [B, C] instead, shares of the C labels, in all splits;
    of other kinds of targets, as boxes, what `darkroom.targets.KIND.learning` says.
    The number of batches is known, except for training by a tf.data service. If a Python loop over
    them meets a damaged file, or the dataset is replaced meanwhile, the loop ends with a
    `DataError` that says so. Elsewhere, as in `model.fit`, `darkroom.input.explain_damage` does
    that.

    For `torch` and `numpy`, a split is a `darkroom.reader.loader.Loader`, which describes its
    batches. That of `torch` is an `IterableDataset`, too, with images of uint8 [B, 3, H, W].

    A split has all names that a source may have for it: `data["val"]` is `data["eval"]`.

    Attributes:
        labels: The label map: the text of each label, in the order of their numbers.
        num_images: Number of images in each split, in all parts of it.
    """

    def __init__(
        self,
        splits: Mapping[str, Any],
        labels: Sequence[str],
        num_images: Mapping[str, int],
        framework: str = TENSORFLOW,
        root: str = "",
    ) -> None:
        super().__init__(splits)
        self.labels = tuple(labels)
        self.num_images = dict(num_images)
        self._framework, self._root = framework, root

    def __contains__(self, name: object) -> bool:
        return super().__contains__(name_split(name))

    def get(self, name: Any, default: Any = None) -> Any:
        """Returns the dataset of a split, or the default if there are none of its images."""
        return super().get(name_split(name), default)

    def __missing__(self, name: object) -> Any:
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
        """Returns the number of images and the labels as a notebook shows them, and some images."""
        images = ", ".join(f"{split} {count:,}" for split, count in self.num_images.items())
        facts = {"Images": images, "Labels": list_first(self.labels)}
        title = f"{format_count(sum(self.num_images.values()), 'image')} for {self._framework}"
        index = storage.join(self._root, INDEX_FOLDER)
        shown = by_name.find("show_records")(self._root, index) if self._root else None
        return Outcome(title, list_facts(facts), more=[shown]).to_card()


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
    framework: str = TENSORFLOW,
    columns: Sequence[str] = (),
    transform: Transform | Mapping[str, Transform] | None = None,
    order: str | None = None,
    device: str | None = None,
    **more: Any,
) -> LoadedSplits:
    """Opens a converted dataset, or the images that a list or a folder names.

    Every shard of a dataset must exist and have the size that was committed.

    Args:
        source: A folder that `darkroom.convert` wrote, a pattern of such folders with one label
            map, or a source that it takes: the path of a CSV, JSONL or Parquet file, a pattern of
            such files, a folder of images, a DataFrame; see `darkroom.input.files`.
        image_size: Height and width of the images that the model gets, in pixels. One number is
            for both. Needed without `options`; with `transform`, images may keep their sizes.
        batch_size: Images per batch. 32 if None.
        training: Shuffle the train split, and augment it as `augment` says.
        augment: Random augmentation of training images: none, or parts such as crop,flip,color=0.4.
            `darkroom.options.augmentation.parse_augmentation` describes the parts, and has the
            default.
        verify: Read every shard first and check its SHA-256, which finds any damage.
        stage: Copy a remote dataset to a local cache first; False: TensorFlow reads the store.
        cache_dir: The cache; see `darkroom.data.cache`.
        manifest: How the rows of a list or folder are read; see `ManifestOptions.parse`.
        options: All other options. Arguments by name replace its values.
        framework: `tensorflow`, `torch` or `numpy`. The last two read converted datasets without
            TensorFlow.
        columns: Features of the records that batches have, too, such as `image/filename` or an
            input column: a dict of them follows the labels. The default for records that lack one
            is 0, NaN or an empty text.
        transform: For `torch` and `numpy`: a function that is given each image, uint8 [3, H, W] as
            a tensor or [H, W, 3] as an array, in several threads, and returns what takes its place;
            or a dict with a function for each split. If images have boxes, it is given image and
            target, and returns both; see `darkroom.reader.loader.Loader`. Random augmentation is
            then only that which `augment` names.
        order: For `torch` and `numpy`, the order of training: `exact` shuffles all records,
            `window` reads each file about once from start to end. Default: `window` from a store.
        device: For `torch`: the GPU that decodes and changes images, as `cuda`. Batches are on it,
            also their labels and columns of numbers. `transform` is given each image there, in one
            thread. Not measured on a GPU yet. Default: the CPU.
        more: Fields of `options` by name, as in seed=1. Those of boxes are first_label,
            min_visible, bounding_box_format and ragged; see `darkroom.options.InputOptions`.

    Returns:
        The batches of each split that has records (train, eval, test), by its name.

    Raises:
        DataError: There is no valid `dataset.json`, a shard is missing or has another size or hash,
            or the records have no image or no label.
        UsageError: An option is wrong.
        MissingExtraError: The framework is not installed, or OpenCV for the reader.
        OSError: There is nothing at the path, or it cannot be read.
    """
    check_choice("framework", framework, FRAMEWORKS)
    _check_values(training, verify, stage, columns, cache_dir, manifest)
    is_sized = image_size is not None or options is not None
    if not is_sized and transform is None:
        raise UsageError("image_size is missing.", "Give image_size=224, or (height, width).")
    given = {
        "image_size": as_size(image_size) if is_sized else (1, 1),
        "batch_size": batch_size,
        "augment": augment,
    }
    made = merge_options(InputOptions, options, given)
    check_known(more, {**signature(load).parameters, **vars(made)}, "load has no option")
    made = replace(made, **more)
    if framework == TENSORFLOW:
        try:
            with streams.quiet_tensorflow():
                import tensorflow  # noqa: F401
        except MissingExtraError as error:
            hint = f'{error.hint} Without TensorFlow, give framework="torch" or "numpy".'
            raise MissingExtraError(error.message, hint) from error
    columns = tuple(columns)
    own: Any = {"framework": framework, "transform": transform, "order": order, "device": device}
    given = {**vars(made), **own, "columns": columns, "verify": verify, "manifest": manifest}
    [roots] = find_roots([source])
    _check_scopes(given, _DATASETS if roots else _IMAGES)

    def open_now() -> LoadedSplits:
        # The data are opened each time: on a store, a new dataset has a new folder.
        data = open_data([source], manifest=manifest, roots=roots)
        splits: Any = data.splits
        for split in splits.values():
            _check_places(made, split.target.kind)
        folders = fetch_datasets(splits.values(), verify=verify, stage=stage, cache_dir=cache_dir)
        if framework == TENSORFLOW:
            from darkroom.input.opening import open_datasets

            loaded = open_datasets(splits, folders, made, training=training, columns=columns)
        else:
            loaded = open_loaders(
                splits, folders, made, training=training, columns=columns, is_sized=is_sized, **own
            )
        counts = {name: split.num_images for name, split in splits.items()}
        # The folder of the data, which is below that of a store.
        root = next(iter(next(iter(splits.values())).commits)) if roots and splits else ""
        return LoadedSplits(loaded, data.labels, counts, framework, root)

    return read_unchanged(roots, open_now)


def _check_values(
    training: bool,
    verify: bool,
    stage: bool,
    columns: Sequence[str],
    cache_dir: str | os.PathLike[str] | None,
    manifest: ManifestOptions | None,
) -> None:
    """Checks the types of arguments of `load` that are not fields of its options."""
    for name, flag in (("training", training), ("verify", verify), ("stage", stage)):
        check_flag(name, flag)
    if isinstance(columns, str) or not isinstance(columns, Collection):
        raise UsageError(f"columns is {columns!r}, expected a list of names.")
    if manifest is not None and not isinstance(manifest, ManifestOptions):
        raise UsageError(
            f"manifest is {manifest!r:.80}, expected ManifestOptions.",
            "Make them with darkroom.options.ManifestOptions.parse(...).",
        )
    if cache_dir is not None:
        storage.absolute(cache_dir)  # checks that it is a path


def _check_places(options: InputOptions, kind: str) -> None:
    """Checks that options for targets that say places are given for those alone."""
    if find_kind(kind).moves:
        return
    for each in fields(InputOptions):
        if each.name in _PLACED and (value := getattr(options, each.name)) != each.default:
            raise UsageError(
                f"{each.name} is {value!r}, which applies to objects in images, and these are "
                f"labelled with {kind}.",
                "Leave it out.",
            )


def _check_scopes(given: Mapping[str, Any], kind: str) -> None:
    """Checks that each option that is given applies to the framework and to the kind of data."""
    defaults = {name: each.default for name, each in signature(load).parameters.items()}
    defaults |= {each.name: each.default for each in fields(InputOptions)}
    for scope in _SCOPES:
        found = kind if scope.cases[0] in (_DATASETS, _IMAGES) else given["framework"]
        for name in scope.options if found not in scope.cases else ():
            if (value := given[name]) != defaults[name]:
                raise UsageError(
                    f"{name} is {value!r:.80}, which applies to {' and '.join(scope.cases)}, not "
                    f"to {found}.",
                    scope.hint,
                )
