"""Runs any TFX pipeline on this machine as `darkroom run` does: a line a node, and a summary."""

from __future__ import annotations

import contextlib
import logging
import os
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import TextIO

from absl import logging as absl_logging
from tfx.orchestration.pipeline import Pipeline

from darkroom import storage
from darkroom.errors import UsageError
from darkroom.pipelines.local import lineage
from darkroom.pipelines.local.latest_run import read_summary
from darkroom.pipelines.local.summary import RunSummary, format_summary
from darkroom.pipelines.local_runner import launch
from darkroom.runtime import progress, streams
from darkroom.validation.gate import GateError

LOG_FILE = "log.txt"


class LocalRunner:
    """Runs pipelines in the place of TFX's LocalDagRunner, and says what happens.

    Each node gets a line when it ends, with its progress while it runs. What TFX, TensorFlow and
    `run_fn` print goes to a file. At the end there is a summary of what the nodes made. Results of
    earlier runs are used again only when their files are still what they were.
    """

    def __init__(self, log: str | os.PathLike[str] | None = None) -> None:
        """Makes the runner.

        Args:
            log: File for the output of TFX and TensorFlow, replaced by each run; `log.txt` in the
                pipeline's root when None.
        """
        self._log = log

    def run(self, pipeline: Pipeline) -> RunSummary:
        """Runs a pipeline to its end, and prints its summary.

        Returns:
            The summary, also as values.

        Raises:
            GateError: The data did not pass: it has the findings, and the summary was printed.
            UsageError: The pipeline has no metadata store, or the log has no place.
            Exception: What the executor of a node raised.
        """
        log_path, connection = self._find_log(pipeline), pipeline.metadata_connection_config
        if connection is None:
            raise UsageError(
                "The pipeline has no metadata_connection_config.",
                "Give Pipeline one, as tfx.v1.orchestration.metadata."
                "sqlite_metadata_connection_config makes it of a path.",
            )
        started, name = time.monotonic(), pipeline.pipeline_info.pipeline_name
        makes = {
            channel.type_name for node in pipeline.components for channel in node.outputs.values()
        }
        stop: GateError | None = None
        with _send_output_to(log_path) as out:
            try:
                with progress.use(progress.make_sink(out)):
                    launch(pipeline)
            except GateError as error:
                stop = error
            except BaseException:
                print(f"Log        {log_path}", file=out)
                raise
            summary = read_summary(
                lineage.read_run(connection, name),
                pipeline.pipeline_info.pipeline_root,
                log_path,
                time.monotonic() - started,
                makes=makes,
            )
            # The error has the findings: to print them here, too, would show them twice.
            print(format_summary(summary, with_findings=stop is None), file=out)
        if stop:
            raise stop
        return summary

    def _find_log(self, pipeline: Pipeline) -> str:
        if self._log is not None:
            return storage.absolute(self._log)
        root = pipeline.pipeline_info.pipeline_root
        if storage.is_remote(root):
            raise UsageError(f"The log cannot be written to {root}.", "Give LocalRunner a log.")
        return storage.absolute(storage.join(root, LOG_FILE))


@contextmanager
def _send_output_to(path: str) -> Iterator[TextIO]:
    """Sends all output to a file; yields where it went before."""
    with ExitStack() as stack:
        out = stack.enter_context(streams.redirect_output(path))
        if sys.stdout is not sys.__stdout__:
            # As in a notebook, where Python's streams do not write to file descriptors.
            out, old = sys.stdout, (sys.stdout, sys.stderr)
            log = stack.enter_context(open(path, "a", encoding="utf-8", errors="replace"))
            stack.enter_context(contextlib.redirect_stdout(log))
            stack.enter_context(contextlib.redirect_stderr(log))
            handlers = [*logging.root.handlers, absl_logging.get_absl_handler().python_handler]
            for handler in handlers:
                if isinstance(handler, logging.StreamHandler) and handler.stream in old:
                    stack.callback(handler.setStream, handler.stream)
                    handler.setStream(log)
        yield out
