"""The command `darkroom`: convert, verify, validate, train, run, compile, submit and others.

Exit codes: 0 done, 1 the data failed a check, 2 wrong usage, 3 environment, 4 another process uses
the output or it contains other data, 70 a defect of darkroom, 128 + n ended by signal n.

The top layer: it may import everything. It does so inside its functions, so that `--help` starts
fast.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import time
import traceback
from collections.abc import Sequence
from typing import NoReturn

from darkroom.cli import data_commands, model_commands
from darkroom.cli.data_commands import read_options
from darkroom.cli.model_commands import start_tensorflow
from darkroom.cli.process import Signal, end_by_signal
from darkroom.errors import DarkroomError, UsageError, convert_error
from darkroom.runtime.process import collect_less_garbage, end_process, find_explanation
from darkroom.runtime.streams import secure_streams

_QUIET = ("validate", "train", "evaluate", "predict", "benchmark", "compile", "submit")
_EXIT_USAGE, _EXIT_DEFECT = 2, 70
_SIGNAL_SECONDS = 0.5


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command line.

    Args:
        argv: Arguments without the program's name; the process's own when None.

    Returns:
        The exit code.
    """
    from darkroom.cli.parser import build_parser

    if argv is None:
        secure_streams()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, end_by_signal)
    arguments = argparse.Namespace(command=None)
    try:
        parser = build_parser()
        if "_ARGCOMPLETE" in os.environ:
            _complete(parser)
        arguments = parser.parse_args(argv)
        code = _run_command(arguments)
    except UsageError as error:
        as_json = "--json" in (sys.argv[1:] if argv is None else argv)
        asked = argparse.Namespace(json=as_json)
        code = _report(asked, _hide_credential(error))
    except SystemExit as stop:
        code = stop.code if isinstance(stop.code, int) else _EXIT_USAGE
        if code > 128:
            # A service runs until a signal ends it.
            again = "." if arguments.command == "dataservice" else "; run it again."
            if more := find_explanation(stop):
                again = f". {more}"
            print(f"Ended by {signal.Signals(code - 128).name}{again}", file=sys.stderr)
    if argv is None:
        end_process(code)
    return code


def _complete(parser: argparse.ArgumentParser) -> None:
    """Answers a shell that asks how the words of a command may go on, and ends the process."""
    try:
        import argcomplete
    except ModuleNotFoundError:
        # The shell asks at every Tab: a message would appear amid the words.
        raise SystemExit(1) from None
    argcomplete.autocomplete(parser)


def _hide_credential(error: UsageError) -> UsageError:
    """Returns the error without a token that the arguments may contain."""
    from darkroom.options.compiled.credentials import find_credential

    kind = find_credential(error.message)
    if kind is None:
        return error
    return UsageError(f"A wrong argument looks like a credential: {kind}.", error.hint)


def _run_command(arguments: argparse.Namespace) -> int:
    from darkroom.cli.flags import name_flag
    from darkroom.storage import convert_os_error

    command = {
        "convert": data_commands.convert_command,
        "attempts": data_commands.attempts_command,
        "verify": data_commands.verify_command,
        "validate": data_commands.validate_command,
        "duplicates": data_commands.duplicates_command,
        "inspect": data_commands.inspect_command,
        "train": _train,
        "evaluate": model_commands.evaluate_command,
        "export": model_commands.export_command,
        "predict": model_commands.predict_command,
        "run": _run,
        "compile": _compile,
        "submit": _submit,
        "artifacts": _artifacts,
        "demo": _demo,
        "dataservice": _dataservice,
        "benchmark": _benchmark,
    }
    _quiet_libraries(arguments.command)
    try:
        # Searching the modules of TFX for garbage takes a third of the time of their import.
        with collect_less_garbage():
            return command[arguments.command](arguments)
    except Exception as error:  # noqa: BLE001  the last resort: a defect of ours must say so
        if Signal.number is not None:
            raise SystemExit(128 + Signal.number) from None
        found = convert_error(convert_os_error(error) if isinstance(error, OSError) else error)
        if found.exit_code == _EXIT_DEFECT:
            traceback.print_exc()
        return _report(arguments, name_flag(found, arguments))


def _quiet_libraries(command: str) -> None:
    import logging
    import warnings

    # Errors of workers also reach us as exceptions.
    logging.getLogger("apache_beam").setLevel(logging.CRITICAL)
    # urllib3 logs every retry; a final failure raises anyway. kfp resets the parent logger's level.
    logging.getLogger("urllib3.connectionpool").setLevel(logging.ERROR)
    # Without the extra [gcp], Beam logs on every import that Google's libraries are absent.
    logging.getLogger().addFilter(lambda record: "apitools not found" not in record.getMessage())
    # Google's client libraries announce the end of Python 3.10 on every import.
    warnings.filterwarnings("ignore", category=FutureWarning, module=r"google\..*")
    # TensorFlow logs the end of a dataset, and the lack of a GPU, as warnings and errors. Real
    # errors raise.
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3" if command in _QUIET else "1")


def _report(arguments: argparse.Namespace, error: DarkroomError) -> int:
    if arguments.json:
        print(json.dumps({"error": error.to_dict()}))
    else:
        print(f"darkroom: {error.message}", file=sys.stderr)
        if error.hint:
            print(error.hint.lstrip("\n"), file=sys.stderr)
    return error.exit_code


def _train(arguments: argparse.Namespace) -> int:
    from contextlib import nullcontext

    from darkroom.runtime import progress
    from darkroom.training.cluster import read_cluster
    from darkroom.training.job import format_training
    from darkroom.training.jobs.train import make_options, start_training

    values = {k: v for k, v in vars(arguments).items() if k not in ("command", "json")}
    data, folder = values.pop("data"), values.pop("checkpoint_dir")
    eval_data, tune = values.pop("eval_data"), values.pop("tune")
    is_chief, options = read_cluster().is_chief, make_options(values)  # before TensorFlow is loaded
    start_tensorflow("darkroom.training.run")
    with progress.use(progress.make_sink(sys.stderr)) if is_chief else nullcontext():
        result = start_training(data, options, folder, eval_data, tune=tune)
    if result is not None:
        print(json.dumps(result.to_dict()) if arguments.json else format_training(result))
    return 0


def _run(arguments: argparse.Namespace) -> int:
    from darkroom.evaluation.serving import check_backend

    check_backend()  # before TFX is loaded
    from darkroom.pipelines.local.run import run_pipeline

    values = read_options(arguments)
    overwrite = values.pop("overwrite")
    return run_pipeline(values, as_json=arguments.json, overwrite=overwrite)


def _compile(arguments: argparse.Namespace) -> int:
    from darkroom.pipelines.compilation.files import run_compile

    return run_compile(read_options(arguments), as_json=arguments.json)


def _submit(arguments: argparse.Namespace) -> int:
    from darkroom.pipelines.submission.submit import submit_pipeline

    return submit_pipeline(read_options(arguments), as_json=arguments.json)


def _artifacts(arguments: argparse.Namespace) -> int:
    from datetime import datetime, timezone

    from darkroom.pipelines.submission.old_artifacts import (
        count_back,
        find_old_artifacts,
        format_old_artifacts,
        remove_old_artifacts,
    )

    before = count_back(arguments.keep_days, datetime.now(timezone.utc))
    found = find_old_artifacts(arguments.root, arguments.name, before, arguments.keep_run)
    if arguments.remove:
        found = remove_old_artifacts(found)
    print(json.dumps(found.to_dict()) if arguments.json else format_old_artifacts(found))
    return 0


def _demo(arguments: argparse.Namespace) -> int:
    from darkroom.evaluation.serving import check_backend

    check_backend()
    from darkroom.pipelines.local.run import run_demo

    return run_demo(**read_options(arguments), as_json=arguments.json)


def _dataservice(arguments: argparse.Namespace) -> NoReturn:
    # Only the start of TensorFlow is silent: later, the output of a server is all that there is.
    start_tensorflow()
    from darkroom.input.service import run_dispatcher, run_worker

    if arguments.role == "dispatcher":
        server = run_dispatcher(
            arguments.port,
            host=arguments.host,
            work_dir=arguments.work_dir,
            workers=arguments.workers or (),
        )
    else:
        server = run_worker(arguments.dispatcher, arguments.port, host=arguments.host)
    with server as address:
        print(json.dumps({"address": address}) if arguments.json else address, flush=True)
        while True:
            # signal.pause() would wait forever if the signal came just before it.
            time.sleep(_SIGNAL_SECONDS)


def _benchmark(arguments: argparse.Namespace) -> int:
    start_tensorflow("darkroom.training.run")
    from darkroom.profiling.benchmark.rounds import run_benchmark

    values = {k: v for k, v in vars(arguments).items() if k not in ("command", "subject", "json")}
    return run_benchmark(values, as_json=arguments.json)
