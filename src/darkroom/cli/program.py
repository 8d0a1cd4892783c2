"""The command `darkroom`: convert, verify, validate, train, run, compile, submit and others.

Exit codes: 0 done, 1 the data failed a check, 2 wrong usage, 3 environment, 4 another process uses
the output or it contains unrelated files, 70 a defect of darkroom, 128 + n ended by signal n.

The top layer: it may import everything. It does so inside its functions, so that `--help` starts
fast.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import traceback
from collections.abc import Sequence

from darkroom.cli.process import Signal, end_by_signal
from darkroom.errors import DarkroomError, UsageError, convert_error
from darkroom.runtime.process import collect_less_garbage, find_explanation
from darkroom.runtime.streams import end_process, secure_streams

_EXIT_USAGE, _EXIT_DEFECT = 2, 70


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
    given = sys.argv[1:] if argv is None else argv
    try:
        parser = build_parser(given)
        if "_ARGCOMPLETE" in os.environ:
            _complete(parser)
        arguments = parser.parse_args(given)
        arguments.is_process = argv is None
        code = _run_command(arguments)
    except UsageError as error:
        asked = argparse.Namespace(json="--json" in given)
        code = _report(asked, _hide_credential(error))
    except SystemExit as stop:
        code = stop.code if isinstance(stop.code, int) else _EXIT_USAGE
        if code > 128:
            # A service runs until a signal ends it.
            is_service = arguments.command == "dataservice" or getattr(arguments, "serve", False)
            again = "." if is_service else "; run it again."
            if more := find_explanation(stop):
                again = f". {more}"
            print(f"Ended by {signal.Signals(code - 128).name}{again}", file=sys.stderr)
    if argv is None:
        end_process(code)
    return code


def _complete(parser: argparse.ArgumentParser) -> None:
    """Answers a shell that asks how the words of a command may continue, and ends the process."""
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
    """Runs the chosen command, and returns its exit code; an error becomes its message and code.

    Only `SystemExit` leaves it: of a signal, or of a command that ends itself.
    """
    from darkroom.cli.shared.flags import name_flag
    from darkroom.storage import convert_os_error

    _quiet_libraries(arguments.is_quiet)
    try:
        # Searching the modules of TFX for garbage takes a third of the time of their import.
        with collect_less_garbage():
            code: int = arguments.run(arguments)
            return code
    except Exception as error:  # noqa: BLE001  the last resort: a defect of darkroom must say so
        # A library may have made another error of the exit that the handler of a signal raised.
        if Signal.number is not None:
            raise SystemExit(128 + Signal.number) from None
        found = convert_error(convert_os_error(error) if isinstance(error, OSError) else error)
        if found.exit_code == _EXIT_DEFECT:
            traceback.print_exc()
        return _report(arguments, name_flag(found, arguments))


def _quiet_libraries(is_quiet: bool) -> None:
    import logging
    import warnings

    # Errors of workers also reach us as exceptions.
    logging.getLogger("apache_beam").setLevel(logging.CRITICAL)
    # urllib3 logs every retry; a final failure raises anyway. kfp resets the parent logger's level.
    logging.getLogger("urllib3.connectionpool").setLevel(logging.ERROR)
    # Without the extra [dataflow], Beam logs on every import that Google's libraries are absent.
    logging.getLogger().addFilter(lambda record: "apitools not found" not in record.getMessage())
    # Google's client libraries announce the end of Python 3.10 on every import.
    warnings.filterwarnings("ignore", category=FutureWarning, module=r"google\..*")
    # TensorFlow logs the end of a dataset, and the lack of a GPU, as warnings and errors. Real
    # errors raise.
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3" if is_quiet else "1")


def _report(arguments: argparse.Namespace, error: DarkroomError) -> int:
    if arguments.json:
        print(json.dumps({"error": error.to_dict()}))
    else:
        print(f"darkroom: {error.message}", file=sys.stderr)
        if error.hint:
            print(error.hint.lstrip("\n"), file=sys.stderr)
    return error.exit_code
