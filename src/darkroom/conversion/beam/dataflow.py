"""Running a conversion on Dataflow: options, staging of darkroom itself, submission."""

from __future__ import annotations

import importlib
import importlib.metadata
import io
import os
import tarfile
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from heapq import nsmallest
from typing import TYPE_CHECKING, Any

from darkroom import storage
from darkroom.conversion.beam.runners import DATAFLOW_RUNNER, build_options
from darkroom.conversion.beam.versions import list_pins
from darkroom.conversion.output import ownership
from darkroom.dataset import journal
from darkroom.dataset.layout import DATAFLOW_FOLDER, Folders
from darkroom.errors import (
    MissingExtraError,
    StorageError,
    UsageError,
    build_missing_extra_error,
)
from darkroom.runtime.process import call_in_time, explain_end
from darkroom.storage.parquet import read_batches
from darkroom.version import PACKAGE_FOLDER, __version__

if TYPE_CHECKING:
    import apache_beam as beam

    from darkroom.conversion.shards.writing import WriteJob

_TEMP, _STAGING = "temp", "staging"
_SHOWN_IMAGES = 5
_CANCEL_SECONDS = 10
# Packages above the core: no worker needs them, and they would need TFX.
_NOT_STAGED = ("components", "pipelines", "__pycache__")

_PYPROJECT = """\
[build-system]
requires = ["setuptools>=68"]
build-backend = "setuptools.build_meta"

[project]
name = "darkroom-data"
version = "{version}"
dependencies = [{dependencies}]

[tool.setuptools.packages.find]
where = ["src"]

[tool.setuptools.package-data]
"*" = ["py.typed"]
"""


@dataclass(frozen=True)
class DataflowJob:
    """A conversion as a Dataflow job.

    Attributes:
        output_dir: Where the dataset goes: `gs://`. Temporary and staging folders are below it.
        project: Google Cloud project that pays.
        region: Region where workers run.
        options: Further Beam options by name. With `sdk_container_image`, that image must hold
            darkroom; without, darkroom stages a source package of itself.
    """

    output_dir: str
    project: str | None
    region: str | None
    options: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Checks the options that Dataflow itself would reject only after minutes.

        Raises:
            UsageError: Project or region is missing, the output is not in Cloud Storage, or Beam
                does not accept an option.
            MissingExtraError: Google's client libraries are not installed.
        """
        missing = [name for name in ("project", "region") if not getattr(self, name)]
        if missing:
            raise UsageError(
                f"Dataflow needs {' and '.join(missing)}.",
                "Give project='my-project', region='europe-west4' (--project, --region).",
            )
        if not self.output_dir.startswith("gs://"):
            raise UsageError(
                f"Dataflow's workers cannot write to {self.output_dir}.",
                "Give an output folder in Cloud Storage, such as gs://my-bucket/records.",
            )
        check_extra()
        if self.options:
            build_options(DATAFLOW_RUNNER, self.options)

    def check_images(self, manifest_path: str) -> None:
        """Checks that workers can reach every image.

        Raises:
            UsageError: An image is local.
        """
        local: list[tuple[int, str]] = []
        for batch in read_batches(manifest_path, ["row", "uri"]):
            rows = zip(batch.column(0).to_pylist(), batch.column(1).to_pylist(), strict=True)
            local += [(row, uri) for row, uri in rows if uri and not storage.is_remote(uri)]
        if local:
            raise UsageError(
                f"Dataflow's workers cannot read {len(local)} local images, "
                f"such as {', '.join(uri for _, uri in nsmallest(_SHOWN_IMAGES, local))}.",
                "Copy them to Cloud Storage (gcloud storage cp -r) and list them as gs://.",
            )

    def build_options(self, scratch: str) -> Any:
        """Returns the job's PipelineOptions.

        Args:
            scratch: Local folder for the source package that is staged.
        """
        folder = storage.join(self.output_dir, DATAFLOW_FOLDER)
        options: dict[str, Any] = {
            "project": self.project,
            "region": self.region,
            "temp_location": storage.join(folder, _TEMP),
            "staging_location": storage.join(folder, _STAGING),
            **self.options,
        }
        if not options.get("sdk_container_image"):
            options["extra_packages"] = [
                *options.get("extra_packages", []),
                write_source_package(scratch),
            ]
        beam_options = build_options(DATAFLOW_RUNNER, options)
        from apache_beam.options.pipeline_options import SetupOptions

        # The staged package has everything that workers unpickle; the caller's session is not ours.
        beam_options.view_as(SetupOptions).save_main_session = False
        return beam_options

    def build_pipeline(self, transform: beam.PTransform, scratch: str) -> beam.Pipeline:
        """Returns the job's graph, not yet submitted.

        Raises:
            UsageError: Beam does not accept an option.
        """
        from darkroom.runtime.plain_beam import apply_transform, beam

        try:
            pipeline = beam.Pipeline(options=self.build_options(scratch))
        except ValueError as error:
            if isinstance(error, UsageError):
                raise
            raise UsageError(f"Dataflow cannot run this: {error}") from error
        apply_transform(pipeline, transform.label, transform)
        return pipeline

    def submit(self, job: WriteJob, wait: bool) -> str:
        """Starts the job and returns its id; waits for its end if asked to.

        The dataset is complete when the job is, waited for or not: the commit is its last step.

        Raises:
            StorageError: The job was waited for, and failed or was cancelled.
        """
        from darkroom.conversion.beam.transforms import WriteDataset

        folder = storage.join(self.output_dir, DATAFLOW_FOLDER)
        folders = Folders.of_dataset(self.output_dir)
        # The names of Beam's files there are unknown, but until now there are no files.
        inside = [storage.join(folder, name, "") for name in (_TEMP, _STAGING)]
        journal.write_journal(folders, inside, storage.join(folder, journal.JOURNAL_FILE))
        with tempfile.TemporaryDirectory(prefix="darkroom-") as scratch:
            result = self.build_pipeline(WriteDataset(job), scratch).run()
        job_id = str(result.job_id())
        if wait:
            self._wait(result, job_id)
            ownership.delete_named(folders, folder)
        return job_id

    def _wait(self, result: Any, job_id: str) -> None:
        """Waits for the end of the job. An interrupt cancels it, if Google answers in time.

        Raises:
            StorageError: The job failed, or was cancelled.
        """
        from apache_beam.runners.dataflow.dataflow_runner import DataflowRuntimeException
        from apache_beam.runners.runner import PipelineState

        hint = "See its log in the Google Cloud console."
        try:
            state = result.wait_until_finish()
        except DataflowRuntimeException as error:
            raise StorageError(f"Dataflow job {job_id} failed: {error}.", hint) from error
        except (KeyboardInterrupt, SystemExit) as interrupt:
            place = f"--project={self.project} --region={self.region}"
            stop = f"Stop it with: gcloud dataflow jobs cancel {job_id} {place}"
            explain_end(interrupt, f"The Dataflow job {job_id} keeps running. {stop}")
            if call_in_time(result.cancel, _CANCEL_SECONDS):
                told = f"The Dataflow job {job_id} is being cancelled; run the same command again"
                explain_end(interrupt, f"{told} when it has ended.")
            raise
        if state != PipelineState.DONE:
            raise StorageError(f"Dataflow job {job_id} ended as {state}.", hint)


def check_extra() -> None:
    """Checks that Google's client libraries are installed; submitting a job needs them.

    Raises:
        MissingExtraError: They are not.
    """
    try:
        importlib.import_module(
            "darkroom.runtime.plain_beam"
        )  # before Beam itself, which would warn
        importlib.import_module("apache_beam.io.gcp.gcsfilesystem")
        importlib.import_module("apache_beam.runners.dataflow.internal.apiclient")
    except (ImportError, MissingExtraError) as error:
        raise build_missing_extra_error("Dataflow", "dataflow") from error


def write_source_package(folder: str) -> str:
    """Writes the core of darkroom, as installed here, as a source package that pip installs.

    With it, pip installs the versions that decide about bytes.

    Returns:
        Its path.
    """
    root = f"darkroom_data-{__version__}"
    path = os.path.join(folder, f"{root}.tar.gz")
    with tarfile.open(path, "w:gz") as archive:
        needs = importlib.metadata.requires("darkroom-data") or []
        needs = [need for need in needs if "extra ==" not in need] + list_pins()
        dependencies = ", ".join(map(repr, needs))
        text = _PYPROJECT.format(version=__version__, dependencies=dependencies)
        _add(archive, f"{root}/pyproject.toml", text.encode())
        for inside, folders, files in os.walk(PACKAGE_FOLDER):
            folders[:] = sorted(name for name in folders if name not in _NOT_STAGED)
            for file in sorted(files):
                name = os.path.relpath(os.path.join(inside, file), PACKAGE_FOLDER)
                with open(os.path.join(inside, file), "rb") as source:
                    data = source.read()
                _add(archive, f"{root}/src/darkroom/{name.replace(os.sep, '/')}", data)
    return path


def _add(archive: tarfile.TarFile, name: str, data: bytes) -> None:
    info = tarfile.TarInfo(name)
    info.size = len(data)
    info.mode = 0o644
    archive.addfile(info, io.BytesIO(data))
