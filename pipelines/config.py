"""Everything that a run can be told, in one frozen dataclass that checks itself."""

from __future__ import annotations

import dataclasses
import difflib
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from darkroom import storage
from darkroom.conversion.beam.runners import LOCAL_BEAM_ARGS
from darkroom.dataset.labels import read_labels
from darkroom.dataset.schema import Schema
from darkroom.dataset.splits import SplitRatios
from darkroom.errors import UsageError
from darkroom.options.augmentation import DEFAULT_AUGMENTATION
from darkroom.options.checks import pick_fields
from darkroom.options.conversion import DEFAULT_MAX_REJECTS, ConversionOptions, parse_shard_counts
from darkroom.options.image import CHECKS_FULL, DEFAULT_JPEG_QUALITY, KEEP_ENCODING, ImageOptions
from darkroom.options.input import MEMORY_CACHE, NO_CACHE, STRETCH
from darkroom.options.manifest import DEFAULT_ENCODING, ManifestOptions, parse_encoding
from darkroom.options.training import TrainingOptions
from darkroom.options.validation import ValidationOptions
from darkroom.pipelines.compilation.resources import Resources, parse_resources
from darkroom.pipelines.field_types import check_types
from darkroom.storage import uris

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

METADATA_FILE = "metadata.sqlite"
_CACHES_WITHOUT_FILES = (NO_CACHE, MEMORY_CACHE)
_NAME = re.compile(r"[a-z][a-z0-9-]{0,62}")


@dataclass(frozen=True, kw_only=True)
class PipelineConfig:
    """Configuration of a pipeline run.

    Attributes:
        data: Path of a CSV, JSONL or Parquet file, a pattern of such files, or a folder of images.
        root: Folder for metadata, artifacts, log and, unless `push_to` says otherwise, models.
        name: Name of the pipeline: lower case letters, digits and dashes.
        columns: Kind of each column by name; told from the names when None.
        label_map: Path of a file with one label a line, in order; sorted text when None.
        split_ratios: Shares of train, eval and test for rows that declare no split.
        seed: Seed of order, splits, weights and augmentation.
        source_encoding: How a CSV or JSONL file is encoded.
        allowed_roots: Folders below which all images must lie, wherever links lead; none allows
            every place.
        exclude: Path of a list of images to leave out; see `darkroom.manifest.exclusions`.
        checks: `full` decodes every image before it is written, `header` looks at its start.
        resize_short_side: Short side in pixels to which larger images are reduced.
        encoding: Images are stored as their files (`keep`) or as pixels (`raw`).
        jpeg_quality: Quality, 1 to 100, of JPEGs that were reduced; below 95 with 4:2:0.
        compression: Of the records: `none` or `gzip`.
        num_shards: Shards of each split; from the bytes when None.
        schema: Path of a TFDV schema (text format) to check against; made from the training split
            when None.
        policies: `fail`, `warn` or `off` by check; see
            `darkroom.options.validation.DEFAULT_POLICIES`.
        max_rejects: Share of refused rows that the gate lets pass.
        min_class_images: Training images that a class needs.
        model: `small_cnn`, `keras.applications:NAME` or `package.module:function`.
        weights: Path of weights to start from.
        image_size: (height, width) in pixels that the model takes.
        resize: How whole images become `image_size`: `stretch` or `center_crop`.
        batch_size: Images in a batch, those of all devices together.
        epochs: Passes over the training data.
        learning_rate: Of the Adam optimizer.
        augment: What training does to images: `none`, or parts like `crop,flip,color=0.4`; see
            `darkroom.options.augmentation.parse_augmentation`.
        early_stopping_patience: Epochs without progress after which training stops; 0 for never.
        profile_input: Whether what the stages of the input cost is measured after training.
        verify: Whether the trainer reads the records once more and compares their hashes first.
        checkpoint_steps: Batches between two checkpoints within an epoch; 0: only at its end.
        strategy: Devices that share a batch: `auto`, `one`, `mirrored` or `multi_worker`.
        loop: `fit`, Keras's, or `custom`.
        precision: `float32`, `mixed_float16` or `mixed_bfloat16`.
        steps_per_execution: Batches that one call of TensorFlow trains on.
        record_cache: Where records are kept after the first epoch: `none`, `memory`, or a folder on
            local disk.
        ram_budget_bytes: What reading a split may hold in memory.
        min_accuracy: Accuracy on the eval split below which a model is not pushed.
        push_to: Folder for pushed models; when None `ROOT/pushed` here, and the artifact alone in
            a compiled pipeline.
        beam_args: Arguments of Beam for the components that use it.
        cache: Whether what has not changed is taken from earlier runs.
        source_fingerprint: State of the source, see `darkroom.manifest.fingerprint`. When None, a
            run takes it itself, and what is compiled reads the source in each run unless
            `darkroom submit` takes it; a text is used as it is.
        model_fingerprint: State of the model's own files, see `darkroom.pipelines.local.pinning`.
        checkpoint_dir: Folder where a training keeps its checkpoints until it is done, so that a
            run that was killed goes on; the model-run artifact when None.
        image: Container image of compiled pipelines, best by its digest.
        env: Environment variables of their containers.
        secret_env: Environment variables from Secrets, as `SECRET/KEY` by variable; Kubernetes
            only.
        volumes: Persistent volume claims by the folder where they are mounted; Kubernetes only.
        resources: What each component gets in a cluster, by component or `default`; see
            `darkroom.pipelines.compilation.resources.Resources`.
    """

    data: str
    root: str
    name: str = "darkroom"
    columns: Mapping[str, str] | None = None
    label_map: str | None = None
    split_ratios: str = "80/10/10"
    seed: int = 0
    source_encoding: str = DEFAULT_ENCODING
    allowed_roots: tuple[str, ...] = ()
    exclude: str | None = None
    checks: str = CHECKS_FULL
    resize_short_side: int | None = None
    encoding: str = KEEP_ENCODING
    jpeg_quality: int = DEFAULT_JPEG_QUALITY
    compression: str = "none"
    num_shards: int | None = None
    schema: str | None = None
    policies: Mapping[str, str] = field(default_factory=dict)
    max_rejects: float = DEFAULT_MAX_REJECTS
    min_class_images: int = 10
    model: str = "small_cnn"
    weights: str | None = None
    image_size: tuple[int, int] = (128, 128)
    resize: str = STRETCH
    batch_size: int = 32
    epochs: int = 10
    learning_rate: float = 1e-3
    augment: str = DEFAULT_AUGMENTATION
    early_stopping_patience: int = 0
    profile_input: bool = False
    verify: bool = False
    checkpoint_steps: int = 1000
    strategy: str = "auto"
    loop: str = "fit"
    precision: str = "float32"
    steps_per_execution: int = 1
    record_cache: str = NO_CACHE
    ram_budget_bytes: int = 1 << 30
    min_accuracy: float = 0.0
    push_to: str | None = None
    beam_args: tuple[str, ...] = LOCAL_BEAM_ARGS
    cache: bool = True
    source_fingerprint: str | None = None
    model_fingerprint: str = ""
    checkpoint_dir: str | None = None
    image: str = ""
    env: Mapping[str, str] = field(default_factory=dict)
    secret_env: Mapping[str, str] = field(default_factory=dict)
    volumes: Mapping[str, str] = field(default_factory=dict)
    resources: Mapping[str, Resources] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Checks every value by building what it goes into.

        Raises:
            UsageError: A value is wrong.
            OSError: The label map cannot be read.
        """
        check_types(self)
        if not _NAME.fullmatch(self.name):
            raise UsageError(
                f"The pipeline's name is {self.name!r}.",
                "Use lower case letters, digits and dashes, a letter first.",
            )
        if not 0 <= self.min_accuracy <= 1:
            raise UsageError(f"min_accuracy is {self.min_accuracy!r}, expected 0 to 1.")
        if isinstance(self.image_size, list):
            object.__setattr__(self, "image_size", tuple(self.image_size))
        for name in ("beam_args", "allowed_roots"):
            if isinstance(getattr(self, name), list):
                object.__setattr__(self, name, tuple(getattr(self, name)))
        object.__setattr__(self, "resources", parse_resources(self.resources))
        for options in ("manifest", "conversion", "validation", "training"):
            getattr(self, options)

    @property
    def manifest(self) -> ManifestOptions:
        """How the source becomes a manifest."""
        label_map = None if self.label_map is None else tuple(read_labels(self.label_map))
        return ManifestOptions(
            schema=None if self.columns is None else Schema.parse(self.columns),
            labels=label_map,
            split_ratios=SplitRatios.parse(self.split_ratios),
            seed=self.seed,
            encoding=parse_encoding(self.source_encoding),
            allowed_roots=tuple(map(storage.absolute, self.allowed_roots)),
            exclude=None if self.exclude is None else storage.absolute(self.exclude),
        )

    @property
    def conversion(self) -> ConversionOptions:
        """How the manifest becomes records."""
        return ConversionOptions(
            image=ImageOptions(
                self.checks, self.resize_short_side, self.encoding, self.jpeg_quality
            ),
            compression=self.compression,
            num_shards=parse_shard_counts(self.num_shards),
        )

    @property
    def validation(self) -> ValidationOptions:
        """What the gate lets pass."""
        return ValidationOptions(
            policies=self.policies,
            max_reject_fraction=self.max_rejects,
            min_class_images=self.min_class_images,
        )

    @property
    def training(self) -> TrainingOptions:
        """What is trained and how."""
        # The pipeline's `cache` is another one: that of its steps.
        return TrainingOptions(**{**pick_fields(self, TrainingOptions), "cache": self.record_cache})

    @property
    def pipeline_root(self) -> str:
        """Folder of the artifacts."""
        return storage.join(self.root, "artifacts")

    @property
    def push_dir(self) -> str:
        """Folder of the pushed models."""
        return storage.join(self.root, "pushed") if self.push_to is None else self.push_to


def make_config(values: Mapping[str, Any]) -> PipelineConfig:
    """Returns the configuration of values by name.

    Raises:
        UsageError: A name is unknown, a required one is missing, or a value is wrong.
    """
    names = [each.name for each in dataclasses.fields(PipelineConfig)]
    for name in values:
        if name not in names:
            near = difflib.get_close_matches(name, names, n=1)
            hint = f"Did you mean {near[0]!r}?" if near else f"Options: {', '.join(names)}."
            raise UsageError(f"There is no option {name!r}.", hint)
    if missing := [name for name in ("data", "root") if not values.get(name)]:
        raise UsageError(f"The run needs {' and '.join(missing)}.", "Give --data and --root.")
    if isinstance(columns := values.get("columns"), str):
        values = {**values, "columns": dict(Schema.parse(columns).columns)}
    try:
        return PipelineConfig(**values)
    except (TypeError, AttributeError) as error:
        raise UsageError(f"The configuration has a value of the wrong type: {error}.") from error


def merge_options(values: Mapping[str, Any]) -> dict[str, Any]:
    """Returns options by name with those of the file that `config` names; flags win.

    Raises:
        UsageError: The file is no TOML.
        OSError: It cannot be read.
    """
    given = dict(values)
    from_file = read_config_file(path) if (path := given.pop("config", None)) else {}
    return {**from_file, **given}


def read_config_file(path: str) -> dict[str, Any]:
    """Reads the values of a TOML file; relative paths in it start at its folder.

    Raises:
        UsageError: The file is no TOML.
        OSError: It cannot be read.
    """
    try:
        values = tomllib.loads(storage.read_bytes(path).decode())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise UsageError(
            f"{path} is no TOML file: {error}.", "See `darkroom run --help`."
        ) from error
    folder = storage.absolute(path).rpartition("/")[0]
    for name in ("data", "root", "label_map", "exclude", "schema", "weights", "push_to"):
        if isinstance(values.get(name), str) and _is_relative(values[name]):
            values[name] = storage.join(folder, values[name])
    if isinstance(cache := values.get("record_cache"), str) and cache not in _CACHES_WITHOUT_FILES:
        values["record_cache"] = storage.join(folder, cache)
    if isinstance(values.get("allowed_roots"), list):
        values["allowed_roots"] = [
            storage.join(folder, root) if isinstance(root, str) and _is_relative(root) else root
            for root in values["allowed_roots"]
        ]
    return values


def _is_relative(path: str) -> bool:
    # An empty path would become that of the folder, which nobody means.
    return bool(path) and not uris.has_scheme(path)
