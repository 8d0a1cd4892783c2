"""Options of input and training; they need no TensorFlow, so that a wrong one is told at once."""

from __future__ import annotations

import dataclasses
import difflib
from collections.abc import Iterable, Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Any

from darkroom.errors import UsageError
from darkroom.options.augmentation import DEFAULT_AUGMENTATION, Augmentation, parse_augmentation
from darkroom.options.model_names import SMALL_CNN, check_model_name

STRETCH, CENTER_CROP = RESIZES = ("stretch", "center_crop")
# What a center crop leaves of the sides, as 224 of 256.
CENTER_SHARE = (7, 8)
NO_CACHE, MEMORY_CACHE = "none", "memory"
SHARDINGS = ("off", "dynamic", "file")
STRATEGIES = ("auto", "one", "mirrored", "multi_worker")
LOOPS = ("fit", "custom")
PRECISIONS = ("float32", "mixed_float16", "mixed_bfloat16")
# Under this name the Trainer's custom_config holds the options.
CONFIG_KEY = "darkroom"
# Under this one, the folder where checkpoints outlive a run that was killed.
CHECKPOINT_DIR_KEY = "checkpoint_dir"


# Least and most; TensorFlow makes room for a batch, and threads, before it knows what there is.
_COUNTS: dict[str, tuple[int, int | None]] = {
    "batch_size": (1, 1 << 20),
    "shuffle_records": (0, None),
    "shuffle_bytes": (0, None),
    "cycle_length": (1, 1 << 10),
    "block_length": (1, None),
    "num_threads": (0, 1 << 10),
    "prefetch": (0, None),
    "ram_budget_bytes": (1 << 20, None),
    "seed": (0, 1 << 40),
}
_CHOICES = {
    "resize": RESIZES,
    "shard_by": ("record", "file"),
    "dtype": ("uint8", "float32"),
    "service_sharding": SHARDINGS,
}


@dataclass(frozen=True)
class InputOptions:
    """How records become batches; checked when made. docs/input.md says what each is worth.

    Attributes:
        image_size: (height, width) in pixels.
        batch_size: Images in a batch; with `shard`, in this shard's part of it.
        resize: How a whole image becomes `image_size`: "stretch", or "center_crop": the middle of
            it, in the form of `image_size`, less an eighth of its sides.
        augment: What training does to images: "none", or parts like "crop,flip,color=0.4"; see
            `darkroom.options.augmentation.parse_augmentation`.
        shuffle_records: Records held in memory to shuffle training data; 0: order of the files.
        shuffle_bytes: The same in bytes; the smaller of the two counts.
        cycle_length: Files read at the same time.
        block_length: Records taken from a file before the next one's turn.
        cache: Where records are kept after they were read once, encoded as they are: "none",
            "memory" (left out when they are more than half of `ram_budget_bytes`), or a folder on
            local disk, whose files spare a slow store: the next run finds them again, and other
            records have files of their own.
        num_threads: Threads that decode; 0: one for each core.
        prefetch: Batches that are made ahead.
        ram_budget_bytes: What reading may hold in memory: records to shuffle, cache, batches made
            ahead.
        deterministic: The same batches in every run.
        scaled_decoding: Decode a JPEG at a half, a quarter or an eighth of its size where that is
            no less than needed.
        seed: Seed of everything random in training; equal from run to run, new in every epoch.
        repeat: Passes over the training data; None: without end.
        drop_remainder: Leave out the last, smaller batch of training.
        shard: (index, count): this process takes one of `count` equal parts of every epoch. Batches
            of all parts together are those of the whole; an incomplete last one is left out.
        shard_by: "record": every `count`-th record, in an order that does not depend on the number
            of parts; "file": whole files, so that a process reads only its own.
        dtype: "uint8", or "float32" with the same values, 0 to 255.
        num_classes: Number of labels; needed where labels are mixed.
        service: Address of a tf.data service, "grpc://host:port", whose workers make the batches
            of training, with `num_threads` each; None: this process does. Their order is then
            another one in every run, and each worker's last batch may be smaller.
        service_sharding: How files are shared among its workers: "off", "dynamic" or "file"; see
            `darkroom.input.service.distribute`.
    """

    image_size: tuple[int, int]
    _: KW_ONLY
    batch_size: int = 32
    resize: str = STRETCH
    augment: str = DEFAULT_AUGMENTATION
    shuffle_records: int = 2048
    shuffle_bytes: int = 256 << 20
    cycle_length: int = 16
    block_length: int = 4
    cache: str = NO_CACHE
    num_threads: int = 0
    prefetch: int = 2
    ram_budget_bytes: int = 1 << 30
    deterministic: bool = True
    scaled_decoding: bool = True
    seed: int = 0
    repeat: int | None = 1
    drop_remainder: bool = False
    shard: tuple[int, int] = (0, 1)
    shard_by: str = "record"
    dtype: str = "uint8"
    num_classes: int | None = None
    service: str | None = None
    service_sharding: str = "dynamic"

    def __post_init__(self) -> None:
        size = _check_pair("image_size", self.image_size, "(height, width) in pixels, each", 1)
        object.__setattr__(self, "image_size", size)
        shard = _check_pair("shard", self.shard, "(index, count), each", 0)
        object.__setattr__(self, "shard", shard)
        if shard[0] >= shard[1]:
            raise UsageError(f"shard is {shard!r}, expected an index below the count.")
        for name, (least, most) in _COUNTS.items():
            check_count(name, getattr(self, name), least, most)
        if self.repeat is not None:
            check_count("repeat", self.repeat, 1)
        for name, choices in _CHOICES.items():
            check_choice(name, getattr(self, name), choices)
        if not isinstance(self.cache, str) or not self.cache or "://" in self.cache:
            raise UsageError(f"cache is {self.cache!r}, expected none, memory or a local path.")
        if self.service is not None and (shard[1] > 1 or self.cache != NO_CACHE):
            raise UsageError(
                f"service is {self.service!r}, which goes with no shard and no cache: which images "
                "a worker of it reads is another matter in every run.",
                "Leave out the service, or shard and cache.",
            )
        parse_augmentation(self.augment)

    @property
    def augmentation(self) -> Augmentation:
        """What training does to images, as values."""
        return parse_augmentation(self.augment)


@dataclass(frozen=True, kw_only=True)
class TrainingOptions:
    """What is trained and how; checked when made.

    Attributes:
        image_size: (height, width) in pixels.
        model: A name for `darkroom.training.models.build_model`.
        weights: Path of weights to start from, or None.
        batch_size: Images in a batch, those of all devices and processes together.
        epochs: Passes over the training data, those before a restart included.
        learning_rate: Of the Adam optimizer; not used for a model that comes compiled.
        resize: How a whole image becomes `image_size`, as in `InputOptions`; the exported model
            does the same.
        augment: What training does to images, as in `InputOptions`.
        early_stopping_patience: Epochs without a lower loss on the eval split after which training
            stops; 0: never. The weights are always those of the epoch with the lowest one.
        shuffle_records: Records held in memory to shuffle training data.
        shuffle_bytes: The same in bytes; the smaller of the two counts.
        cache: Where records are kept after the first epoch, as in `InputOptions`; files lie in a
            folder as long as the training runs.
        num_threads: Threads that decode; 0: one for each core.
        ram_budget_bytes: What reading a split may hold in memory, as in `InputOptions`.
        seed: Seed of weights, order and augmentation.
        verify: Read every shard before training and check its SHA-256.
        profile_input: When training is done, measure what each stage of its input costs; this
            takes some seconds, and makes the verdict name what to change.
        checkpoint_steps: Batches between two checkpoints within an epoch, rounded up to whole
            executions; 0: only at the end of an epoch.
        strategy: Devices that share a batch: "one"; "mirrored", all of this machine;
            "multi_worker", those of every process that TF_CONFIG names; "auto", what there is.
        loop: "fit", Keras's, or "custom", `darkroom.training.loops.TapeLoop`.
        precision: Keras's dtype policy: "float32", "mixed_float16" or "mixed_bfloat16".
        steps_per_execution: Batches that one call of TensorFlow trains on.
    """

    image_size: tuple[int, int]
    model: str = SMALL_CNN
    weights: str | None = None
    batch_size: int = 32
    epochs: int = 10
    learning_rate: float = 1e-3
    resize: str = STRETCH
    augment: str = DEFAULT_AUGMENTATION
    early_stopping_patience: int = 0
    shuffle_records: int = 2048
    shuffle_bytes: int = 256 << 20
    cache: str = NO_CACHE
    num_threads: int = 0
    ram_budget_bytes: int = 1 << 30
    seed: int = 0
    verify: bool = False
    profile_input: bool = False
    checkpoint_steps: int = 1000
    strategy: str = "auto"
    loop: str = "fit"
    precision: str = "float32"
    steps_per_execution: int = 1

    def __post_init__(self) -> None:
        """Checks the values.

        Raises:
            UsageError: A value is out of its range.
        """
        object.__setattr__(self, "image_size", self.input_options.image_size)
        check_model_name(self.model)
        check_count("epochs", self.epochs, 1)
        check_count("early_stopping_patience", self.early_stopping_patience, 0)
        if type(self.learning_rate) not in (int, float) or not 0 < self.learning_rate < 100:
            raise UsageError(f"learning_rate is {self.learning_rate!r}, expected a number above 0.")
        check_count("checkpoint_steps", self.checkpoint_steps, 0)
        check_count("steps_per_execution", self.steps_per_execution, 1)
        check_choice("strategy", self.strategy, STRATEGIES)
        check_choice("loop", self.loop, LOOPS)
        check_choice("precision", self.precision, PRECISIONS)

    @property
    def input_options(self) -> InputOptions:
        """How records become batches."""
        return InputOptions(**pick_fields(self, InputOptions))

    def to_dict(self) -> dict[str, Any]:
        """Returns the options as values that JSON knows."""
        return {**dataclasses.asdict(self), "image_size": list(self.image_size)}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> TrainingOptions:
        """Makes options from `to_dict`'s form.

        Raises:
            UsageError: A name is unknown, `image_size` is missing, or a value is wrong.
        """
        names = [field.name for field in dataclasses.fields(cls)]
        for name in values:
            if name not in names:
                close = difflib.get_close_matches(name, names, n=1)
                raise UsageError(
                    f"Training has no option {name!r}.",
                    f"Did you mean {close[0]}?" if close else f"Options: {', '.join(names)}.",
                )
        if "image_size" not in values:
            raise UsageError("Training needs the option image_size: [height, width] in pixels.")
        return cls(**values)


def pick_fields(options: Any, target: type) -> dict[str, Any]:
    """Returns the values of those fields of a dataclass that another dataclass has, too, by name.

    Args:
        options: The one with values.
        target: The class of the other one.
    """
    names = {each.name for each in dataclasses.fields(target)}
    fields = (each.name for each in dataclasses.fields(options))
    return {name: getattr(options, name) for name in fields if name in names}


def _is_count(value: object, least: int, most: int | None = None) -> bool:
    if not isinstance(value, int) or isinstance(value, bool):
        return False
    return value >= least and (most is None or value <= most)


def _check_pair(name: str, value: Any, what: str, least: int) -> tuple[int, int]:
    pair = tuple(value) if isinstance(value, Iterable) else ()
    if len(pair) != 2 or not all(_is_count(number, least) for number in pair):
        raise UsageError(f"{name} is {value!r}, expected {what} at least {least}.")
    return pair


def choose_short_side(image_size: tuple[int, int]) -> int:
    """Returns the short side, in pixels, of which a center crop leaves the longer one of a view.

    Rounded as the crop is: a pixel more, and what is cut out of a square has to be resized.
    """
    share, parts = CENTER_SHARE
    return (2 * parts * max(image_size) + share) // (2 * share)


def check_choice(name: str, value: object, choices: tuple[str, ...]) -> None:
    """Checks that an option is one of some texts.

    Raises:
        UsageError: It is not.
    """
    if value not in choices:
        raise UsageError(f"{name} is {value!r}, expected one of {', '.join(choices)}.")


def check_count(name: str, value: object, least: int, most: int | None = None) -> None:
    """Checks that an option is a whole number, and no truth value.

    Raises:
        UsageError: It is not, or is below the least or above the most.
    """
    if not _is_count(value, least, most):
        limits = f"of at least {least}" if most is None else f"from {least} to {most}"
        raise UsageError(f"{name} is {value!r}, expected a whole number {limits}.")
