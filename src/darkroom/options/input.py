"""How records become batches."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field, replace
from typing import TypeVar

from darkroom.errors import UsageError
from darkroom.options.augmentation import Augmentation, parse_augmentation
from darkroom.options.checks import MOST_THREADS, check_pair
from darkroom.options.fields import (
    FREE,
    LEARNED,
    ORDER,
    SEED_HELP,
    check_fields,
    describe_option,
    document,
    option,
)
from darkroom.targets.kind import USUAL_AUGMENTATION, find_kind

STRETCH, CENTER_CROP = RESIZES = ("stretch", "center_crop")
# The share of the sides that a center crop keeps, as 224 of 256.
CENTER_SHARE = (7, 8)
NO_CACHE, MEMORY_CACHE = "none", "memory"
SHARDINGS = ("off", "dynamic", "file")
# TensorFlow makes room for a batch, and starts threads, before it knows how much it will read.
MOST_IN_BATCH, _MOST_FILES = 1 << 20, 1 << 10
_SHARDINGS_BY = ("record", "file")
_DTYPES = ("uint8", "float32")
# As Keras names them.
BOX_FORMATS = (
    "xyxy",
    "yxyx",
    "xywh",
    "center_xywh",
    "center_yxhw",
    "rel_xyxy",
    "rel_yxyx",
    "rel_xywh",
    "rel_center_xywh",
)
_Options = TypeVar("_Options", bound="ReadingFields")

# Without a default where pixels are needed in a size of the caller's choice.
IMAGE_SIZE = describe_option(
    "Height and width of the images that the model gets, in pixels.",
    group="model",
    metavar="HEIGHTxWIDTH",
    runtime=True,
)


@document
@dataclass(frozen=True, kw_only=True)
class ReadingFields:
    """How records are read, for input alone and for training."""

    batch_size: int = option(
        32,
        "Images per batch.",
        group="training",
        least=1,
        most=MOST_IN_BATCH,
        runtime=True,
        more="In training over all devices together; with `shard` in this part of it.",
    )
    resize: str = option(
        STRETCH,
        "Stretch whole images to the image size, or cut out their center.",
        group="model",
        choices=RESIZES,
        runtime=True,
        more="`center_crop` takes the middle of an image in the form of `image_size`, less an "
        "eighth of its sides. The exported model does the same.",
    )
    augment: str | None = option(
        None,
        "Random augmentation of training images: none, or parts such as crop,flip,color=0.4.",
        group="training",
        metavar="PARTS",
        runtime=True,
        shown="flip; none for numbers",
        more="The parts are crop, flip, color, rotate, cutout and mixup; "
        "`darkroom.options.augmentation.parse_augmentation` describes them.",
        resume=LEARNED,
    )
    shuffle_records: int = option(
        2048,
        "Records held in memory to shuffle training data; 0 keeps the order of the files.",
        group="training",
        least=0,
        resume=ORDER,
    )
    shuffle_bytes: int = option(
        256 << 20,
        "Bytes held in memory to shuffle training data.",
        group="training",
        least=0,
        shown="256 MiB",
        more="The smaller of this and `shuffle_records` counts.",
        resume=ORDER,
    )
    record_cache: str = option(
        NO_CACHE,
        "Where records are kept after the first epoch: none, memory, or a local folder.",
        group="training",
        metavar="WHERE",
        runtime=True,
        more="Records are kept encoded. `memory` is not used when they are more than half of "
        "`ram_budget_bytes`. With `darkroom.load` the files in a folder are found again by "
        "the next run; a training deletes its own when it ends.",
        resume=ORDER,
    )
    num_threads: int = option(
        0,
        "Threads that decode images; 0 for one per core.",
        group="training",
        least=0,
        most=MOST_THREADS,
        more="Without TensorFlow, as many processes where threads wait for each other.",
        resume=FREE,
    )
    ram_budget_bytes: int = option(
        1 << 30,
        "Bytes of memory that reading a split may use.",
        group="training",
        least=1 << 20,
        shown="1 GiB",
        runtime=True,
        more="For records to shuffle, the cache, and batches prepared ahead.",
        resume=ORDER,
    )
    seed: int = option(
        0,
        SEED_HELP,
        group="data",
        least=0,
        most=1 << 40,
        runtime=True,
        resume=ORDER,
    )


@document
@dataclass(frozen=True)
class InputOptions(ReadingFields):
    """How records become batches; checked when created; benchmarks/lab/input.md measures them."""

    image_size: tuple[int, int] = field(metadata=IMAGE_SIZE)
    _: KW_ONLY
    cycle_length: int = option(
        16,
        "Files read at the same time.",
        group="training",
        least=1,
        most=_MOST_FILES,
        more="More helps with a slow disk or store.",
    )
    block_length: int = option(
        4, "Records taken from a file before it is the next file's turn.", group="training", least=1
    )
    prefetch: int = option(
        2,
        "Batches prepared ahead.",
        group="training",
        least=0,
        more="More helps when steps differ in length.",
    )
    deterministic: bool = option(True, "The same batches in every run.", group="training")
    scaled_decoding: bool = option(
        True,
        "Decode a JPEG at a half, a quarter or an eighth of its size where that is enough.",
        group="training",
    )
    repeat: int | None = option(
        1, "Passes over the training data; None for endless.", group="training", least=1
    )
    drop_remainder: bool = option(
        False, "Leave out the last, smaller batch of training.", group="training"
    )
    shard: tuple[int, int] = option(
        (0, 1),
        "(index, count): this process takes one of `count` equal parts of every epoch.",
        group="training",
        more="The batches of all parts together are those of the whole; an incomplete last "
        "batch is left out.",
    )
    shard_by: str = option(
        "record",
        "Share the data among processes by record, or by file.",
        group="training",
        choices=_SHARDINGS_BY,
        more="`record` takes every `count`-th record, in an order that does not depend on the "
        "number of parts. With `file` each process reads only its own files.",
    )
    dtype: str = option(
        "uint8",
        "Type of the pixels; the values are 0 to 255 with both.",
        group="training",
        choices=_DTYPES,
    )
    num_classes: int | None = option(
        None,
        "Number of labels, for mixup; None: as in the dataset.",
        group="training",
        least=0,
        most=1 << 20,
    )
    min_visible: float = option(
        0.25,
        "Share of the area of a box that a view must show; else its object is left out.",
        group="training",
        least=0,
        most=1,
        more="A box that is cut is made smaller. The area is that of the box after a rotation.",
    )
    first_label: int = option(
        0,
        "Number of the first label of boxes; 1 where a model takes 0 for the background.",
        group="training",
        least=0,
        most=1,
    )
    bounding_box_format: str = option(
        "xyxy",
        "What the four numbers of a box are, as Keras names it; only for TensorFlow.",
        group="training",
        choices=BOX_FORMATS,
        more="Others get left, top, right and bottom in pixels of the view, which is xyxy.",
    )
    ragged: bool = option(
        False,
        "Give boxes as ragged tensors, without padding; only for TensorFlow.",
        group="training",
        more="Else each image has as many places as the fullest image of the dataset has objects.",
    )
    service: str | None = option(
        None,
        "Address of a tf.data service that prepares training batches: grpc://host:port.",
        group="training",
        more="Each of its workers uses `num_threads`. Their order then differs from run to "
        "run, and each worker's last batch may be smaller.",
    )
    service_sharding: str = option(
        "dynamic",
        "How the workers of the service share files.",
        group="training",
        choices=SHARDINGS,
        more="`darkroom.input.service.distribute` describes the ways.",
    )
    service_job_name: str | None = option(
        None,
        "Trainings with the same name share the passes of the service.",
        group="training",
        metavar="NAME",
        more="Each batch then goes to one of them. None: each has separate passes. Use a name "
        "once in the life of a dispatcher.",
    )

    def __post_init__(self) -> None:
        """Checks the values.

        Raises:
            UsageError: A value is out of its range, or two do not go together.
        """
        size = check_pair("image_size", self.image_size, "(height, width) in pixels, each", 1)
        object.__setattr__(self, "image_size", size)
        shard = check_pair("shard", self.shard, "(index, count), each", 0)
        object.__setattr__(self, "shard", shard)
        if shard[0] >= shard[1]:
            raise UsageError(f"shard is {shard!r}, expected an index below the count.")
        check_fields(self)
        cache = self.record_cache
        if not cache or "://" in cache or "\0" in cache:
            raise UsageError(f"record_cache is {cache!r}, expected none, memory or a local path.")
        if cache.startswith("~"):
            from darkroom.storage.uris import expand_home  # takes time, and few need it

            object.__setattr__(self, "record_cache", expand_home(cache))
        if self.service is not None and "\0" in self.service:
            raise UsageError("service is not an address.", "Give grpc://host:port.")
        if self.service is not None and (shard[1] > 1 or cache != NO_CACHE):
            raise UsageError(
                f"service is {self.service!r}, which does not go with shard or record_cache: its "
                "workers read other images in every run.",
                "Leave out the service, or shard and record_cache.",
            )
        name = self.service_job_name
        if name is not None and (not name or "\0" in name):
            raise UsageError(f"service_job_name is {name!r}, expected a name or None.")
        if name is not None and self.service is None:
            raise UsageError(
                f"service_job_name is {name!r}, but there is no service.",
                "Give the service's address, or leave out service_job_name.",
            )
        if self.augment is not None:
            parse_augmentation(self.augment)

    @property
    def augmentation(self) -> Augmentation:
        """The augmentation of training images, as values."""
        return parse_augmentation(USUAL_AUGMENTATION if self.augment is None else self.augment)


# Of a mark that is not a type, `typing.get_type_hints` of Python 3.10 makes an error.
del InputOptions.__annotations__["_"]


def choose_augmentation(options: _Options, kind: str) -> _Options:
    """Returns options with the augmentation that fits a kind of target, if none is named.

    Raises:
        UsageError: One is named that does not fit.
    """
    target = find_kind(kind)
    if options.augment is None:
        return replace(options, augment=target.augmentation)
    if target.moves and parse_augmentation(options.augment).mixup:
        raise UsageError(
            f"augment has mixup, which mixes what images are labelled with, and {kind} cannot be "
            "mixed.",
            "Leave mixup out of augment.",
        )
    return options
