"""A pipeline that would run in this process does its work without Beam, as TFX makes them here."""

import apache_beam as beam
import pytest
from apache_beam.options.pipeline_options import PipelineOptions

from darkroom.conversion.beam.run import run_write
from darkroom.conversion.shards.writing import WriteJob


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
