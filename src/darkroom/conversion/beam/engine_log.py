"""What an engine says while a job runs: it goes to a file, and not to the terminal."""

from __future__ import annotations

import logging
import os
import re
import tempfile
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import IO, Any

from darkroom.conversion.beam.failures import find_cause
from darkroom.errors import DarkroomError, UsageError
from darkroom.runtime import progress

# Beam's own lines, and those of the job server that it starts: Beam logs them under these names.
_LOGGERS = ("apache_beam", "FlinkJarJobServer", "SparkJarJobServer", "PrismJobServer")
_READER_SECONDS = 1.0
_BEAM = f"{os.sep}apache_beam{os.sep}"
_STATE = re.compile(r"Job state changed to (\w+)")
# What is before the text of a line in the file.
_FORMAT = "%(asctime)s %(levelname)s %(message)s"
_PREFIX = re.compile(r"^\d{4}-\d\d-\d\d [\d:,]{12} [A-Z+\d ]+? (?=\S|$)", re.MULTILINE)


class EngineLog:
    """The file with what an engine says. It is kept if somebody was told of it.

    Args:
        path: The file.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._was_told = False

    def add(self, text: str) -> None:
        """Adds what the engine says in another way than by Beam and its job server."""
        logging.getLogger("apache_beam.darkroom").info("%s", text)

    def read(self) -> str:
        """Returns what the engine has said, without the times of its lines."""
        with open(self._path, encoding="utf-8", errors="replace") as file:
            return _PREFIX.sub("", file.read())

    def tell(self) -> str:
        """Returns the sentence that says where the file is, so that it stays."""
        self._was_told = True
        return f"The log of the engine as this client saw it is in {self._path}."

    def close(self) -> None:
        """Deletes the file, unless somebody was told of it."""
        if not self._was_told:
            os.unlink(self._path)


class StateHandler(logging.Handler):
    """Takes a job's states from what Beam logs: it tells them in no other way.

    Args:
        note_state: Called with each.
    """

    def __init__(self, note_state: Callable[[str], object]) -> None:
        super().__init__()
        self._note_state = note_state

    def emit(self, record: logging.LogRecord) -> None:
        """Passes on a state."""
        if found := _STATE.match(record.getMessage()):
            self._note_state(found[1])


@contextmanager
def report_failures(runner: str, workers: str = "") -> Iterator[EngineLog]:
    """Turns what an engine raises into one error of ours; its lines go to a file, kept if it fails.

    Args:
        runner: Beam's name of the runner.
        workers: What is to run darkroom there, for the error.

    Yields:
        The file.

    Raises:
        UsageError: The engine does not know an option.
        DarkroomError: What a worker raised, if it is ours; else a `StorageError` with the cause.
        Exception: A defect of ours, as it is.
    """
    with tempfile.NamedTemporaryFile(
        "w", prefix="darkroom-engine-", suffix=".log", delete=False, errors="replace"
    ) as file:
        log = EngineLog(file.name)
        try:
            with _collect_lines(file, runner):
                yield log
        except (DarkroomError, KeyboardInterrupt, SystemExit):
            raise
        except Exception as error:
            file.write(f"{type(error).__name__}: {error}\n")
            file.flush()
            if found := find_cause(runner, error, log.read(), log.tell(), workers):
                raise found from error
            raise
        finally:
            log.close()


@contextmanager
def _collect_lines(log: IO[str], runner: str) -> Iterator[None]:
    """Sends to a file what Beam, its job server and its threads say."""
    handler = logging.StreamHandler(log)
    handler.setFormatter(logging.Formatter(_FORMAT))
    handler.addFilter(lambda record: _check_record(record, runner))
    with ExitStack() as restored:
        _keep_warnings(restored)
        # An interrupted job has left it there: `hide_threads`.
        logging.getLogger().removeFilter(is_not_beams)
        # Beam logs an engine's messages on the root logger itself; the program's own lines stay.
        for other in logging.getLogger().handlers:
            other.addFilter(is_not_beams)
            restored.callback(other.removeFilter, is_not_beams)
        # Without a handler, Beam's errors on the root logger would make one for the terminal.
        for logger in (logging.getLogger(), *map(logging.getLogger, _LOGGERS)):
            logger.addHandler(handler)
            restored.callback(logger.removeHandler, handler)
            if logger.name in _LOGGERS:
                restored.callback(logger.setLevel, logger.level)
                restored.callback(setattr, logger, "propagate", logger.propagate)
                logger.setLevel(logging.INFO)
                logger.propagate = False
        restored.callback(setattr, threading, "excepthook", threading.excepthook)
        threading.excepthook = _make_hook(handler, threading.excepthook)
        restored.callback(_wait_for_readers)
        yield


def _keep_warnings(restored: ExitStack) -> None:
    """Lets Python print our warnings where nobody takes them, though a handler is added here."""
    logger = logging.getLogger("darkroom")
    if logging.lastResort and not logger.hasHandlers() and not progress.is_shown():
        logger.addHandler(logging.lastResort)
        restored.callback(logger.removeHandler, logging.lastResort)


def _wait_for_readers() -> None:
    """Lets the threads end that read from the job server: they fail a moment after the job."""
    for thread in threading.enumerate():
        if thread.name.startswith("wait_until_finish"):
            thread.join(_READER_SECONDS)


def _make_hook(handler: logging.Handler, others: Callable[[Any], object]) -> Callable[[Any], None]:
    """Returns a hook that keeps the tracebacks of Beam's own threads from the terminal."""

    def hook(failed: Any) -> None:
        frames = traceback.extract_tb(failed.exc_traceback)
        if not any(_BEAM in frame.filename for frame in frames):
            others(failed)
            return
        error = (failed.exc_type, failed.exc_value, failed.exc_traceback)
        handler.emit(logging.LogRecord("", logging.ERROR, "", 0, "In a thread:", (), error))

    return hook


def is_not_beams(record: logging.LogRecord) -> bool:
    """Tells whether a line of a log is of the program, and not of Beam."""
    return _BEAM not in record.pathname


def _check_record(record: logging.LogRecord, runner: str) -> bool:
    """Stops a job whose options the engine does not know; Beam would only warn.

    What darkroom itself says is not the engine's.
    """
    if isinstance(record.msg, str) and record.msg.startswith("Discarding unparseable args"):
        names = re.findall(r"--([\w-]+)", record.getMessage())
        raise UsageError(
            f"Neither Beam nor {runner} has the option {' or '.join(map(repr, names))}.",
            "See the documentation of Beam's runner.",
        )
    return record.name.split(".")[0] != "darkroom"
