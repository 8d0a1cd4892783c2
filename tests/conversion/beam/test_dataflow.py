import ast
import re
import subprocess
import sys
import tarfile
from dataclasses import replace
from importlib import metadata
from pathlib import Path
from unittest.mock import Mock

import apache_beam as beam
import pytest
from apache_beam.internal import pickler
from apache_beam.options.pipeline_options import (
    GoogleCloudOptions,
    SetupOptions,
    StandardOptions,
    WorkerOptions,
)
from apache_beam.runners.dataflow.dataflow_runner import DataflowRuntimeException
from PIL import Image

from darkroom import storage
from darkroom.conversion.beam import dataflow
from darkroom.conversion.beam.dataflow import DataflowJob, write_source_package
from darkroom.conversion.beam.transforms import WriteDataset, WriteShardFn
from darkroom.conversion.beam.versions import find_versions, list_pins
from darkroom.conversion.output import ownership
from darkroom.conversion.output.attempts import Attempt, Record
from darkroom.conversion.output.commit import Commit
from darkroom.conversion.output.output import Output
from darkroom.conversion.plan import plan_tasks
from darkroom.conversion.shards.writing import WriteJob
from darkroom.dataset.layout import Folders
from darkroom.errors import CredentialsError, MissingExtraError, StorageError, UsageError
from darkroom.manifest.writer import write_manifest
from darkroom.options.conversion import RecordOptions
from darkroom.options.runners import DATAFLOW_RUNNER
from darkroom.runtime.process import find_explanation

from ...light_beam import HIDE_CLIENTS

pytestmark = pytest.mark.heavy

OUTPUT = "gs://my-bucket/out"
LARGEST_PAYLOAD_BYTES = 64 << 10


@pytest.fixture(autouse=True)
def gcp(monkeypatch):
    """Takes the extra and a login for granted: nothing here talks to Google."""
    monkeypatch.setattr(dataflow, "check_extra", lambda: None)
    monkeypatch.setattr(dataflow, "check_google_credentials", lambda: None)
    # Where the extra is there, Beam asks the bucket for a policy when it checks the options.
    asks = "_warn_if_soft_delete_policy_enabled"
    monkeypatch.setattr(GoogleCloudOptions, asks, lambda *_: False, raising=False)
    monkeypatch.setattr(storage, "stat_file", lambda uri: storage.FileInfo(5, "1"))
    monkeypatch.setattr(storage, "list_remote_states", lambda folder, first: iter(()))


def make_job(**options):
    return DataflowJob(OUTPUT, "my-project", "europe-west4", options)


def plan(tmp_path, rows, num_shards=4, output=OUTPUT):
    """Returns the folders and the transform for rows of a CSV."""
    manifest = str(tmp_path / "manifest")
    (tmp_path / "m.csv").write_text("split,image_uri,label\n" + "".join(rows))
    write_manifest(tmp_path / "m.csv", manifest, manifest)
    index = storage.join(output, "index")
    folders = Folders(manifest, manifest, examples=output, index=index, rejects=output)
    options = RecordOptions(num_shards={"train": num_shards})
    attempt = Attempt(replace(folders, token="0123abcd"), output, Record("0123abcd"))
    tasks = plan_tasks(folders, attempt, options)
    return folders, WriteJob(tasks, Commit(attempt, options, 0.01))


REMOTE = [f"TRAIN,gs://my-bucket/images/{i:06d}.jpg,label {i % 7}\n" for i in range(2_000)]


# The clients of Cloud Storage may be there without that of Dataflow.
@pytest.mark.parametrize("module", ["io.gcp.gcsfilesystem", "runners.dataflow.internal.apiclient"])
def test_the_extra_is_asked_for_before_anything_starts(module, monkeypatch):
    monkeypatch.undo()
    monkeypatch.setitem(sys.modules, f"apache_beam.{module}", None)
    with pytest.raises(MissingExtraError, match=r"'darkroom-data\[dataflow\]'"):
        make_job()


def test_a_job_needs_credentials_and_a_dry_run_needs_none(monkeypatch):
    monkeypatch.undo()
    monkeypatch.setattr(dataflow, "check_extra", lambda: None)
    auth = pytest.importorskip("google.auth")
    missing = auth.exceptions.DefaultCredentialsError("Your credentials were not found.")
    monkeypatch.setattr(auth, "default", Mock(side_effect=missing))
    with pytest.raises(CredentialsError, match="of Google: Your credentials were not") as stop:
        make_job()
    assert stop.value.exit_code == 3
    assert "gcloud auth application-default login" in stop.value.hint
    make_job(dry_run="true")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((OUTPUT, None, "r"), r"Dataflow needs project\."),
        ((OUTPUT, "", ""), r"Dataflow needs project and region\."),
        (("s3://bucket/out", "p", "r"), "cannot write to s3://bucket/out.*gs://"),
    ],
)
def test_project_region_and_an_output_in_cloud_storage_are_needed(arguments, message):
    with pytest.raises(UsageError, match=message):
        DataflowJob(*arguments)


def test_local_images_are_an_error_that_lists_the_first(tmp_path):
    rows = [f"TRAIN,local/{i}.jpg,cat\n" for i in range(9)] + REMOTE[:3]
    folders, _ = plan(tmp_path, rows)
    with pytest.raises(UsageError, match="cannot read 9 local images") as caught:
        make_job().check_images(f"{folders.manifest}/manifest.parquet")
    listed = ", ".join(f"{tmp_path}/local/{i}.jpg" for i in range(5))
    assert f"such as {listed}." in caught.value.message
    folders, _ = plan(tmp_path, REMOTE[:3])
    make_job().check_images(f"{folders.manifest}/manifest.parquet")


def test_options_come_from_the_output_or_the_user(tmp_path):
    given = {"num_workers": 7, "use_public_ips": False, "temp_location": "gs://other/temp"}
    options = make_job(**given).build_options(str(tmp_path))
    cloud = options.view_as(GoogleCloudOptions)
    assert options.view_as(StandardOptions).runner == "DataflowRunner"
    assert (cloud.project, cloud.region) == ("my-project", "europe-west4")
    assert cloud.temp_location == given["temp_location"]
    assert cloud.staging_location == f"{OUTPUT}/.dataflow/staging"
    assert options.view_as(WorkerOptions).num_workers == 7
    assert options.view_as(WorkerOptions).use_public_ips is False
    assert options.view_as(SetupOptions).save_main_session is False


def test_darkroom_stages_itself_beside_the_packages_of_the_user(tmp_path):
    options = make_job(extra_packages=["mine.tar.gz"]).build_options(str(tmp_path))
    packages = options.view_as(SetupOptions).extra_packages
    (own,) = tmp_path.glob("darkroom_data-*.tar.gz")
    assert packages == ["mine.tar.gz", str(own)]


def test_an_image_holds_darkroom_already(tmp_path):
    options = make_job(sdk_container_image="image:1").build_options(str(tmp_path))
    assert options.view_as(SetupOptions).extra_packages is None
    assert options.view_as(WorkerOptions).sdk_container_image == "image:1"
    assert list(tmp_path.iterdir()) == []


def test_an_option_that_beam_rejects_is_a_usage_error(tmp_path):
    _, transform = plan(tmp_path, REMOTE[:3])
    job = DataflowJob("gs://my-bucket/out", "No Project", "europe-west4")
    with pytest.raises(UsageError, match="Invalid Project ID"):
        job.build_pipeline(WriteDataset(transform), str(tmp_path))


def payloads(graph):
    for transform in graph.components.transforms.values():
        yield transform.unique_name, transform.spec.payload
    for environment in graph.components.environments.values():
        yield "environment", environment.payload


def test_the_graph_is_small_and_ends_with_the_commit(tmp_path):
    _, transform = plan(tmp_path, REMOTE, num_shards=64)

    graph = make_job().build_pipeline(WriteDataset(transform), str(tmp_path)).to_runner_api()

    names = [name for name, _ in payloads(graph)]
    assert {"WriteDataset/WriteShards", "WriteDataset/Commit"} <= set(names)
    sizes = {name: len(payload) for name, payload in payloads(graph)}
    assert max(sizes.values()) < LARGEST_PAYLOAD_BYTES, sizes
    assert all(b"images/000001.jpg" not in payload for _, payload in payloads(graph))


class Result:
    """What running a pipeline on Dataflow gives."""

    def __init__(self, end, is_cancelled=True, fails=""):
        self.waited = 0
        self._end = end
        self._is_cancelled = is_cancelled
        self.fails = fails

    def job_id(self):
        return "2024-02-29_job"

    def wait_until_finish(self):
        self.waited += 1
        if isinstance(self._end, BaseException):
            raise self._end
        return self._end

    def cancel(self):
        if not self._is_cancelled:
            raise RuntimeError("Failed to cancel job")


@pytest.fixture
def bucket(monkeypatch):
    """A store in memory for what is written to gs://: path to bytes."""
    files: dict[str, bytes] = {}

    def list_files(path):
        return {name[len(path) + 1 :]: len(files[name]) for name in files if name.startswith(path)}

    def fake(name, function):
        original = getattr(storage, name)

        def call(path, *rest, **options):
            return (function if "gs://" in path else original)(path, *rest, **options)

        monkeypatch.setattr(storage, name, call)

    def read_bytes(path, *_):
        if path not in files:
            raise FileNotFoundError(path)
        return files[path]

    def copy_file(source, copy):
        files[copy] = Path(source).read_bytes()

    fake("write_bytes", lambda path, data, *_: files.__setitem__(path, data))
    fake("read_bytes", read_bytes)
    fake("list_everything", list_files)
    fake("list_folder", lambda path: sorted({name.split("/")[0] for name in list_files(path)}))
    fake("remove_empty_folders", lambda path: None)
    fake("delete_file", lambda path: files.pop(path, None))
    monkeypatch.setattr(storage, "delete_files", lambda paths: [files.pop(path) for path in paths])
    monkeypatch.setattr(storage, "copy_file", copy_file)
    return files


@pytest.fixture
def notes(monkeypatch) -> list[str]:
    """What a run says meanwhile."""
    said: list[str] = []
    monkeypatch.setattr("darkroom.runtime.progress.note", said.append)
    return said


@pytest.fixture
def submit(tmp_path, monkeypatch, bucket):
    """Submits a job whose end is given, and which writes files; returns its id and its result."""

    def submit(wait, end="DONE", beam_options=None, **options):
        result = Result(end, **options)
        _, transform = plan(tmp_path, REMOTE[:100])

        def run(pipeline):
            # Until a job runs, nothing of its own is there but what says whose it will be.
            assert list(bucket) == [f"{OUTPUT}/.dataflow/journal.json"]
            result.name = pipeline.options.view_as(GoogleCloudOptions).job_name
            written = ("staging/x/package", "temp/y", "notes.txt")
            bucket.update({f"{OUTPUT}/.dataflow/{name}": b"x" for name in written})
            if result.fails:
                raise RuntimeError(result.fails)
            return result

        monkeypatch.setattr(beam.Pipeline, "run", run)
        job_id = make_job(**(beam_options or {})).submit(transform, wait, "darkroom-0123abcd")
        return job_id, result

    return submit


def test_a_job_is_left_to_itself(submit, bucket, notes):
    job_id, result = submit(wait=False)
    assert (job_id, result.waited, len(bucket)) == ("2024-02-29_job", 0, 4)
    found = ownership.survey(Folders.of_dataset(OUTPUT))
    assert found.foreign == (f"{OUTPUT}/.dataflow/notes.txt",)
    installed, begun = notes[-2:]
    assert installed == f"The workers install this darkroom with {', '.join(list_pins())}."
    assert begun == "Starting the job darkroom-0123abcd with DataflowRunner."
    assert result.name == "darkroom-0123abcd"


def test_what_an_image_must_have_is_said_before_it_is_needed(submit, notes):
    options = {"sdk_container_image": "registry/darkroom-beam:1", "job_name": "nightly"}
    _, result = submit(wait=False, beam_options=options)
    assert result.name == "nightly-darkroom-0123abcd"
    versions = find_versions()
    assert notes[-2].startswith(
        f"The workers' image registry/darkroom-beam:1 must have darkroom {versions['darkroom']}, "
        f"Python {versions['Python']}, Pillow {versions['Pillow']}, "
    )


def test_a_job_that_is_not_taken_says_why(submit):
    with pytest.raises(StorageError) as stop:
        submit(wait=True, fails="no API\n")
    assert stop.value.message == ("The job darkroom-0123abcd of DataflowRunner failed: no API")


def test_a_job_is_waited_for_and_only_its_files_are_deleted(submit, bucket):
    job_id, result = submit(wait=True)
    assert (job_id, result.waited) == ("2024-02-29_job", 1)
    assert list(bucket) == [f"{OUTPUT}/.dataflow/notes.txt"]


@pytest.mark.parametrize(
    ("end", "said"),
    [
        ("CANCELLED", "Dataflow job 2024-02-29_job ended as CANCELLED"),
        (DataflowRuntimeException("Error:\nno quota", None), "of DataflowRunner failed: no quota"),
    ],
)
def test_a_job_that_ends_badly_is_an_error(submit, end, said):
    with pytest.raises(StorageError, match=said):
        submit(wait=True, end=end)


@pytest.mark.parametrize("interrupt", [KeyboardInterrupt(), SystemExit(143)])
def test_a_job_is_cancelled_with_its_client(submit, bucket, interrupt):
    with pytest.raises(type(interrupt)) as stop:
        submit(wait=True, end=interrupt)
    told = find_explanation(stop.value)
    assert told.startswith("The Dataflow job 2024-02-29_job is being cancelled; run the same")
    # What the job still needs stays, until it has ended.
    assert len(bucket) == 4


def test_a_job_that_is_not_cancelled_with_its_client_is_named(submit):
    with pytest.raises(KeyboardInterrupt) as stop:
        submit(wait=True, end=KeyboardInterrupt(), is_cancelled=False)
    assert find_explanation(stop.value) == (
        "The Dataflow job 2024-02-29_job keeps running. Stop it with: "
        "gcloud dataflow jobs cancel 2024-02-29_job --project=my-project --region=europe-west4"
    )


def test_the_manifest_is_copied_to_the_workers(tmp_path, bucket):
    folders, _ = plan(tmp_path, REMOTE[:3])
    output = Output(folders)
    attempt = output.make_attempt(DATAFLOW_RUNNER)
    output.begin(attempt, plan_tasks(folders, attempt, RecordOptions()))
    remote, token = attempt.folders, attempt.record.token
    assert remote.examples == f"{OUTPUT}/data-{token}"
    assert remote.manifest == f"{remote.examples}/.attempt/{token}/manifest"
    assert remote.manifest == remote.manifest_rejects
    copy = bucket[f"{remote.manifest}/manifest.parquet"]
    assert copy == Path(folders.manifest, "manifest.parquet").read_bytes()
    found = ownership.survey(folders)
    assert (set(found.ours), found.foreign) == (set(bucket), ())


def test_the_source_package_holds_the_core_only(tmp_path):
    with tarfile.open(write_source_package(str(tmp_path))) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
        (text,) = (archive.extractfile(m).read() for m in archive if m.name.endswith(".toml"))
    assert {
        "pyproject.toml",
        "src/darkroom/conversion/shards/shard.py",
        "src/darkroom/manifest/sources/csv.py",
    } <= names
    assert "src/darkroom/py.typed" in names
    assert {name.partition("/")[0] for name in names} == {"pyproject.toml", "src"}
    assert not [name for name in names if "components/" in name or "pipelines/" in name]
    assert not [name for name in names if "__pycache__" in name]
    needs = ast.literal_eval(re.search(r"^dependencies = (.*)$", text.decode(), re.M)[1])
    own = [need for need in metadata.requires("darkroom-data") if "extra ==" not in need]
    assert needs == [*own, *list_pins()]
    assert "pyarrow>=10.0.1" in own


WORKER = f"""
{HIDE_CLIENTS}
import pickle
sys.path.insert(0, sys.argv[1])
import darkroom
from apache_beam.internal import pickler
assert darkroom.__file__.startswith(sys.argv[1]), darkroom.__file__
write_shard = pickler.loads(open(sys.argv[2], "rb").read())
write_shard.setup()
write_shard.start_bundle()
reports = []
for task in pickler.loads(open(sys.argv[3], "rb").read()):
    reports += write_shard.process((task.range.number, [task]))
reports += [windowed.value for windowed in write_shard.finish_bundle()]
write_shard.teardown()
for _, report in reports:
    print(report.split, report.records, report.rejected)
print(sorted({{"tfx", "tensorflow", "darkroom.components"}} & sys.modules.keys()))
"""


@pytest.mark.slow
@pytest.mark.parametrize("way", ["unpacked", pytest.param("installed", marks=pytest.mark.long)])
def test_the_staged_package_writes_shards_alone(tmp_path, way):
    for i in range(3):
        Image.new("RGB", (8, 8), (i, 0, 0)).save(tmp_path / f"{i}.png")
    rows = [f"{s},{i}.png,cat\n" for i, s in enumerate(["TRAIN", "TRAIN", "TEST", "TEST"])]
    folders, transform = plan(tmp_path, rows, num_shards=1, output=str(tmp_path / "out"))
    Output(folders).begin(transform.commit.attempt, transform.tasks)
    (tmp_path / "fn").write_bytes(pickler.dumps(WriteShardFn()))
    (tmp_path / "tasks").write_bytes(pickler.dumps(transform.tasks))
    package = write_source_package(str(tmp_path))
    target = str(tmp_path / "site")
    if way == "installed":
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        alone = ["--no-deps", "--no-index", "--no-build-isolation", "--target", target]
        subprocess.run([*pip, *alone, package], check=True, cwd=tmp_path)
    else:
        with tarfile.open(package) as archive:
            archive.extractall(target)
        (top,) = Path(target).iterdir()
        target = str(top / "src")

    worker = [sys.executable, "-I", "-c", WORKER, target, "fn", "tasks"]
    done = subprocess.run(worker, capture_output=True, text=True, cwd=tmp_path)

    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["train 2 0", "test 1 1", "[]"]
