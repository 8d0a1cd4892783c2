"""Opens the splits of a dataset for a framework that reads them without TensorFlow."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from typing import Any

from darkroom import storage
from darkroom.data.splits import ImageSplit, RecordSplit, Split
from darkroom.dataset.splits import SPLITS, TRAIN, name_split
from darkroom.errors import MissingExtraError, UsageError
from darkroom.options.augmentation import Augmentation
from darkroom.options.checks import check_choice, check_known
from darkroom.options.input import InputOptions, choose_augmentation
from darkroom.reader.batches import ViewOptions
from darkroom.reader.loader import Loader, ReadOptions
from darkroom.reader.order import EXACT, ORDERS, WINDOW
from darkroom.reader.records import Records
from darkroom.runtime import progress

Transform = Callable[[Any], Any]

TENSORFLOW, NUMPY, TORCH = FRAMEWORKS = ("tensorflow", "numpy", "torch")
# Options that say how TensorFlow reads, and one for which there are methods of a loader.
_OF_TENSORFLOW = (
    "shuffle_bytes",
    "record_cache",
    "cycle_length",
    "block_length",
    "deterministic",
    "repeat",
    "shard_by",
    "dtype",
    "service",
    "service_sharding",
    "service_job_name",
)


def open_loaders(
    splits: Mapping[str, Split],
    folders: Mapping[str, str],
    framework: str,
    options: InputOptions,
    *,
    training: bool,
    is_sized: bool,
    columns: Sequence[str] = (),
    transform: Transform | Mapping[str, Transform] | None = None,
    order: str | None = None,
) -> dict[str, Loader]:
    """Returns a loader for each split, by name.

    Args:
        splits: The splits.
        folders: Where to read the files of each dataset; see `fetch_records`.
        framework: `numpy` or `torch`.
        options: How records become batches.
        training: Shuffle and augment the train split.
        is_sized: Whether images get the size of the options.
        columns: Features that batches have, too.
        transform: Is given each image; or a function for each split that has one, by its name.
        order: `exact` or `window`; None: `window` for records that are read from a store.

    Raises:
        DataError: An index is missing or damaged, or there is no batch for each process.
        UsageError: An option does not go with the framework, or records cannot be read by place.
        MissingExtraError: The framework is not installed.
    """
    _check_options(options, framework)
    if order is not None:
        check_choice("order", order, ORDERS)
    transforms = transform if isinstance(transform, Mapping) else dict.fromkeys(splits, transform)
    if odd := [each for each in transforms.values() if each is not None and not callable(each)]:
        raise UsageError(f"transform is {odd[0]!r:.80}, expected a function of an image.")
    transforms = {name_split(name): each for name, each in transforms.items()}
    check_known(transforms, SPLITS, "transform has a function for a split, and there is no split")
    kind, shard = _load_framework(framework, options)
    loaders = {}
    for name, split in splits.items():
        if isinstance(split, ImageSplit):
            raise UsageError(
                f"framework is {framework!r}, which reads converted datasets, and "
                f"{split.source or 'this'} is a list of images.",
                "Convert it first: darkroom convert.",
            )
        loaders[name] = loader = kind(
            Records(split, folders),
            _choose_reading(split, folders, options, shard, training and name == TRAIN, order),
            _choose_views(
                split,
                options,
                is_sized,
                training and name == TRAIN,
                columns,
                transforms.get(name),
            ),
        )
        if loader.dropped:
            progress.note(
                f"An epoch leaves out {loader.dropped} of {len(loader.images):,} images of {name}, "
                "each time others: they fill no batch."
            )
    return loaders


def _check_options(options: InputOptions, framework: str) -> None:
    defaults = {each.name: each.default for each in fields(InputOptions)}
    for name in _OF_TENSORFLOW:
        if (value := getattr(options, name)) != defaults[name]:
            raise UsageError(
                f"{name} is {value!r}, which only TensorFlow knows, and framework is "
                f"{framework!r}.",
                "Leave it out.",
            )


def _load_framework(framework: str, options: InputOptions) -> tuple[type[Loader], tuple[int, int]]:
    """Returns the kind of loaders, and which part of the records this process reads."""
    if framework == NUMPY:
        return Loader, options.shard
    try:
        from darkroom.reader.pytorch import TorchLoader, find_shard
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        raise MissingExtraError(
            "PyTorch is not installed.", "Install it as pytorch.org says: pip install torch"
        ) from error
    return TorchLoader, options.shard if options.shard[1] > 1 else find_shard()


def _choose_reading(
    split: RecordSplit,
    folders: Mapping[str, str],
    options: InputOptions,
    shard: tuple[int, int],
    trains: bool,
    order: str | None,
) -> ReadOptions:
    if order is None:
        order = WINDOW if any(storage.is_remote(folders[root]) for root in split.files) else EXACT
    return ReadOptions(
        batch_size=options.batch_size,
        training=trains,
        seed=options.seed,
        order=order,
        window=options.shuffle_records,
        shard=shard,
        drop_remainder=options.drop_remainder,
        num_threads=options.num_threads,
        prefetch=options.prefetch,
    )


def _choose_views(
    split: RecordSplit,
    options: InputOptions,
    is_sized: bool,
    trains: bool,
    columns: Sequence[str],
    transform: Transform | None,
) -> ViewOptions:
    augmentation = Augmentation()
    if trains and is_sized:
        augmentation = choose_augmentation(options, split.target.kind).augmentation
        if transform is not None:
            # It changes images as its author wants; the rest is asked for by name.
            named = options.augment is not None
            augmentation = augmentation if named else Augmentation()
            if augmentation.mixup:
                raise UsageError(
                    "mixup is for images that have not been transformed.",
                    "Leave mixup out of augment, or mix the batches yourself.",
                )
    return ViewOptions(
        image_size=options.image_size if is_sized else None,
        resize=options.resize,
        augmentation=augmentation,
        scaled_decoding=options.scaled_decoding,
        columns=split.find_columns(columns),
        transform=transform,
    )
