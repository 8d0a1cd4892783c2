"""Beam in a notebook: darkroom's pipelines do not use Beam's code for notebooks."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import threading
from types import ModuleType, SimpleNamespace

import apache_beam as beam
import grpc
import pytest
from apache_beam import pipeline as beam_pipeline

from darkroom.runtime import plain_beam
from darkroom.runtime.plain_beam import apply_transform, quiet_client

from ..light_beam import HIDE_CLIENTS

pytestmark = pytest.mark.heavy


class Waiting(beam.PTransform):
    """Signals that it is being applied, and waits."""

    def __init__(self):
        super().__init__()
        self.begun, self.may_end = threading.Event(), threading.Event()

    def expand(self, pipeline):
        self.begun.set()
        assert self.may_end.wait(300)
        return pipeline | beam.Create([1])


@pytest.fixture
def notebook(monkeypatch):
    """Makes this process look like a notebook to Beam, without the needs of Interactive Beam."""
    ipython = ModuleType("IPython")
    ipython.get_ipython = lambda: SimpleNamespace(execution_count=7, config={})
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    monkeypatch.setitem(sys.modules, "apache_beam.runners.interactive", None)


def test_a_pipeline_in_a_notebook_needs_no_interactive_beam(notebook):
    seen = []
    with beam.Pipeline("FnApiRunner") as pipeline:
        apply_transform(pipeline, "Numbers", beam.Create([3, 4]))
        seen.append(pipeline.local_tempdir)
    assert "Numbers" in pipeline.applied_labels
    assert [os.path.exists(folder) for folder in seen] == [False]


def test_a_pipeline_of_the_user_is_not_changed(notebook):
    labeler = beam_pipeline.alter_label_if_ipython
    pipeline = beam.Pipeline("FnApiRunner")
    apply_transform(pipeline, "Numbers", beam.Create([3]))
    with pytest.raises(RuntimeError, match="already exists"):
        apply_transform(pipeline, "Numbers", beam.Create([3]))
    assert beam_pipeline.alter_label_if_ipython is labeler
    with pytest.raises(ImportError, match=r"apache_beam\.runners\.interactive"):
        beam.Pipeline("FnApiRunner") | beam.Create([3])


def test_pipelines_that_other_threads_build_are_labelled(monkeypatch):
    labelled = []
    monkeypatch.setattr(
        beam_pipeline, "alter_label_if_ipython", lambda transform, _: labelled.append(transform)
    )
    ours, users = Waiting(), beam.Create([3])
    thread = threading.Thread(
        target=apply_transform, args=(beam.Pipeline("FnApiRunner"), "Ours", ours)
    )
    thread.start()
    try:
        assert ours.begun.wait(300)
        beam.Pipeline("FnApiRunner") | users
    finally:
        ours.may_end.set()
        thread.join()
    assert labelled == [users]


def test_a_beam_without_labels_works(monkeypatch):
    monkeypatch.delattr(beam_pipeline, "alter_label_if_ipython")
    monkeypatch.setattr(
        beam.Pipeline, "apply", lambda self, transform, *_: applied.append(transform)
    )
    applied, ours = [], beam.Create([3])
    apply_transform(beam.Pipeline("FnApiRunner"), "Ours", ours)
    assert [getattr(found, "transform", found) for found in applied] == [ours]
    assert not hasattr(beam_pipeline, "alter_label_if_ipython")


def test_beam_is_imported_silently_and_later_messages_are_shown():
    # Google's libraries are hidden, as without [dataflow]: then Beam logs that they are missing.
    script = f"""
{HIDE_CLIENTS}
import contextlib, logging
import darkroom.conversion.beam.transforms
from darkroom.conversion.beam import dataflow, options
options.build_options("FnApiRunner", {{}})
options.build_options("FnApiRunner", {{"region": "x"}})
with contextlib.suppress(Exception):
    dataflow.check_extra()
assert "apache_beam" in sys.modules
logging.warning("apitools not found")
"""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", script], capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (0, "WARNING:root:apitools not found\n")


@pytest.mark.parametrize(
    ("error", "place", "is_shown"),
    [
        (grpc.RpcError("broken"), "/site-packages/apache_beam/worker.py", False),
        (grpc.RpcError("broken"), "/home/me/own.py", True),
        (ValueError("a defect"), "/site-packages/apache_beam/worker.py", True),
    ],
)
def test_a_stream_of_beam_that_breaks_is_not_shown_even_when_the_job_has_ended(
    monkeypatch, error, place, is_shown
):
    shown = []
    monkeypatch.setattr(plain_beam, "_show_error", lambda failed: shown.append(failed.exc_value))
    monkeypatch.setattr(threading, "excepthook", plain_beam._show_error)
    scope = {}
    exec(compile("def fail(error):\n    raise error", place, "exec"), scope)
    with pytest.raises(SystemExit), quiet_client():
        raise SystemExit(143)
    thread = threading.Thread(target=scope["fail"], args=(error,))
    thread.start()
    thread.join()
    assert shown == ([error] if is_shown else [])


def test_that_a_job_server_is_not_ready_yet_is_not_logged_and_all_else_is(caplog):
    with quiet_client():
        logging.warning("Waiting for grpc channel to be ready at localhost:1.")
        logging.warning("The pipeline is slow.")
    logging.warning("Waiting for grpc channel to be ready at localhost:2.")
    assert [record.getMessage()[-12:] for record in caplog.records] == [
        "ine is slow.",
        "localhost:2.",
    ]
