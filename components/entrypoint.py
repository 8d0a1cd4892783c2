"""The command of every container: runs one executor on the input that Kubeflow or Vertex passes.

    python -m darkroom.components.entrypoint --target kubeflow [--own-pipeline] \
        --executor_class_path PATH --json_serialized_invocation_args '{{$}}' \
        --json_serialized_inputs_spec_args JSON [BEAM ARGUMENT...]

TFX's own entrypoint does the work. Current backends of Kubeflow Pipelines pass it what it cannot
handle: an output for the log, of a type that it cannot import, and minio:// URIs, which TensorFlow
cannot open.

Exit codes are those of the command `darkroom`. An error ends with one line of JSON on standard
error: {"error": {"code", "message", "hint", "exit_code", "executor"}}.
"""

from __future__ import annotations

import argparse
import json
import sys
import traceback
from collections.abc import Sequence
from unittest import mock

from darkroom import storage
from darkroom.errors import DarkroomError, UsageError
from darkroom.kfp.ending import TaskParser, handle_signals, report_error
from darkroom.kfp.executor_input import list_artifacts, parse_executor_input
from darkroom.options.pipeline import LOCAL_BEAM_ARGS, OWN_PIPELINE
from darkroom.options.targets import TARGETS
from darkroom.runtime.process import collect_less_garbage
from darkroom.runtime.streams import end_process, secure_streams

if __name__ == "__main__":
    # First: TFX makes handlers of logs, which keep the streams that they find.
    secure_streams()
# Searching the modules of TFX for garbage takes a third of the time of their import.
with collect_less_garbage():
    from tfx.dsl.components.base.base_beam_executor import BaseBeamExecutor
    from tfx.dsl.components.base.base_executor import BaseExecutor
    from tfx.orchestration.kubeflow.v2.container import kubeflow_v2_run_executor
    from tfx.utils import import_utils

    from darkroom.components import executor_io


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one task.

    Args:
        argv: Arguments without the program's name; the process's own when None.

    Returns:
        The exit code.
    """
    executor = ""
    parser = TaskParser(prog="darkroom.components.entrypoint", allow_abbrev=False)
    parser.add_argument("--target", choices=TARGETS, required=True)
    # Without run-time parameters: there, a property that has the name of one is a property.
    parser.add_argument(OWN_PIPELINE, action="store_true")
    parser.add_argument("--executor_class_path", required=True)
    parser.add_argument("--json_serialized_invocation_args", required=True)
    parser.add_argument("--json_serialized_inputs_spec_args", default="")
    try:
        arguments, beam_args = parser.parse_known_args(argv)
        executor = arguments.executor_class_path
        # TFX passes the process's arguments to absl, which would reject ours.
        with mock.patch.object(sys, "argv", sys.argv[:1]):
            run_executor(arguments, beam_args)
    except Exception as error:  # noqa: BLE001  the backend gets its line of JSON for any error
        # Ours say what is wrong and what to do; of all others, the place may matter.
        if not isinstance(error, DarkroomError):
            traceback.print_exc()
        return report_error(error, executor=executor)
    return 0


def run_executor(arguments: argparse.Namespace, beam_args: list[str]) -> None:
    """Runs the executor and writes its ExecutorOutput.

    Args:
        arguments: Arguments of the command line.
        beam_args: The remaining arguments, which are Beam's.

    Raises:
        DarkroomError: An argument is wrong, an input has no files, or the executor failed.
    """
    path, given_text = arguments.executor_class_path, arguments.json_serialized_invocation_args
    try:
        executor: type[BaseExecutor] = import_utils.import_class_by_path(path)
        if not issubclass(executor, BaseExecutor):
            raise TypeError(f"{path} is not an executor of TFX")
    except (ImportError, TypeError, ValueError) as error:
        raise UsageError(
            f"The image has no executor {path}: {error}.",
            "Build the image from the code that the pipeline was compiled with.",
        ) from error
    given = parse_executor_input(given_text)
    artifacts = (*list_artifacts(given["inputs"]), *list_artifacts(given["outputs"]))
    is_in_gcs = all(each["uri"].startswith("gs://") for each in artifacts)
    is_ours = executor.__module__.startswith("darkroom.")
    by_tensorflow = not is_ours or getattr(executor, "READS_BY_TENSORFLOW", False)
    if arguments.target == "kubeflow" and by_tensorflow and not is_in_gcs:
        # TFX's executors use TensorFlow, which cannot open s3:// on workers elsewhere.
        beam_args = list(LOCAL_BEAM_ARGS)
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--runner", default="")
    runner = str(parser.parse_known_args(beam_args)[0].runner)
    uses_beam = issubclass(executor, BaseBeamExecutor)
    locate = executor_io.choose_places(arguments.target, runner, uses_beam=uses_beam)
    spec_text = arguments.json_serialized_inputs_spec_args
    task = executor_io.parse_input(
        given_text, spec_text, locate, has_parameters=not arguments.own_pipeline
    )
    executor_io.prepare_files(given, task)
    arguments.json_serialized_invocation_args = json.dumps(task)
    kubeflow_v2_run_executor.main((arguments, beam_args))
    output = task["outputs"]["outputFile"]
    text = storage.read_bytes(output).decode()
    storage.write_bytes(output, executor_io.restore_output(text, given, task).encode())


if __name__ == "__main__":
    handle_signals()
    end_process(main())
