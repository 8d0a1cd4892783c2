"""Runs any TFX pipeline on this machine as `darkroom run` does: a line a node, and a summary."""

from __future__ import annotations

import contextlib
import itertools
import logging
import os
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any, TextIO
from unittest import mock

from absl import logging as absl_logging
from tfx.orchestration.local import local_dag_runner
from tfx.orchestration.pipeline import Pipeline
from tfx.orchestration.portable import launcher
from tfx.types import artifact_utils
from tfx.types.artifact import Artifact

from darkroom import storage
from darkroom.errors import DataError, OutputError, UsageError
from darkroom.pipelines.config import LOG_FILE, check_root
from darkroom.pipelines.local import lineage
from darkroom.pipelines.local.cached_outputs import check_outputs, keep_sums
from darkroom.pipelines.local.summary import RunSummary, format_summary
from darkroom.runtime import progress, streams
from darkroom.validation.gate import GateError


class LocalRunner:
    """Runs pipelines in the place of TFX's LocalDagRunner, and shows progress.

    Each node gets a line when it ends, with its progress while it runs. The output of TFX,
    TensorFlow and `run_fn` goes to a file. At the end there is a summary. Results of
    earlier runs are used again only when their files are unchanged.
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
            Exception: The error of a node's executor.
        """
        log_path = self._find_log(pipeline)
        if pipeline.metadata_connection_config is None:
            raise UsageError(
                "The pipeline has no metadata_connection_config.",
                "Give Pipeline one, as tfx.v1.orchestration.metadata."
                "sqlite_metadata_connection_config makes it of a path.",
            )
        started = time.monotonic()
        makes = {
            channel.type_name for node in pipeline.components for channel in node.outputs.values()
        }
        with _send_output_to(log_path) as out:
            try:
                with progress.use(progress.make_sink(out)):
                    stop = launch(pipeline)
            except BaseException:
                print(f"Log        {log_path}", file=out)
                raise
            root = pipeline.pipeline_info.pipeline_root
            summary = lineage.read_summary(pipeline, root, log_path, started, makes=makes)
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


def launch(pipeline: Pipeline) -> GateError | None:
    """Runs a pipeline, and reports the progress of its nodes.

    Returns:
        The error of the gate where the data did not pass; its report is kept.

    Raises:
        DataError: The metadata are damaged.
        StorageError: They cannot be written.
        UsageError: Beam would take the pipeline's root for a pattern.
        Exception: The error of a node's executor.
    """
    check_root(str(pipeline.pipeline_info.pipeline_root))
    lineage.check_metadata(pipeline.metadata_connection_config)
    verbosity = absl_logging.get_verbosity()
    # TFX passes the process's arguments to absl, which would reject ours.
    with (
        lineage.name_metadata(pipeline.metadata_connection_config),
        mock.patch.object(sys, "argv", sys.argv[:1]),
        _use_reporting_launcher(len(pipeline.components)),
    ):
        try:
            absl_logging.set_verbosity(absl_logging.WARNING)
            local_dag_runner.LocalDagRunner().run(pipeline)
        except GateError as error:
            return error
        finally:
            absl_logging.set_verbosity(verbosity)
    return None


def _check_unused(outputs: Iterable[Artifact]) -> None:
    """Checks that new outputs do not replace anything: TFX would delete them if the node fails.

    Raises:
        OutputError: A folder has files, so the metadata do not know of a run that was here.
    """
    for artifact in outputs:
        if artifact.uri and not artifact.is_external and storage.has_files(artifact.uri):
            raise OutputError(
                f"{artifact.uri} has files of an earlier run, which the metadata do not know.",
                "Restore the metadata of that run, or choose another root.",
            )


@contextmanager
def _use_reporting_launcher(num_nodes: int) -> Iterator[None]:
    """Makes LocalDagRunner launch nodes with a launcher that reports their progress.

    Outputs of an earlier run are reused only when their files are unchanged.
    LocalDagRunner names its launcher class itself, and the launcher names its checks: neither takes
    an argument for them.
    """
    numbers = itertools.count(1)
    damages: list[str] = []
    reused: list[str] = []

    def check(outputs: Mapping[str, Sequence[Artifact]]) -> None:
        try:
            check_outputs(outputs)
        except RuntimeError as error:
            damages.append(str(error))
            raise

    class ReportingLauncher(launcher.Launcher):
        def launch(self) -> Any:
            """Runs a node as a step; it was reused if its executor was not called."""
            self._has_run = False
            damages.clear()
            with progress.step(self._pipeline_node.node_info.id, next(numbers), num_nodes):
                try:
                    info = super().launch()
                except DataError as error:
                    # The records may come from the cache: another way out.
                    if reused and not isinstance(error, GateError):
                        advice = "Without the cache (--no-cache), all results are made again."
                        error.hint = f"{error.hint} {advice}".strip()
                    raise
                # A Resolver has no executor: it looks in each run.
                if not self._has_run and self._executor_operator:
                    reused.append(self._pipeline_node.node_info.id)
                    progress.remark("reused: nothing has changed")
            return info

        def _run_executor(self, execution_info: Any) -> Any:
            self._has_run = True
            _check_unused(itertools.chain(*execution_info.output_dict.values()))
            if damages:
                # The first one belongs to the newest outputs.
                damage, node = damages[0].rstrip("."), self._pipeline_node.node_info.id
                progress.note(f"{damage}, so {node} runs again.")
            return super()._run_executor(execution_info)

        def _publish_successful_execution(
            self, execution_id: Any, contexts: Any, output_dict: Any, executor_output: Any
        ) -> None:
            """Keeps the hashes of new outputs first: a run may reuse what is published."""
            if self._has_run:
                for key, artifacts in output_dict.items():
                    # An executor may have changed the URI.
                    changed = executor_output.output_artifacts.get(key) if executor_output else None
                    for artifact in changed.artifacts if changed else artifacts:
                        keep_sums(artifact.uri, artifacts[0].type_name)
            super()._publish_successful_execution(
                execution_id, contexts, output_dict, executor_output
            )

    with (
        mock.patch.object(launcher, "Launcher", ReportingLauncher),
        mock.patch.object(artifact_utils, "verify_artifacts", check),
    ):
        yield
