"""The command `darkroom`: convert, verify, inspect, train, run, compile, submit and others.

Exit codes: 0 done, 1 the data failed a check, 2 wrong usage, 3 environment, 4 the output is held or
holds other data, 70 a defect of darkroom, 128 + n ended by signal n.

The top layer: it may import everything, and does so inside its functions, so that `--help` answers
at once.
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
from typing import Any, NoReturn

from darkroom.errors import DarkroomError, UsageError, convert_error

_QUIET = ("train", "benchmark", "compile", "submit")
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

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _end_by_signal)
    arguments = argparse.Namespace(command=None)
    try:
        arguments = build_parser().parse_args(argv)
        code = _run_command(arguments)
    except UsageError as error:
        as_json = "--json" in (sys.argv[1:] if argv is None else argv)
        asked = argparse.Namespace(json=as_json)
        code = _report(asked, _hide_credential(error))
    except SystemExit as stop:
        code = stop.code if isinstance(stop.code, int) else _EXIT_USAGE
        if code > 128:
            # A service runs until somebody ends it.
            again = "" if arguments.command == "dataservice" else "; run it again"
            print(f"Ended by {signal.Signals(code - 128).name}{again}.", file=sys.stderr)
    if argv is None and "tfx" in sys.modules:
        # Taking TFX and TensorFlow down properly would take another four seconds.
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    return code


def _hide_credential(error: UsageError) -> UsageError:
    """Returns what is wrong with the arguments without the token that somebody may have given."""
    from darkroom.pipelines.credentials import find_credential

    kind = find_credential(error.message)
    if kind is None:
        return error
    return UsageError(f"A wrong argument looks like a credential: {kind}.", error.hint)


class _Signal:
    """The signal that ends the process, once there is one.

    What is raised in the midst of other code may arrive as another exception (Beam wraps what a
    worker raises), so the exception alone would not tell.
    """

    number: int | None = None


def _end_by_signal(number: int, _: object) -> NoReturn:
    _Signal.number = number
    raise SystemExit(128 + number)


def _run_command(arguments: argparse.Namespace) -> int:
    command = {
        "convert": _convert,
        "verify": _verify,
        "duplicates": _duplicates,
        "inspect": _inspect,
        "train": _train,
        "run": _run,
        "compile": _compile,
        "submit": _submit,
        "demo": _demo,
        "dataservice": _dataservice,
        "benchmark": _benchmark,
    }
    _quiet_libraries(arguments.command)
    try:
        return command[arguments.command](arguments)
    except Exception as error:  # noqa: BLE001  the last resort: a defect of ours must say so
        if _Signal.number is not None:
            raise SystemExit(128 + _Signal.number) from None
        found = convert_error(error)
        if found.exit_code == _EXIT_DEFECT:
            traceback.print_exc()
        return _report(arguments, found)


def _quiet_libraries(command: str) -> None:
    import logging
    import warnings

    # What a worker raises reaches us as an exception, too.
    logging.getLogger("apache_beam").setLevel(logging.CRITICAL)
    # It tells of each try; what fails for good arrives as an exception, too. Its parent's level is
    # set anew by kfp's client.
    logging.getLogger("urllib3.connectionpool").setLevel(logging.ERROR)
    # Beam says so on every import where Google's libraries are absent, as they are without [gcp].
    logging.getLogger().addFilter(lambda record: "apitools not found" not in record.getMessage())
    # Google's client libraries announce the end of Python 3.10 on every import.
    warnings.filterwarnings("ignore", category=FutureWarning, module=r"google\..*")
    # TensorFlow calls the end of a dataset, and the lack of a GPU, warnings and errors. What is one
    # arrives as an exception, too.
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3" if command in _QUIET else "1")


def _report(arguments: argparse.Namespace, error: DarkroomError) -> int:
    if arguments.json:
        found = {"code": error.code, "message": error.message, "hint": error.hint}
        print(json.dumps({"error": found}))
    else:
        print(f"darkroom: {error.message}", file=sys.stderr)
        if error.hint:
            print(error.hint.lstrip("\n"), file=sys.stderr)
    return error.exit_code


def _convert(arguments: argparse.Namespace) -> int:
    from darkroom.conversion.convert import convert
    from darkroom.conversion.result import TooManyRejectsError, format_result
    from darkroom.runtime import progress

    options = {
        name: value
        for name, value in vars(arguments).items()
        if name not in ("command", "json", "source", "output_dir", "columns", "beam_option")
    }
    options["beam_options"] = dict(arguments.beam_option or ())
    try:
        with progress.use(progress.make_sink(sys.stderr)):
            result = convert(
                arguments.source, arguments.output_dir, schema=arguments.columns, **options
            )
    except TooManyRejectsError as error:
        if not arguments.json:
            raise
        print(json.dumps({**error.result.to_dict(), "message": error.message}))
        return error.exit_code
    if arguments.json:
        print(json.dumps(result.to_dict()))
    else:
        print(format_result(result))
    return 0


def _verify(arguments: argparse.Namespace) -> int:
    from darkroom.audit.findings import HINTS, UNREADABLE, format_findings
    from darkroom.audit.verify import format_result, verify
    from darkroom.errors import DataError, StorageError
    from darkroom.runtime import progress

    with progress.use(progress.make_sink(sys.stderr)):
        result = verify(arguments.directory)
    if result.findings and not result.is_damaged:
        lines = format_findings(result.findings)
        raise StorageError(f"Not all could be verified:{lines}", HINTS[UNREADABLE])
    print(json.dumps(result.to_dict()) if arguments.json else format_result(result))
    return DataError.exit_code if result.is_damaged else 0


def _duplicates(arguments: argparse.Namespace) -> int:
    from darkroom.audit.duplicates import find_duplicates, format_duplicates
    from darkroom.runtime import progress

    with progress.use(progress.make_sink(sys.stderr)):
        found = find_duplicates(arguments.directory, arguments.output)
    print(json.dumps(found.to_dict()) if arguments.json else format_duplicates(found))
    return 0


def _inspect(arguments: argparse.Namespace) -> int:
    from darkroom.audit.contact_sheet import inspect

    found = inspect(
        arguments.directory, arguments.split, arguments.num_records, arguments.output_dir
    )
    if arguments.json:
        print(json.dumps({"sheet": found.sheet, "csv": found.csv, "records": found.records}))
    else:
        print("\n".join(path for path in (found.sheet, found.csv) if path))
    return 0


def _train(arguments: argparse.Namespace) -> int:
    from contextlib import nullcontext

    from darkroom.options.training import TrainingOptions
    from darkroom.runtime import progress
    from darkroom.training.cluster import read_cluster
    from darkroom.training.job import format_result, train_datasets

    values = {k: v for k, v in vars(arguments).items() if k not in ("command", "json")}
    data, folder = values.pop("data"), values.pop("checkpoint_dir")
    eval_data = values.pop("eval_data")
    is_chief = read_cluster().is_chief
    with progress.use(progress.make_sink(sys.stderr)) if is_chief else nullcontext():
        result = train_datasets(data, TrainingOptions(**values), folder, eval_data)
    if result is not None:
        print(json.dumps(result.to_dict()) if arguments.json else format_result(result))
    return 0


def _run(arguments: argparse.Namespace) -> int:
    from darkroom.pipelines.local.run import run_pipeline

    values = _read_options(arguments)
    overwrite = values.pop("overwrite")
    return run_pipeline(values, as_json=arguments.json, overwrite=overwrite)


def _compile(arguments: argparse.Namespace) -> int:
    from darkroom.pipelines.compilation.files import run_compile

    return run_compile(_read_options(arguments), as_json=arguments.json)


def _submit(arguments: argparse.Namespace) -> int:
    from darkroom.pipelines.submission.submit import submit_pipeline

    return submit_pipeline(_read_options(arguments), as_json=arguments.json)


def _read_options(arguments: argparse.Namespace) -> dict[str, Any]:
    """Returns the options of a pipeline that were given, by name."""
    values = {k: v for k, v in vars(arguments).items() if k not in ("command", "json")}
    if policies := values.pop("policy", None):
        values["policies"] = dict(policies)
    return values


def _demo(arguments: argparse.Namespace) -> int:
    from darkroom.pipelines.local.run import run_demo

    policies = dict(getattr(arguments, "policy", None) or ())
    return run_demo(arguments.root, policies, as_json=arguments.json)


def _dataservice(arguments: argparse.Namespace) -> NoReturn:
    from darkroom.runtime import logs

    # Of a server nothing else tells what it meets later, so only TensorFlow's start is silent.
    with logs.redirect_output(os.devnull):
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
            # For a signal that comes just before it, signal.pause() would wait for ever.
            time.sleep(_SIGNAL_SECONDS)


def _benchmark(arguments: argparse.Namespace) -> int:
    from darkroom.profiling.benchmark.rounds import run_benchmark

    values = {k: v for k, v in vars(arguments).items() if k not in ("command", "subject", "json")}
    return run_benchmark(values, as_json=arguments.json)
