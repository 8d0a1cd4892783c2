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
from darkroom.conversion.beam.options import build_options
from darkroom.conversion.beam.run import name_job
from darkroom.conversion.beam.versions import find_versions, format_versions, list_pins
from darkroom.conversion.output import ownership
from darkroom.dataset import journal
from darkroom.dataset.layout import DATAFLOW_FOLDER, Folders
from darkroom.errors import (
    CredentialsError,
    MissingExtraError,
    StorageError,
    UsageError,
    build_missing_extra_error,
)
from darkroom.options.runners import DATAFLOW_RUNNER
from darkroom.runtime import progress
from darkroom.runtime.process import call_in_time, explain_end
from darkroom.runtime.text import format_count
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
            CredentialsError: There are no credentials, which a job needs unless it is a dry run.
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
        if not self.is_dry_run:
            check_google_credentials()

    @property
    def is_dry_run(self) -> bool:
        """Whether Beam makes the job, and sends nothing."""
        from apache_beam.options.pipeline_options import TestOptions

        return bool(build_options(DATAFLOW_RUNNER, self.options).view_as(TestOptions).dry_run)

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

    def submit(self, job: WriteJob, wait: bool, job_name: str) -> str:
        """Starts the job and returns its id; waits for its end if asked to.

        The dataset is complete when the job is, waited for or not: the commit is its last step.

        Args:
            job: The shards and the commit.
            wait: Whether to wait.
            job_name: As of `run_job`.

        Returns:
            The id, which is empty after a dry run.

        Raises:
            StorageError: It was not taken; or it was waited for, and failed or was cancelled.
        """
        from darkroom.conversion.beam.transforms import WriteDataset

        folder = storage.join(self.output_dir, DATAFLOW_FOLDER)
        folders = Folders.of_dataset(self.output_dir)
        with tempfile.TemporaryDirectory(prefix="darkroom-") as scratch:
            pipeline = self.build_pipeline(WriteDataset(job), scratch)
            progress.note(self._describe_workers(job))
            with name_job(pipeline.options, job_name) as name:
                if self.is_dry_run:
                    pipeline.run()
                    progress.note(_describe_request(pipeline, job))
                    return ""
                progress.note(f"Starting the job {name} with {DATAFLOW_RUNNER}.")
                # The names of Beam's files there are unknown, but until now there are no files.
                inside = [storage.join(folder, name, "") for name in (_TEMP, _STAGING)]
                journal.write_journal(folders, inside, storage.join(folder, journal.JOURNAL_FILE))
                result = pipeline.run()
                job_id = str(result.job_id())
                if wait:
                    self._wait(result, job_id)
                    ownership.delete_named(folders, folder)
        return job_id

    def _describe_workers(self, job: WriteJob) -> str:
        """Returns what workers get, or must have."""
        image = self.options.get("sdk_container_image")
        if not image:
            return f"The workers install this darkroom with {', '.join(list_pins())}."
        versions = find_versions(compressed=any(task.compressed for task in job.tasks))
        return (
            f"The workers' image {image} must have {format_versions(versions, versions)}, else the "
            "job ends before it writes. To have its versions, run this command in it."
        )

    def _wait(self, result: Any, job_id: str) -> None:
        """Waits for the end of the job. An interrupt cancels it, if Google answers in time.

        Raises:
            StorageError: The job was cancelled.
        """
        from apache_beam.runners.runner import PipelineState

        try:
            state = result.wait_until_finish()
        except (KeyboardInterrupt, SystemExit) as interrupt:
            place = f"--project={self.project} --region={self.region}"
            stop = f"Stop it with: gcloud dataflow jobs cancel {job_id} {place}"
            explain_end(interrupt, f"The Dataflow job {job_id} keeps running. {stop}")
            if call_in_time(result.cancel, _CANCEL_SECONDS):
                told = f"The Dataflow job {job_id} is being cancelled; run the same command again"
                explain_end(interrupt, f"{told} when it has ended.")
            raise
        if state != PipelineState.DONE:
            raise StorageError(
                f"Dataflow job {job_id} ended as {state}.",
                "See its log in the Google Cloud console.",
            )


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


def check_google_credentials() -> None:
    """Checks that there are credentials of Google: without any, its clients would ask a person.

    Raises:
        CredentialsError: There are none.
    """
    import google.auth
    from google.auth.exceptions import DefaultCredentialsError

    try:
        google.auth.default()
    except DefaultCredentialsError as error:
        raise CredentialsError(
            f"Dataflow needs credentials of Google: {error}",
            "Run gcloud auth application-default login, or set GOOGLE_APPLICATION_CREDENTIALS.",
        ) from error


def _describe_request(pipeline: beam.Pipeline, job: WriteJob) -> str:
    """Returns what a dry run would have sent."""
    options = pipeline.options.get_all_options(drop_default=True)
    said = ", ".join(f"{name}={value}" for name, value in sorted(options.items()))
    shards = format_count(len(job.tasks), "shard")
    return f"Nothing was sent. The job would write {shards} with: {said}."


def write_source_package(folder: str) -> str:
    """Writes the core of darkroom, as installed here, as a source package that pip installs.

    With it, pip installs the versions that decide about bytes.

    Returns:
        Its path.
    """
    root = f"darkroom_data-{__version__}"
    path = os.path.join(folder, f"{root}.tar.gz")
    # The best compression takes three times as long, to save a fifth of a megabyte.
    with tarfile.open(path, "w:gz", compresslevel=1) as archive:
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
