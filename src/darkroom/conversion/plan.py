"""From a manifest to a dataset: plan the shards, run Beam, commit.

OUTPUT_DIR/
  Split-train/data_tfrecord-00000-of-00016   every child of a Split folder is data
  labels.txt                                 one label a line, in order
  index/index-00000-of-00018.parquet         one row a record
  rejects.parquet  rejects.jsonl             one row a refused row
  dataset.json                               the commit, written last
  .attempt/journal.json                      until then: all files that this run writes
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import PIL
import simplejpeg

from darkroom import storage
from darkroom.conversion import sharding
from darkroom.conversion.output import ownership
from darkroom.conversion.result import count_rejects
from darkroom.conversion.shard import ShardReport, ShardTask
from darkroom.dataset import checksums, example, index, labels, rejects
from darkroom.dataset import commit as datasets
from darkroom.dataset.commit import Dataset, Shard, Split
from darkroom.dataset.layout import Folders
from darkroom.dataset.reasons import format_hint
from darkroom.dataset.schema import Kind
from darkroom.errors import DataError, UsageError
from darkroom.images.prepare import ImageOptions
from darkroom.manifest.table import MANIFEST_FILE, Manifest, read_manifest
from darkroom.runtime.text import make_visible

if TYPE_CHECKING:
    from darkroom.conversion.beam.transforms import WriteDataset

COMPRESSIONS = ("none", "gzip")
DEFAULT_MAX_REJECTS = 0.01
_SHOWN_REJECTS = 10

_FEATURE_TYPES = {Kind.INTEGER: "int64", Kind.FLOAT: "float", Kind.STRING: "bytes"}
_IMAGE_FEATURES = {
    example.IMAGE_ENCODED: "bytes",
    example.IMAGE_FORMAT: "bytes",
    example.IMAGE_HEIGHT: "int64",
    example.IMAGE_WIDTH: "int64",
    example.IMAGE_CHANNELS: "int64",
    example.IMAGE_FILENAME: "bytes",
    example.IMAGE_SOURCE_ID: "bytes",
    example.IMAGE_SHA256: "bytes",
}
_LABEL_FEATURES = {example.LABEL_NUMBER: "int64", example.LABEL_TEXT: "bytes"}


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
        sharding.parse_shard_counts(self.num_shards)

    def to_json(self) -> str:
        """Returns the options as JSON text, the form in which a pipeline carries them."""
        return json.dumps(asdict(self), sort_keys=True)

    @classmethod
    def from_json(cls, text: str) -> ConversionOptions:
        """Returns the options that `to_json` wrote."""
        values = json.loads(text)
        return cls(**{**values, "image": ImageOptions(**values["image"])})


@dataclass(frozen=True)
class Commit:
    """The last step of a conversion, run by a worker; see `__call__`.

    Attributes:
        folders: Where everything lies.
        options: How the records were made.
        max_rejects: Share of rejected rows over which nothing is committed; None for any.
    """

    folders: Folders
    options: ConversionOptions
    max_rejects: float | None = None

    def __call__(self, reports: Sequence[ShardReport]) -> None:
        """Writes rejects, label map and, unless too much was refused, `dataset.json`.

        Args:
            reports: What became of every shard, in order.
        """
        folders = self.folders
        manifest = read_manifest(folders.manifest)
        parts = [storage.join(folders.manifest_rejects, rejects.PARQUET_FILE)]
        parts += [report.rejects for report in reports if report.rejected]
        rejected = rejects.write_rejects(folders.rejects, parts)
        label_text = labels.format_labels(manifest.labels)
        label_path = storage.join(folders.examples, labels.LABELS_FILE)
        storage.write_bytes(label_path, label_text.encode(), known_part=True)
        dataset = _make_dataset(manifest, self.options, reports, rejected)
        over = self.max_rejects is not None and rejected > self.max_rejects * manifest.rows
        committed = bool(dataset.written) and not over
        if committed:
            for split in dataset.splits:
                storage.sync_folder(storage.join(folders.examples, sharding.split_folder(split)))
            files = index.list_index_files(folders.index)
            checksums.write_sums(folders.index, [os.path.basename(file) for file in files])
            datasets.write_dataset(folders.examples, dataset)
        # Last, so that a run that is killed before the commit can be resumed.
        ownership.end_attempt(folders, committed=committed)


def plan_conversion(
    folders: Folders, options: ConversionOptions, max_rejects: float | None = None
) -> WriteDataset:
    """Returns the Beam transform that converts a manifest.

    Args:
        folders: Where everything lies; `prepare_output` makes them ready for the tasks.
        options: How records are made.
        max_rejects: Share of rejected rows over which the dataset is not committed.

    Raises:
        DataError: There is no manifest, or it has no rows.
    """
    from darkroom.conversion.beam.transforms import WriteDataset

    manifest = read_manifest(folders.manifest)
    if not manifest.num_examples:
        raise DataError(
            f"Nothing can be written: {manifest.rejected} of {manifest.rows} rows were refused. "
            + list_rejects(folders.manifest_rejects),
            f"Mend the source. {format_hint(count_rejects(folders.manifest_rejects))}".rstrip(),
        )
    shards = sharding.plan_shards(manifest, options.num_shards)
    work = storage.join(folders.work, _identify_plan(folders.manifest, manifest, options))
    tasks = [
        ShardTask(
            range=shard,
            manifest=folders.manifest,
            examples=folders.examples,
            index=folders.index,
            work=work,
            inputs=manifest.inputs,
            has_images=manifest.has_images,
            image=options.image,
            compressed=options.compression == "gzip",
            total=manifest.num_examples,
            source=manifest.fingerprint,
        )
        for shard in shards
    ]
    return WriteDataset(tasks, Commit(folders, options, max_rejects))


def _identify_plan(folder: str, manifest: Manifest, options: ConversionOptions) -> str:
    """Returns a name for all that the bytes of the shards depend on."""
    rows = storage.hash_file(storage.join(folder, MANIFEST_FILE))
    parts = (version("darkroom"), rows, manifest.fingerprint, describe_options(manifest, options))
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:16]


def list_rejects(folder: str) -> str:
    """Returns the first rejects of a folder for a message, each on a line of its own."""
    lines: list[str] = []
    for reject in rejects.read_rejects(storage.join(folder, rejects.PARQUET_FILE)):
        if len(lines) == _SHOWN_REJECTS:
            lines.append("\n  ...")
            break
        text = f"row {reject.row}: {reject.reason} ({reject.detail}) {reject.uri}"
        lines.append(f"\n  {make_visible(text)}")
    return "The first:" + "".join(lines) if lines else ""


def _make_dataset(
    manifest: Manifest, options: ConversionOptions, reports: Sequence[ShardReport], rejected: int
) -> Dataset:
    splits = {split: _collect_split(split, reports) for split in manifest.splits}
    return Dataset(
        format_version=datasets.FORMAT_VERSION,
        fingerprint="",
        options=describe_options(manifest, options),
        checks=options.image.checks,
        features=_describe_features(manifest),
        labels=tuple(manifest.labels),
        rows=manifest.rows,
        written=sum(split.records for split in splits.values()),
        rejected=rejected,
        deduplicated=manifest.deduplicated,
        splits=splits,
    ).with_fingerprint()


def _collect_split(split: str, reports: Sequence[ShardReport]) -> Split:
    own = [report for report in reports if report.split == split]
    shards = tuple(Shard(r.file, r.records, r.size_bytes, r.sha256) for r in own)
    return Split(sum(shard.records for shard in shards), shards)


def describe_options(manifest: Manifest, options: ConversionOptions) -> dict[str, Any]:
    """Returns what the bytes depend on; re-encoded images also on the codecs' versions."""
    return {
        **asdict(options.image),
        "compression": options.compression,
        "num_shards": dict(options.num_shards),
        "seed": manifest.seed,
        "codecs": {"pillow": PIL.__version__, "simplejpeg": simplejpeg.__version__},
    }


def _describe_features(manifest: Manifest) -> dict[str, dict[str, str]]:
    types = dict(_IMAGE_FEATURES) if manifest.has_images else {}
    types |= _LABEL_FEATURES if manifest.has_labels else {}
    types |= {name: _FEATURE_TYPES[Kind(kind)] for name, kind in manifest.inputs.items()}
    return {name: {"type": types[name]} for name in sorted(types)}
