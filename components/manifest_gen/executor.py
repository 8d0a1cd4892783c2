"""Executor of ManifestGen."""

from __future__ import annotations

from typing import Any

from absl import logging
from tfx.dsl.components.base import base_executor
from tfx.types import artifact_utils

from darkroom import storage
from darkroom.components.state_driver import TAKEN_BY_EACH_RUN
from darkroom.dataset.layout import REJECTS_LIST_FILE
from darkroom.manifest.writer import write_manifest
from darkroom.options.conversion import DEFAULT_STORE_PATIENCE_SECONDS
from darkroom.options.manifest import ManifestOptions

SOURCE_KEY = "source"
OPTIONS_KEY = "options"
FINGERPRINT_KEY = "source_fingerprint"
MANIFEST_KEY = "manifest"
REJECTS_KEY = "list_rejects"


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
            input_dict: Empty.
            output_dict: `manifest`: an ImageManifest; `list_rejects`: a Rejects.
            exec_properties: `source`: path or pattern; `options`: `ManifestOptions` as JSON;
                `source_fingerprint`: the value that the cache compared.

        Raises:
            DataError: The source as a whole cannot be used.
        """
        manifest_artifact = artifact_utils.get_single_instance(output_dict[MANIFEST_KEY])
        rejects_artifact = artifact_utils.get_single_instance(output_dict[REJECTS_KEY])
        if exec_properties.get(FINGERPRINT_KEY) == TAKEN_BY_EACH_RUN:
            logging.warning(
                "This runner does not run drivers, so its cache cannot notice that %s has changed: "
                "switch the cache off, or give ManifestGen a source_fingerprint.",
                exec_properties[SOURCE_KEY],
            )
        options = ManifestOptions.from_json(exec_properties[OPTIONS_KEY])
        with storage.be_patient(DEFAULT_STORE_PATIENCE_SECONDS):
            manifest = write_manifest(
                exec_properties[SOURCE_KEY], manifest_artifact.uri, rejects_artifact.uri, options
            )
        for name in ("rows", "rejected", "deduplicated"):
            manifest_artifact.set_int_custom_property(name, getattr(manifest, name))
        rejects_artifact.set_int_custom_property("rejected", manifest.rejected)
        warn_of_rejects(manifest.rejected, manifest.rows, rejects_artifact.uri)


def warn_of_rejects(rejected: int, rows: int, folder: str) -> None:
    """Logs how many rows were rejected, because a pipeline may have no gate that checks it."""
    if rejected:
        logging.warning(
            "%d of %d rows were rejected; %s lists them.",
            rejected,
            rows,
            storage.join(folder, REJECTS_LIST_FILE),
        )
