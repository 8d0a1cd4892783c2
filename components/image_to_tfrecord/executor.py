"""Executor of ImageToTFRecord."""

from __future__ import annotations

from typing import Any

from tfx.components.util import examples_utils
from tfx.dsl.components.base import base_beam_executor
from tfx.proto import example_gen_pb2
from tfx.types import artifact_utils

from darkroom import storage
from darkroom.components.manifest_gen.executor import (
    INDEX_PROPERTY,
    REJECTS_PROPERTY,
    tell_rejects,
)
from darkroom.conversion.base import open_old_dataset
from darkroom.conversion.beam.run import run_write
from darkroom.conversion.embed import embed_artifacts
from darkroom.conversion.output.output import Output
from darkroom.conversion.plan import plan_job
from darkroom.dataset import commit, layout
from darkroom.dataset.layout import Folders
from darkroom.dataset.manifest import read_manifest
from darkroom.dataset.rejects import count_rejects, list_rejects
from darkroom.errors import DataError
from darkroom.images.access import check_not_all_denied
from darkroom.options.conversion import RecordOptions


class Executor(base_beam_executor.BaseBeamExecutor):
    """Converts the images of a manifest with Beam."""

    def Do(
        self,
        input_dict: dict[str, list[Any]],
        output_dict: dict[str, list[Any]],
        exec_properties: dict[str, Any],
    ) -> None:
        """Writes shards, index and rejects, and commits them.

        Args:
            input_dict: `manifest`: an ImageManifest; `manifest_rejects`: its Rejects.
            output_dict: `examples`: Examples; `index`: a RecordIndex; `rejects`: Rejects.
            exec_properties: `options`: `RecordOptions` as JSON; `recheck`: share of the unchanged
                images that are read; `embed`: whether the index gets features of the images.

        Raises:
            DataError: Nothing could be written; the message lists the first rejects. Or the dataset
                that is updated is damaged, or an image of it has other bytes than its state says.
            StorageError: Nothing could, because no image may be read.
            OutputError: An output folder has files that darkroom did not write.
        """
        examples = artifact_utils.get_single_instance(output_dict["examples"])
        rejects = artifact_utils.get_single_instance(output_dict["rejects"])
        folders = Folders(
            manifest=artifact_utils.get_single_uri(input_dict["manifest"]),
            manifest_rejects=artifact_utils.get_single_uri(input_dict["manifest_rejects"]),
            examples=examples.uri,
            index=artifact_utils.get_single_uri(output_dict["index"]),
            rejects=rejects.uri,
        )
        options = RecordOptions.from_json(exec_properties["options"])
        with storage.be_patient(options.store_patience_seconds):
            written = self._convert(folders, options, exec_properties.get("recheck") or 0.0)
            if exec_properties.get("embed"):
                embed_artifacts(written, folders)
        # Readers of the artifact expect records in each of its splits.
        splits = [name for name, split in written.splits.items() if split.records]
        examples.split_names = artifact_utils.encode_split_names(splits)
        examples_utils.set_payload_format(examples, example_gen_pb2.PayloadFormat.FORMAT_TF_EXAMPLE)
        examples.set_string_custom_property("fingerprint", written.fingerprint)
        examples.set_int_custom_property("records", written.written)
        # For the next run, which finds the Examples alone.
        examples.set_string_custom_property(INDEX_PROPERTY, folders.index)
        examples.set_string_custom_property(REJECTS_PROPERTY, folders.rejects)
        if written.objects is not None:
            examples.set_int_custom_property("objects", written.objects.written)
        tell_rejects(rejects, written)

    def _convert(self, folders: Folders, options: RecordOptions, recheck: float) -> commit.Dataset:
        # Each execution has a new output.
        output = Output(folders, overwrite=True)
        output.check()
        attempt = output.make_attempt("TFX", in_place=True)
        base = read_manifest(folders.manifest).find_base()
        old = open_old_dataset(base, options, recheck) if base else None
        job = plan_job(folders, attempt, options, old=old)
        output.begin(attempt, job.tasks)
        run_write(self._make_beam_pipeline(), job, f"darkroom-{attempt.record.token}")
        if not storage.exists(storage.join(folders.examples, layout.DATASET_FILE)):
            listed = list_rejects(folders.rejects)
            check_not_all_denied(count_rejects(folders.rejects), listed)
            raise DataError(
                f"No image could be written. {listed}",
                "Fix the images, or the paths in the source.",
            )
        return commit.read_dataset(folders.examples)
