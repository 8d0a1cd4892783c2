"""How a manifest becomes records."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass

from darkroom.dataset.splits import SPLITS, name_split
from darkroom.errors import UsageError
from darkroom.options.checks import pick_fields
from darkroom.options.fields import check_fields, document, option
from darkroom.options.image import ImageFields, ImageOptions

COMPRESSIONS = ("none", "gzip")
DEFAULT_STORE_PATIENCE_SECONDS = 180.0


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
        more="In Python also by split, as in {'train': 8}; 0 and None mean the default.",
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
class ConversionOptions(ConversionFields):
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
        values = {
            "image": asdict(self.image),
            "compression": self.compression,
            "num_shards": self.num_shards,
            "store_patience_seconds": self.store_patience_seconds,
        }
        return json.dumps(values, sort_keys=True)

    @classmethod
    def from_json(cls, text: str) -> ConversionOptions:
        """Returns the options that `to_json` wrote."""
        values = json.loads(text)
        return cls(**values.pop("image"), **values)


def parse_shard_counts(given: int | Mapping[str, int] | None) -> dict[str, int]:
    """Returns the number of shards by split, from one number for all or one per split.

    Raises:
        UsageError: A number is not positive, or a split is unknown.
    """
    if given is None or given == 0:
        return {}
    if not isinstance(given, int | Mapping) or isinstance(given, bool):
        raise UsageError(f"num_shards must be a whole number or one per split, got {given!r}.")
    counts = (
        dict.fromkeys(SPLITS, given)
        if isinstance(given, int)
        else {name_split(name): count for name, count in given.items()}
    )
    if unknown := sorted(map(str, set(counts) - set(SPLITS))):
        raise UsageError(f"Unknown splits {unknown} in the shard counts.", f"Known: {SPLITS}.")
    if bad := {s: n for s, n in counts.items() if not isinstance(n, int) or n < 1}:
        raise UsageError(f"Shard counts must be positive, got {bad}.")
    return counts
