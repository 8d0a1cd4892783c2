"""Opens the splits of a dataset for a framework that reads them without TensorFlow."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from darkroom.data.splits import RecordSplit
from darkroom.dataset.splits import SPLITS, TRAIN, name_split
from darkroom.errors import MissingExtraError, UsageError
from darkroom.options.augmentation import UNCHANGED
from darkroom.options.checks import check_choice, check_known
from darkroom.options.input import InputOptions, choose_augmentation
from darkroom.reader.decoding import ViewOptions
from darkroom.reader.loader import Loader
from darkroom.reader.order import EXACT, ORDERS, WINDOW
from darkroom.reader.records import SplitRecords
from darkroom.runtime import progress

Transform = Callable[..., Any]

TENSORFLOW, NUMPY, TORCH = FRAMEWORKS = ("tensorflow", "numpy", "torch")


def open_loaders(
    splits: Mapping[str, RecordSplit],
    folders: Mapping[str, str],
    options: InputOptions,
    *,
    framework: str,
    training: bool,
    is_sized: bool,
    columns: Sequence[str] = (),
    transform: Transform | Mapping[str, Transform] | None = None,
    order: str | None = None,
    device: str | None = None,
) -> dict[str, Loader]:
    """Returns a loader for each split, by name.

    Args:
        splits: The splits.
        folders: Where to read the files of each dataset; see `fetch_datasets`.
        options: How records become batches.
        framework: `numpy` or `torch`.
        training: Shuffle and augment the train split.
        is_sized: Whether images get the size of the options.
        columns: Features that batches have, too.
        transform: Is given each image, and its target if targets say places; or a function for
            each split that has one, by its name.
        order: `exact` or `window`; None: `window` for records that are read from a store.
        device: The GPU that decodes, of `torch` alone; None: the CPU.

    Raises:
        DataError: An index is missing or damaged, or there is no batch for each process.
        UsageError: An option is wrong, or records cannot be read by place.
        MissingExtraError: The framework is not installed.
    """
    if order is not None:
        check_choice("order", order, ORDERS)
    transforms: Mapping[str, Any] = dict.fromkeys(splits, transform)
    if isinstance(transform, Mapping):
        transforms = {name_split(name): each for name, each in transform.items()}
    if odd := [each for each in transforms.values() if each is not None and not callable(each)]:
        raise UsageError(f"transform is {odd[0]!r:.80}, expected a function of an image.")
    check_known(transforms, SPLITS, "transform has a function for a split, and there is no split")
    if device is not None and not is_sized:
        raise UsageError(
            f"device is {device!r}, which makes batches of images of one size.",
            "Give image_size=224, or leave out device.",
        )
    kind, shard = _load_framework(framework, options, device)
    loaders = {}
    for name, split in splits.items():
        trains = training and name == TRAIN
        records = SplitRecords(split, folders)
        loaders[name] = loader = kind(
            records,
            replace(options, shard=shard),
            _choose_views(split, options, is_sized, trains, columns, transforms.get(name)),
            trains,
            order or (EXACT if records.files.are_local else WINDOW),
        )
        if loader.dropped:
            progress.note(
                f"An epoch leaves out {loader.dropped} of {len(loader.images):,} images of {name}, "
                "each time others: they fill no batch."
            )
    return loaders


def _load_framework(
    framework: str, options: InputOptions, device: str | None
) -> tuple[Callable[..., Loader], tuple[int, int]]:
    """Returns what makes a loader, and which part of the records this process reads."""
    if framework == NUMPY:
        return Loader, options.shard
    try:
        from darkroom.reader.pytorch import TorchLoader, find_shard

        if device is not None:
            from darkroom.reader.gpu import GpuLoader
    except ModuleNotFoundError as error:
        if error.name not in ("torch", "torchvision"):
            raise
        name = "PyTorch" if error.name == "torch" else error.name
        raise MissingExtraError(
            f"{name} is not installed.", f"Install it as pytorch.org says: pip install {error.name}"
        ) from error
    shard = options.shard if options.shard[1] > 1 else find_shard()
    return partial(GpuLoader, device) if device is not None else TorchLoader, shard


def _choose_views(
    split: RecordSplit,
    options: InputOptions,
    is_sized: bool,
    trains: bool,
    columns: Sequence[str],
    transform: Transform | None,
) -> ViewOptions:
    """Returns what the batches of a split have.

    Args:
        split: The split.
        options: How records become batches.
        is_sized: Whether images get the size of the options; without it nothing is augmented.
        trains: Whether it is the train split of a training.
        columns: Features that batches have, too.
        transform: Is given each image.

    Raises:
        UsageError: Images would be mixed after they were transformed, or a column is not there.
    """
    augmentation = UNCHANGED
    if trains and is_sized:
        augmentation = choose_augmentation(options, split.target.kind).augmentation
        if transform is not None:
            # It changes images as its author wants; the rest is asked for by name.
            named = options.augment is not None
            augmentation = augmentation if named else UNCHANGED
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
        min_visible=options.min_visible,
        first_label=options.first_label,
    )
