"""How a manifest becomes records."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field

from darkroom.dataset.splits import SPLITS
from darkroom.errors import UsageError
from darkroom.options.image import ImageOptions

COMPRESSIONS = ("none", "gzip")
DEFAULT_MAX_REJECTS = 0.01


def parse_shard_counts(given: int | Mapping[str, int] | None) -> dict[str, int]:
    """Returns the number of shards by split, from one number for all or one a split.

    Raises:
        UsageError: A number is not positive, or a split is unknown.
    """
    if given is None or given == 0:
        return {}
    if not isinstance(given, int | Mapping) or isinstance(given, bool):
        raise UsageError(f"num_shards must be a whole number or one a split, got {given!r}.")
    counts = dict.fromkeys(SPLITS, given) if isinstance(given, int) else dict(given)
    if unknown := sorted(set(counts) - set(SPLITS)):
        raise UsageError(f"Unknown splits {unknown} in the shard counts.", f"Known: {SPLITS}.")
    if bad := {s: n for s, n in counts.items() if not isinstance(n, int) or n < 1}:
        raise UsageError(f"Shard counts must be positive, got {bad}.")
    return counts


@dataclass(frozen=True)
class ConversionOptions:
    """How a manifest becomes records.

    Attributes:
        image: How images are checked and stored.
        compression: `none`, or `gzip`: slower to write and to read, and JPEGs do not shrink.
        num_shards: Number of shards by split; from the bytes where a split is not named.
    """

    image: ImageOptions = field(default_factory=ImageOptions)
    compression: str = "none"
    num_shards: Mapping[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Checks the options.

        Raises:
            UsageError: A value is out of its range.
        """
        if self.compression not in COMPRESSIONS:
            raise UsageError(f"compression must be one of {COMPRESSIONS}: {self.compression!r}.")
        parse_shard_counts(self.num_shards)

    def to_json(self) -> str:
        """Returns the options as JSON text, the form in which a pipeline carries them."""
        return json.dumps(asdict(self), sort_keys=True)

    @classmethod
    def from_json(cls, text: str) -> ConversionOptions:
        """Returns the options that `to_json` wrote."""
        values = json.loads(text)
        return cls(**{**values, "image": ImageOptions(**values["image"])})
