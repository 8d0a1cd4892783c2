"""The options of a pipeline in frozen dataclasses: of a cluster for any, and all those of ours."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from darkroom import storage
from darkroom.dataset.schema import Schema
from darkroom.errors import UsageError
from darkroom.manifest.label_map import resolve_labels
from darkroom.options.checks import check_known, pick_fields
from darkroom.options.conversion import ConversionFields, EmbedFields, RecordOptions
from darkroom.options.fields import check_fields, document, list_options, option
from darkroom.options.input import MEMORY_CACHE, NO_CACHE
from darkroom.options.manifest import ManifestOptions
from darkroom.options.pipeline import FINGERPRINTS, ClusterFields, PipelineFields, check_registry
from darkroom.options.source import SourceFields
from darkroom.options.targets import (
    KUBEFLOW,
    VERTEX_BUCKETS,
    CompiledFields,
    KubeflowFields,
    VertexOptions,
)
from darkroom.options.training import IMAGENET, TrainingFields, TrainingOptions
from darkroom.options.validation import ValidationFields, ValidationOptions
from darkroom.pipelines.resources import Resources, parse_resources
from darkroom.storage import uris

__all__ = ["PipelineConfig", "make_config"]

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

_Config = TypeVar("_Config", bound="ClusterConfig")

LOG_FILE, METADATA_FILE = "log.txt", "metadata.sqlite"
_PATHS = {
    *("data", "root", "label_map", "exclude", "schema", "weights", "push_to", "baseline_model"),
    *("decisions", "groups", "record_cache", "feature_cache", "baseline"),
}
# Words that may be in the place of a path.
_WORDS = {
    "weights": (IMAGENET,),
    **dict.fromkeys(("record_cache", "feature_cache"), (NO_CACHE, MEMORY_CACHE)),
}
_NAME = re.compile(r"[a-z][a-z0-9-]{0,62}")


@document
@dataclass(frozen=True, kw_only=True)
class ClusterConfig(ClusterFields, CompiledFields):
    """The options of a cluster for a pipeline: its folders, and the resources of its tasks."""

    resources: Mapping[str, Resources] = option(
        {},
        "Resources of each component in a cluster, by component or `default`.",
        group="cluster",
        flag=None,
        more="`darkroom.pipelines.resources.Resources` lists the keys.",
    )

    def __post_init__(self) -> None:
        """Checks the values that do not depend on the target.

        Raises:
            UsageError: A value is wrong.
        """
        check_fields(self)
        if not isinstance(self.vertex, Mapping):
            raise UsageError("vertex is not a table.", "Write [vertex], and NAME = VALUE below it.")
        object.__setattr__(self, "resources", parse_resources(self.resources))


def check_name(name: str) -> None:
    """Checks the name of a pipeline, which becomes part of names of Kubernetes.

    Raises:
        UsageError: It is not such a name.
    """
    if not _NAME.fullmatch(name):
        raise UsageError(
            f"The pipeline's name is {name!r}.",
            "Use lower case letters, digits and dashes, a letter first.",
        )


@document
@dataclass(frozen=True, kw_only=True)
class PipelineConfig(
    ClusterConfig,
    PipelineFields,
    SourceFields,
    ConversionFields,
    EmbedFields,
    ValidationFields,
    TrainingFields,
):
    """Configuration of a pipeline run: its own options and those of its stages.

    The options of a stage come from its classes of fields, so a new one is an option of the
    pipeline, too.
    """

    def __post_init__(self) -> None:
        """Checks every value by building the options of its stage.

        Raises:
            UsageError: A value is wrong.
            OSError: The label map cannot be read.
        """
        super().__post_init__()
        check_name(self.name)
        check_root(self.root)
        # Tasks in a cluster may see the file of labels where this machine does not.
        path, mounted = self.label_map or "", (*self.volumes, VERTEX_BUCKETS)
        if not uris.is_remote(path) and not any(uris.is_below(path, each) for each in mounted):
            resolve_labels(self.manifest)
        known = [each.name for each in list_options(PipelineConfig) if each.option.runtime]
        if wrong := [name for name in self.parameters if name not in known]:
            raise UsageError(
                f"parameters has {wrong[0]!r}, which a run cannot change.",
                f"Name some of {', '.join(known)}.",
            )
        if idle := [n for n in FINGERPRINTS if n in self.parameters and not getattr(self, n)]:
            raise UsageError(
                f"parameters has {idle[0]!r}, and the cache would not look at it: no value is "
                "compiled in.",
                f"Leave it out, and darkroom submit takes it; or give it a value: {idle[0]}.",
            )
        check_registry(self.registry)
        for options in ("conversion", "validation", "training"):
            getattr(self, options)
        # The model has decided it, where it was not given.
        object.__setattr__(self, "image_size", self.training.image_size)

    @property
    def manifest(self) -> ManifestOptions:
        """How the source becomes a manifest."""
        return ManifestOptions.parse(**pick_fields(self, SourceFields))

    @property
    def conversion(self) -> RecordOptions:
        """How the manifest becomes records."""
        return RecordOptions(**pick_fields(self, RecordOptions))

    @property
    def validation(self) -> ValidationOptions:
        """The options of the validation."""
        return ValidationOptions(**pick_fields(self, ValidationOptions))

    @property
    def training(self) -> TrainingOptions:
        """The options of the training."""
        return TrainingOptions(**pick_fields(self, TrainingOptions))

    @property
    def compares_models(self) -> bool:
        """Whether a model is compared with an earlier one before it is pushed."""
        return self.max_accuracy_drop is not None or self.max_recall_drop is not None

    @property
    def pipeline_root(self) -> str:
        """Folder of the artifacts."""
        return storage.join(self.root, "artifacts")

    @property
    def push_dir(self) -> str:
        """Folder of the pushed models."""
        return storage.join(self.root, "pushed") if self.push_to is None else self.push_to


def check_root(path: str) -> None:
    """Checks the folder of a run.

    Raises:
        UsageError: Beam and TFX would take it for a pattern, and find none of their files.
    """
    if storage.has_wildcard(path):
        raise UsageError(
            f"root is {path!r}, expected a name without *, ? and [.",
            "Beam and TFX take these for a pattern. Choose another folder.",
        )


def make_config(values: Mapping[str, Any], target: str | None = None) -> PipelineConfig:
    """Returns the configuration of values by name.

    Args:
        values: Options of the pipeline.
        target: `kubeflow` or `vertex`; None for a run on this machine.

    Raises:
        UsageError: A name is unknown, a required one is missing, or a value is wrong.
    """
    names = [each.name for each in list_options(PipelineConfig)]
    check_known(values, names, "There is no option")
    # Kubeflow Pipelines has its own root.
    needed = ("data",) if target == KUBEFLOW else ("data", "root")
    if missing := [name for name in needed if not values.get(name)]:
        hint = f"Give {' and '.join(f'--{name}' for name in needed)}."
        if target:
            hint = f"Give {' and '.join(needed)} in the file of --config, or by --set."
        raise UsageError(f"The run needs {' and '.join(missing)}.", hint)
    if isinstance(columns := values.get("columns"), str):
        values = {**values, "columns": dict(Schema.parse(columns).columns)}
    return _make(PipelineConfig, values)


def make_cluster_config(values: Mapping[str, Any]) -> ClusterConfig:
    """Returns the configuration of values by name, for a user's own pipeline.

    Raises:
        UsageError: A name is not an option for such a pipeline, or a value is wrong.
    """
    names = [each.name for each in list_options(ClusterConfig)]
    check_known(values, names, "Your own pipeline has no option")
    return _make(ClusterConfig, values)


def _make(kind: type[_Config], values: Mapping[str, Any]) -> _Config:
    try:
        return kind(**values)
    except (TypeError, AttributeError) as error:
        raise UsageError(f"The configuration has a value of the wrong type: {error}.") from error


def merge_file_options(values: Mapping[str, Any]) -> dict[str, Any]:
    """Returns options by name with those of the file that `config` names; flags win.

    Raises:
        UsageError: The file is not TOML, or has an option that is a flag alone.
        OSError: It cannot be read.
    """
    given = dict(values)
    from_file = read_config_file(path) if (path := given.pop("config", None)) else {}
    # How and as whom a run is submitted.
    options = list_options(KubeflowFields, VertexOptions)
    flags = {each.name: each.flag for each in options if each.flag}
    for name, flag in {**flags, "wait": "--wait", "shared_paths": "--shared-paths"}.items():
        if name in from_file:
            raise UsageError(
                f"{name} is a flag of `darkroom submit`, not of the file: {flag}.",
                f"Leave it out of {path}.",
            )
    return {**from_file, **given}


def read_config_file(path: str) -> dict[str, Any]:
    """Reads the values of a TOML file; relative paths in it start at its folder.

    Raises:
        UsageError: The file is not TOML.
        OSError: It cannot be read.
    """
    path = storage.expand_home(path)
    try:
        values = tomllib.loads(storage.read_bytes(path).decode())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise UsageError(
            f"{path} is not a TOML file: {error}.", "Write texts in quotes, and NAME = VALUE."
        ) from error
    folder = storage.absolute(path).rpartition("/")[0]

    def start_here(path: Any) -> Any:
        # An empty path would become that of the folder, which nobody means.
        if not isinstance(path, str) or not path or uris.has_scheme(path):
            return path
        return storage.join(folder, storage.expand_home(path))

    for name in values.keys() & _PATHS:
        if values[name] not in _WORDS.get(name, ()):
            values[name] = start_here(values[name])
    if isinstance(values.get("allowed_roots"), list):
        values["allowed_roots"] = list(map(start_here, values["allowed_roots"]))
    return values
