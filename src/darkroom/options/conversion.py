"""How a source becomes a manifest, and the manifest records."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from darkroom.dataset.splits import SPLITS, name_split
from darkroom.errors import UsageError
from darkroom.options.checks import as_python, check_flag, pick_fields
from darkroom.options.fields import check_fields, document, option
from darkroom.options.image import ImageFields, ImageOptions
from darkroom.options.sidecars import READERS, check_readers
from darkroom.options.source import SourceFields
from darkroom.runtime.lazy_names import LazyModule

if TYPE_CHECKING:
    from darkroom.options import manifest as manifests
else:
    # Loading it would make `darkroom convert --help` slow.
    manifests = LazyModule("darkroom.options.manifest")

COMPRESSIONS = ("none", "gzip")
DEFAULT_STORE_PATIENCE_SECONDS = 180.0
DEFAULT_SHARD_BYTES = 64 << 20


@document
@dataclass(frozen=True, kw_only=True)
class ConversionFields(ImageFields):
    """How a manifest becomes records."""

    compression: str = option(
        "none",
        "Compression of the record files.",
        group="conversion",
        choices=COMPRESSIONS,
        runtime=True,
        more="gzip is slower to write and to read, and JPEGs do not shrink.",
    )
    num_shards: int | Mapping[str, int] | None = option(
        None,
        "Number of shards per split.",
        group="conversion",
        shown="from the size of the data",
        more="In Python also by split, as in {'train': 8}; 0 and None mean the default. A new or "
        "removed image then moves the images of all shards.",
    )
    shard_bytes: int = option(
        DEFAULT_SHARD_BYTES,
        "The size over which a shard is divided, by the sizes of the images in the source.",
        group="conversion",
        least=1 << 10,
        most=1 << 40,
        metavar="BYTES",
        more="Shards have between a half and all of it. Images of unknown size count as 100 kB.",
    )
    store_patience_seconds: float = option(
        DEFAULT_STORE_PATIENCE_SECONDS,
        "How long reads and writes are tried again while a store does not answer.",
        group="conversion",
        least=1,
        most=86_400,
        metavar="SECONDS",
        more="Then the conversion ends, and no row is rejected for it. ManifestGen in a pipeline "
        "of TFX always waits 180 seconds for the list.",
    )


@document
@dataclass(frozen=True, kw_only=True)
class RecordOptions(ConversionFields):
    """How a manifest becomes records; checked when created."""

    def __post_init__(self) -> None:
        """Checks the options, and gives `num_shards` the form of a table by split.

        Raises:
            UsageError: A value is out of its range.
        """
        check_fields(self)
        object.__setattr__(self, "num_shards", parse_shard_counts(self.num_shards))

    @property
    def image(self) -> ImageOptions:
        """How images are checked and stored."""
        return ImageOptions(**pick_fields(self, ImageOptions))

    @property
    def shard_counts(self) -> dict[str, int]:
        """Number of shards by split; from the bytes where a split is not named."""
        return parse_shard_counts(self.num_shards)

    def to_json(self) -> str:
        """Returns the options as JSON text, the form in which a pipeline carries them."""
        return json.dumps(asdict(self), sort_keys=True)

    @classmethod
    def from_json(cls, text: str) -> RecordOptions:
        """Returns the options that `to_json` wrote."""
        return cls(**json.loads(text))


@document
@dataclass(frozen=True, kw_only=True)
class UpdateFields:
    """What a conversion takes from a dataset that exists."""

    update: bool = option(
        False,
        "Replace the dataset in the output, and read only images that are new or changed.",
        group="conversion",
        more="The list is the whole list: images that are not in it leave the dataset. An image is "
        "unchanged when its file has the same size and time (etag in a store). It stays in its "
        "split, unless the list says another one.",
    )
    base: str | None = option(
        None,
        "Dataset from which unchanged images are taken, instead of that in the output.",
        group="conversion",
        metavar="DIR",
    )
    append: bool = option(
        False,
        "The list has only new and corrected images: all others of the dataset stay.",
        group="conversion",
        more="It says the whole of each image that it names: split, label and all objects.",
    )
    allow_removals: bool = option(
        False,
        "Allow more than a tenth of the images of the dataset to be missing in the list.",
        group="conversion",
    )
    merge_spans: bool = option(
        False,
        "Put all images into one span.",
        group="conversion",
        more="Shards are written again once, from the old records.",
    )
    recheck: float = option(
        0.0,
        "Share of the unchanged images and of the finished shards that are read, to see whether "
        "they have other bytes.",
        group="conversion",
        least=0,
        most=1,
        metavar="SHARE",
        more="A damaged shard is made again from the source. Shards that were written after their "
        "commit are always read.",
    )


@document
@dataclass(frozen=True, kw_only=True)
class UpdateOptions(UpdateFields):
    """What a conversion takes from a dataset that exists; checked when created."""

    def __post_init__(self) -> None:
        """Checks the options.

        Raises:
            UsageError: A value is of another type, or does not fit another one.
        """
        check_fields(self)
        given = self.append or self.allow_removals or self.merge_spans
        if given and not (self.update or self.base):
            raise UsageError(
                "append, allow_removals and merge_spans are for an update.",
                "Give --update or --base, too (update=, base= in Python).",
            )


@document
@dataclass(frozen=True, kw_only=True)
class EmbedFields:
    """What a finished dataset gets beside its index."""

    embed: bool = option(
        False,
        "Also compute features of the images, by which those that look alike are found.",
        group="conversion",
        more="By efficientnet-lite0, in this process; see `darkroom.embed`.",
    )


@document
@dataclass(frozen=True, kw_only=True)
class ConversionOptions(SourceFields, ConversionFields, UpdateFields, EmbedFields):
    """All options of `darkroom.convert`, checked when created.

    In Python `columns` may also be a `Schema`, `label_map` a list of labels, and a path an
    `os.PathLike`.
    """

    describe: tuple[str, ...] = option(
        (),
        f"Also write small files with which other readers find the records: {', '.join(READERS)}.",
        group="conversion",
        metavar="NAME,...",
        more="See `darkroom.describe`.",
    )
    wait: bool = option(True, "Wait for the end of a Dataflow job.", group="cluster", flag=None)
    beam_options: Mapping[str, Any] = option(
        {}, "Beam's own pipeline options by name.", group="cluster", flag=None
    )

    def __post_init__(self) -> None:
        """Checks the options.

        Raises:
            UsageError: A value is out of its range, or two do not go together.
        """
        check_flag("wait", self.wait)
        check_flag("embed", self.embed)
        given = self.beam_options
        if not isinstance(given, Mapping) or not all(isinstance(name, str) for name in given):
            raise UsageError(
                f"beam_options must map names to values, got {given!r:.80}.",
                "For example beam_options={'num_workers': 4}.",
            )
        readers = check_readers(self.describe, compressed=self.compression == "gzip")
        object.__setattr__(self, "describe", readers)
        if isinstance(self.base, os.PathLike):
            object.__setattr__(self, "base", os.fspath(self.base))
        _ = self.manifest, self.records, self.updates

    @property
    def manifest(self) -> manifests.ManifestOptions:
        """How the rows of the source become a manifest."""
        return manifests.ManifestOptions.parse(**pick_fields(self, SourceFields))

    @property
    def records(self) -> RecordOptions:
        """How the manifest becomes records."""
        return RecordOptions(**pick_fields(self, RecordOptions))

    @property
    def updates(self) -> UpdateOptions:
        """What is taken from a dataset that exists."""
        return UpdateOptions(**pick_fields(self, UpdateOptions))


def parse_shard_counts(given: int | Mapping[str, int] | None) -> dict[str, int]:
    """Returns the number of shards by split, from one number for all or one per split.

    Raises:
        UsageError: A number is not positive, or a split is unknown.
    """
    given = as_python(given)
    if given is None or given == 0:
        return {}
    if not isinstance(given, int | Mapping) or isinstance(given, bool):
        raise UsageError(f"num_shards must be a whole number or one per split, got {given!r}.")
    counts = (
        dict.fromkeys(SPLITS, given)
        if isinstance(given, int)
        else {name_split(name): as_python(count) for name, count in given.items()}
    )
    if unknown := sorted(map(str, set(counts) - set(SPLITS))):
        raise UsageError(f"Unknown splits {unknown} in the shard counts.", f"Known: {SPLITS}.")
    if bad := {s: n for s, n in counts.items() if not isinstance(n, int) or n < 1}:
        raise UsageError(f"Shard counts must be positive, got {bad}.")
    return counts
