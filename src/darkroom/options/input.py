"""How records become batches."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass

from darkroom.errors import UsageError
from darkroom.options.augmentation import DEFAULT_AUGMENTATION, Augmentation, parse_augmentation
from darkroom.options.checks import check_choice, check_count, check_pair

STRETCH, CENTER_CROP = RESIZES = ("stretch", "center_crop")
# What a center crop leaves of the sides, as 224 of 256.
CENTER_SHARE = (7, 8)
NO_CACHE, MEMORY_CACHE = "none", "memory"
SHARDINGS = ("off", "dynamic", "file")
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
    """How records become batches; checked when made. docs/lab/input.md has what each is worth.

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
        size = check_pair("image_size", self.image_size, "(height, width) in pixels, each", 1)
        object.__setattr__(self, "image_size", size)
        shard = check_pair("shard", self.shard, "(index, count), each", 0)
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


def choose_short_side(image_size: tuple[int, int]) -> int:
    """Returns the short side, in pixels, of which a center crop leaves the longer one of a view.

    Rounded as the crop is: a pixel more, and what is cut out of a square has to be resized.
    """
    share, parts = CENTER_SHARE
    return (2 * parts * max(image_size) + share) // (2 * share)
