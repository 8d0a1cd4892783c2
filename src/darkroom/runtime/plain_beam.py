"""Beam that works in a notebook as anywhere else, imported without a warning.

In IPython and Jupyter, Beam labels each transform with the number of the cell. For that it imports
Interactive Beam, which needs an old version of pandas. The pipelines that darkroom builds do
without these labels, which nobody sees. The user's own pipelines are not changed.
"""

from __future__ import annotations

import logging
import shutil
import threading
import traceback
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from darkroom.errors import find_missing_extra

# What Beam logs by the root logger, though nobody can do anything about it.
_IDLE = ("apitools not found", "Waiting for grpc channel to be ready")


@contextmanager
def _quiet_import() -> Iterator[None]:
    """Keeps Google's libraries quiet: that some are missing, or that Python is old.

    Raises:
        MissingExtraError: Beam is not installed.
    """
    root = logging.getLogger()
    root.addFilter(_is_worth_logging)
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", category=FutureWarning, module=r"google\..*")
            yield
    except ModuleNotFoundError as error:
        if missing := find_missing_extra(error):
            raise missing from error
        raise
    finally:
        root.removeFilter(_is_worth_logging)


def _is_worth_logging(record: logging.LogRecord) -> bool:
    said = record.getMessage()
    return not any(idle in said for idle in _IDLE)


with _quiet_import():
    import apache_beam
    import apache_beam.pipeline as beam_pipeline

beam = apache_beam
_labeler_lock = threading.Lock()
_show_error = threading.excepthook


@contextmanager
def quiet_client() -> Iterator[None]:
    """Keeps the terminal free of what a job elsewhere does to its client.

    When the job server ends, all streams to it break, each in a thread of Beam. That may be after
    the block, when the process ends, so those are never shown again.
    """
    root = logging.getLogger()
    root.addFilter(_is_worth_logging)
    if threading.excepthook is _show_error:
        threading.excepthook = _show_others
    try:
        yield
    finally:
        root.removeFilter(_is_worth_logging)


def _show_others(failed: threading.ExceptHookArgs) -> None:
    """Shows an error of a thread, unless it is a stream's that Beam read."""
    import grpc

    is_beam = "/apache_beam/" in "".join(traceback.format_tb(failed.exc_traceback))
    if not (is_beam and isinstance(failed.exc_value, grpc.RpcError)):
        _show_error(failed)


def apply_transform(
    pipeline: apache_beam.Pipeline, label: str, transform: apache_beam.PTransform
) -> None:
    """Applies a transform to a pipeline itself, without Beam's code for notebooks.

    Args:
        pipeline: A pipeline that is being built, for any runner.
        label: The transform's name in it.
        transform: One that needs no files of the pipeline, unlike transforms of other languages.
    """
    with _labeler_lock, _without_label(transform):
        _ = pipeline | label >> transform
    # In a notebook, Beam leaves it to Interactive Beam to remove this folder.
    shutil.rmtree(pipeline.local_tempdir, ignore_errors=True)


@contextmanager
def _without_label(transform: apache_beam.PTransform) -> Iterator[None]:
    """Keeps Beam from labelling one transform; Beam labels only the outermost one."""
    labeler = getattr(beam_pipeline, "alter_label_if_ipython", None)
    if labeler is None:
        yield  # another version of Beam, which does not label
        return

    def label_others(applied: Any, *args: Any) -> None:
        # Another thread may build one of the user's pipelines meanwhile.
        if applied is not transform:
            labeler(applied, *args)

    beam_pipeline.alter_label_if_ipython = label_others
    try:
        yield
    finally:
        beam_pipeline.alter_label_if_ipython = labeler
