"""The command of each container: runs one component on the input that Kubeflow or Vertex passes.

    python -m darkroom.kfp.task convert_images --executor_input '{{$}}'

It needs neither kfp nor TFX. Exit codes are those of the command `darkroom`. An error ends with one
line of JSON on standard error: {"error": {"code", "message", "hint", "exit_code", "component"}}.
"""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable, Mapping, Sequence

from darkroom.errors import DarkroomError
from darkroom.kfp import data_tasks, model_tasks
from darkroom.kfp.ending import TaskParser, handle_signals, report_error
from darkroom.kfp.execution import Execution, parse_execution
from darkroom.kfp.interfaces import find_interface
from darkroom.runtime import progress
from darkroom.runtime.process import collect_less_garbage
from darkroom.runtime.streams import end_process, secure_streams

TASKS: Mapping[str, Callable[[Execution], None]] = {
    "convert_images": data_tasks.convert_images,
    "validate_dataset": data_tasks.validate_dataset,
    "diff_datasets": data_tasks.diff_datasets,
    "validation_gate": data_tasks.validation_gate,
    "notify": data_tasks.notify,
    "dataset_statistics": data_tasks.dataset_statistics,
    "verify_dataset": data_tasks.verify_dataset,
    "find_duplicates": data_tasks.find_duplicates,
    "inspect_dataset": data_tasks.inspect_dataset,
    "train_classifier": model_tasks.train_classifier,
    "train_with_function": model_tasks.train_with_function,
    "evaluate_classifier": model_tasks.evaluate_classifier,
    "predict_images": model_tasks.predict_images,
    "register_model": model_tasks.register_model,
}


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

    Args:
        name: Its name.
        text: KFP's ExecutorInput as JSON.

    Raises:
        DarkroomError: An argument is wrong, or the component failed.
        OSError: Something cannot be read or written.
    """
    execution = parse_execution(text, find_interface(name))
    execution.check_inputs()
    TASKS[name](execution)


if __name__ == "__main__":
    secure_streams()
    handle_signals()
    end_process(main())
