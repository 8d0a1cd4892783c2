"""How a pipeline runs: in this process without Beam, as TFX makes them here, or elsewhere."""

import apache_beam as beam
import pytest
from apache_beam.options.pipeline_options import GoogleCloudOptions, PipelineOptions
from tests.pictures import write_label_folders

from darkroom.conversion.beam.run import run_beam_pipeline, run_write
from darkroom.conversion.convert import convert
from darkroom.conversion.shards.writing import WriteJob
from darkroom.errors import OutputError, StorageError
from darkroom.options.conversion import ConversionOptions
from darkroom.runtime.process import find_explanation


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ([], ["here"]),
        (["--temp_location=/tmp/x"], ["here"]),
        (["--direct_num_workers=2"], ["Beam"]),
        (["--direct_running_mode=multi_processing"], ["Beam"]),
    ],
)
def test_a_local_pipeline_needs_beam_only_for_workers(write, monkeypatch, options, expected):
    did: list[str] = []
    monkeypatch.setattr(WriteJob, "run_here", lambda job: did.append("here"))
    monkeypatch.setattr(beam.Pipeline, "run", lambda pipeline: did.append("Beam") or pipeline)
    monkeypatch.setattr(beam.Pipeline, "wait_until_finish", lambda pipeline: None, raising=False)
    pipeline = beam.Pipeline(options=PipelineOptions(["--runner=FnApiRunner", *options]))
    run_write(pipeline, write, "a-name")
    assert did == expected


@pytest.fixture
def fail(monkeypatch):
    """Runs a pipeline elsewhere, whose job ends with an error; returns its name there."""

    def fail(error: BaseException, *options: str) -> str:
        class Result:
            def wait_until_finish(self):
                raise error

        monkeypatch.setattr(beam.Pipeline, "run", lambda pipeline: Result())
        pipeline = beam.Pipeline(options=PipelineOptions(["--runner=PortableRunner", *options]))
        try:
            run_beam_pipeline(pipeline, "darkroom-0123abcd")
        finally:
            names.append(pipeline.options.view_as(GoogleCloudOptions).job_name)
        raise AssertionError

    names = fail.names = []
    return fail


@pytest.mark.parametrize("interrupt", [KeyboardInterrupt(), SystemExit(143)])
def test_a_job_keeps_running_without_its_client_which_names_it(fail, interrupt):
    with pytest.raises(type(interrupt)) as stop:
        fail(interrupt, "--job_name=nightly")
    assert fail.names == ["nightly-darkroom-0123abcd"]
    assert find_explanation(stop.value) == (
        "The job nightly-darkroom-0123abcd of PortableRunner may keep running: cancel it there by "
        "this name."
    )


def test_a_job_that_fails_says_why_and_that_shards_are_kept(fail):
    with pytest.raises(StorageError) as stop:
        fail(RuntimeError("java.lang.RuntimeException: no slots\n\tat x.Y.z(Y.java:840)\n"))
    assert stop.value.message == (
        "The job darkroom-0123abcd of PortableRunner failed: java.lang.RuntimeException: no slots"
    )
    assert stop.value.hint.endswith("Finished shards are kept.")


def test_a_job_of_a_pipeline_is_not_begun_where_its_engine_is_not_there(fail):
    with pytest.raises(StorageError, match=r"127\.0\.0\.1:1 \(job_endpoint\): .*refused"):
        fail(RuntimeError("begun"), "--job_endpoint=127.0.0.1:1")


def test_an_error_of_darkroom_stays_as_it_is(fail):
    with pytest.raises(OutputError, match="taken"):
        fail(OutputError("The output was taken."))


def test_workers_that_do_not_see_the_images_reject_none(tmp_path, monkeypatch):
    """The client sees them, so that they are not missing: the workers are on other machines."""
    write_label_folders(tmp_path / "src", 3)
    run = beam.Pipeline.run

    def run_elsewhere(pipeline, *arguments):
        (tmp_path / "src").rename(tmp_path / "aside")
        return run(pipeline, *arguments)

    monkeypatch.setattr(beam.Pipeline, "run", run_elsewhere)
    here = {"job_endpoint": "embed", "environment_type": "LOOPBACK"}
    options = ConversionOptions(beam_options=here)
    with pytest.raises(StorageError, match="The workers do not see the images: ") as stop:
        convert(tmp_path / "src", tmp_path / "out", runner="PortableRunner", options=options)
    assert f"{tmp_path / 'src'}/" in stop.value.message
    assert not [*tmp_path.glob("out/**/shard-*")]
