"""All that Dataflow's SDK does with a job before it talks to Google."""

from __future__ import annotations

import json

import pytest

from darkroom import storage
from darkroom.conversion.beam.transforms import WriteDataset

from .test_dataflow import REMOTE, gcp, make_job, plan  # noqa: F401  a fixture


def test_the_sdk_accepts_options_graph_and_what_is_staged(tmp_path, monkeypatch):
    # With the clients of Cloud Storage alone, Beam has no Dataflow.
    apiclient = "apache_beam.runners.dataflow.internal.apiclient"
    pytest.importorskip(apiclient, reason="needs the extra [dataflow]", exc_type=ImportError)
    monkeypatch.setattr(storage, "stat_file", lambda uri: storage.FileInfo(5, "1"))
    _, transform = plan(tmp_path, REMOTE[:20])
    options = {"num_workers": 3, "machine_type": "n2-standard-4", "job_name": "darkroom-0123abcd"}

    result = (
        make_job(dry_run=True, **options)
        .build_pipeline(WriteDataset(transform), str(tmp_path))
        .run()
    )

    assert result.state == "DONE"
    described = json.loads(result.job.json())
    assert (described["name"], described["type"]) == ("darkroom-0123abcd", "JOB_TYPE_BATCH")
    components = result.job.proto_pipeline.components
    steps = {each.unique_name for each in components.transforms.values()}
    names = ("CreateTasks", "SpreadTasks", "WriteShards", "CollectReports", "Commit")
    assert steps >= {f"WriteDataset/{name}" for name in names}
    (environment,) = components.environments.values()
    assert environment.urn == "beam:env:docker:v1"
    # The package of darkroom itself, without which no worker could unpickle a task.
    staged = [each.role_payload for each in environment.dependencies]
    assert any(b"darkroom_data-" in each and each.endswith(b".tar.gz") for each in staged)
