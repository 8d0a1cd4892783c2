"""Options of input and training; they need no TensorFlow, so that a wrong one is told at once."""

from __future__ import annotations

import dataclasses
import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from darkroom.errors import UsageError
from darkroom.options.augmentation import DEFAULT_AUGMENTATION
from darkroom.options.checks import check_choice, check_count, pick_fields
from darkroom.options.input import NO_CACHE, STRETCH, InputOptions

SMALL_CNN = "small_cnn"
APPLICATIONS_PREFIX = "keras.applications:"

STRATEGIES = ("auto", "one", "mirrored", "multi_worker")
LOOPS = ("fit", "custom")
PRECISIONS = ("float32", "mixed_float16", "mixed_bfloat16")
# Under this name the Trainer's custom_config holds the options.
CONFIG_KEY = "darkroom"
# Under this one, the folder where checkpoints outlive a run that was killed.
CHECKPOINT_DIR_KEY = "checkpoint_dir"


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


def check_model_name(spec: str) -> None:
    """Checks that a text may name a model. Whether there is one of that name is not looked up.

    Raises:
        UsageError: It cannot.
    """
    module, colon, function = spec.partition(":")
    is_name = colon and function.isidentifier() and all(map(str.isidentifier, module.split(".")))
    if spec != SMALL_CNN and not is_name:
        raise UsageError(
            f"model is {spec!r}, expected {SMALL_CNN}, {APPLICATIONS_PREFIX}NAME or "
            "package.module:function."
        )
