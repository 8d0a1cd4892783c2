"""The command of each container: runs one component on the input that Kubeflow or Vertex passes.

    python -m darkroom.kfp.task convert_images --executor_input '{{$}}'

It needs neither kfp nor TFX. Exit codes are those of the command `darkroom`. An error ends with one
line of JSON on standard error: {"error": {"code", "message", "hint", "exit_code", "component"}}.
"""

from __future__ import annotations

import sys
import traceback
from collections.abc import Sequence

from darkroom.errors import DarkroomError
from darkroom.kfp.ending import TaskParser, handle_signals, report_error
from darkroom.kfp.execution import parse_execution
from darkroom.runtime import progress
from darkroom.runtime.process import collect_less_garbage
from darkroom.runtime.streams import end_process, secure_streams
from darkroom.steps.known import find_step


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one task.

    Args:
        argv: Arguments without the program's name; the process's own when None.

    Returns:
        The exit code.
    """
    name = ""
    parser = TaskParser(prog="darkroom.kfp.task", allow_abbrev=False)
    parser.add_argument("component")
    parser.add_argument("--executor_input", required=True)
    try:
        arguments = parser.parse_args(argv)
        name = arguments.component
        with collect_less_garbage(), progress.use(progress.make_sink(sys.stderr)):
            run_task(name, arguments.executor_input)
    except Exception as error:  # noqa: BLE001  the backend gets its line of JSON for any error
        if not isinstance(error, DarkroomError | OSError):
            traceback.print_exc()
        return report_error(error, component=name)
    return 0


def run_task(name: str, text: str) -> None:
    """Runs a component.

    It writes the outputs before it fails: on Vertex they stay, and on Kubeflow the log explains the
    failure.

    Args:
        name: Its name.
        text: KFP's ExecutorInput as JSON.

    Raises:
        DarkroomError: An argument is wrong, or the component failed, or the data or the model did
            not pass and the component was told to fail then.
        OSError: Something cannot be read or written.
    """
    step = find_step(name)
    execution = parse_execution(text, step)
    execution.check_inputs()
    places, options = execution.find_places(step), execution.parameters
    fails = options.pop("fail", True)
    made = step.run(places, options)
    execution.write_output(step, made)
    if made.error and fails:
        raise made.error


if __name__ == "__main__":
    secure_streams()
    handle_signals()
    end_process(main())
