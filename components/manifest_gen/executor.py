"""Executor of ManifestGen."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping
from typing import Any

from absl import logging
from tfx.dsl.components.base import base_executor
from tfx.types import artifact_utils

from darkroom import storage
from darkroom.components.file_state import SOURCE_STATE
from darkroom.components.state_driver import TAKEN_BY_EACH_RUN
from darkroom.conversion.base import open_base
from darkroom.dataset.commit import Dataset
from darkroom.dataset.layout import REJECTS_LIST_FILE, Folders
from darkroom.dataset.manifest import Manifest
from darkroom.dataset.named import find_base
from darkroom.dataset.read_as import list_read_as
from darkroom.errors import DataError
from darkroom.manifest.writer import write_manifest
from darkroom.options.conversion import DEFAULT_STORE_PATIENCE_SECONDS, UpdateOptions
from darkroom.options.manifest import ManifestOptions
from darkroom.runtime.result import format_rows
from darkroom.runtime.text import format_count

# Of the Examples: where the other parts of the dataset are.
INDEX_PROPERTY, REJECTS_PROPERTY = "index", "rejects"


class Executor(base_executor.BaseExecutor):
    """Writes the manifest of a source."""

    def Do(
        self,
        input_dict: dict[str, list[Any]],
        output_dict: dict[str, list[Any]],
        exec_properties: dict[str, Any],
    ) -> None:
        """Writes the manifest and the rejected rows.

        Args:
            input_dict: `base_examples`: the Examples to update, if there are some.
            output_dict: `manifest`: an ImageManifest; `list_rejects`: a Rejects.
            exec_properties: `source`: path or pattern; `options`: `ManifestOptions` as JSON;
                `source_fingerprint`: the value that the cache compared; `base`: place of the
                dataset to update, or ""; `updates`: `UpdateOptions` as JSON.

        Raises:
            DataError: The source as a whole cannot be used, or lacks most rows of the base. Or the
                base is not a dataset of this version.
        """
        manifest_artifact = artifact_utils.get_single_instance(output_dict["manifest"])
        rejects_artifact = artifact_utils.get_single_instance(output_dict["list_rejects"])
        if exec_properties.get(SOURCE_STATE.key) == TAKEN_BY_EACH_RUN:
            logging.warning(
                "This runner does not run drivers, so its cache cannot notice that %s has changed: "
                "switch the cache off, or give ManifestGen a source_fingerprint.",
                exec_properties["source"],
            )
        options = ManifestOptions.from_json(exec_properties["options"])
        updates = UpdateOptions(**json.loads(exec_properties.get("updates") or "{}"))
        with (
            storage.be_patient(DEFAULT_STORE_PATIENCE_SECONDS),
            tempfile.TemporaryDirectory(prefix="darkroom-") as scratch,
        ):
            found = _find_base(input_dict, exec_properties)
            manifest = write_manifest(
                exec_properties["source"],
                manifest_artifact.uri,
                rejects_artifact.uri,
                options,
                open_base(found, updates, scratch, exec_properties["source"]) if found else None,
            )
        for name in ("rows", "rejected", "deduplicated", "removed"):
            manifest_artifact.set_int_custom_property(name, getattr(manifest, name))
        if manifest.read_as:
            lines = format_rows(list_read_as(manifest.read_as))
            manifest_artifact.set_string_custom_property("read_as", "\n".join(lines))
        tell_rejects(rejects_artifact, manifest)


def _find_base(
    input_dict: Mapping[str, list[Any]], exec_properties: Mapping[str, Any]
) -> Folders | None:
    """Returns where the dataset is that is updated; None if there is none yet."""
    if place := exec_properties.get("base"):
        return find_base(place)
    for examples in input_dict.get("base_examples") or ():
        names = INDEX_PROPERTY, REJECTS_PROPERTY
        index, rejects = (examples.get_string_custom_property(name) for name in names)
        if not index or not rejects:
            raise DataError(
                f"The Examples in {examples.uri} do not say where their index and rejects are.",
                "ImageToTFRecord of this version says that. Run once without base_examples.",
            )
        return Folders("", "", examples.uri, index, rejects)
    return None


def tell_rejects(artifact: Any, counted: Manifest | Dataset) -> None:
    """Sets the properties of an artifact of rejects, and logs how many there are.

    A pipeline may have no gate that checks it.
    """
    artifact.set_int_custom_property("rejected", counted.rejected)
    told = [(counted.rejected, "row", "were", counted.rows)]
    if (objects := counted.objects) is not None:
        artifact.set_int_custom_property("rejected_objects", objects.rejected)
        told.append((objects.rejected, "object", "were", objects.read))
    for each in told:
        if each[0]:
            path = storage.join(artifact.uri, REJECTS_LIST_FILE)
            logging.warning("%s rejected: see %s.", format_count(*each), path)
