"""The log of Beam and its job server: it goes to a file, and not to the terminal."""

from __future__ import annotations

import logging
import os
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

# Beam's own lines, and those of the job server that it starts: Beam logs them under these names.
_LOGGERS = ("apache_beam", "FlinkJarJobServer", "SparkJarJobServer", "PrismJobServer")


class EngineLog:
    """The file with these lines. It is kept if somebody was told of it.

    Args:
        path: The file.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self.was_told = False

    def add(self, text: str) -> None:
        """Adds messages of the engine from elsewhere."""
        with open(self.path, "a", encoding="utf-8", errors="replace") as file:
            file.write(f"{text}\n")

    def read(self) -> str:
        """Returns the log so far."""
        with open(self.path, encoding="utf-8", errors="replace") as file:
            return file.read()

    def tell(self) -> str:
        """Returns the sentence that says where the file is, so that it stays."""
        self.was_told = True
        return f"The log of the engine as this client saw it is in {self.path}."


@contextmanager
def collect_lines() -> Iterator[EngineLog]:
    """Sends the messages of Beam and its job server to a file while the block runs."""
    with ExitStack() as restored:
        file = restored.enter_context(
            tempfile.NamedTemporaryFile(
                "a",
                encoding="utf-8",
                prefix="darkroom-engine-",
                suffix=".log",
                delete=False,
                errors="replace",
            )
        )
        handler = logging.StreamHandler(file)
        for logger in map(logging.getLogger, _LOGGERS):
            restored.callback(setattr, logger, "propagate", logger.propagate)
            restored.callback(logger.setLevel, logger.level)
            restored.callback(logger.removeHandler, handler)
            logger.addHandler(handler)
            logger.setLevel(logging.INFO)
            logger.propagate = False
        log = EngineLog(file.name)
        try:
            yield log
        finally:
            if not log.was_told:
                os.unlink(log.path)
