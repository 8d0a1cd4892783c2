"""A standalone cluster of Spark: a master and a worker, as processes of this machine."""

from __future__ import annotations

import json
import os
import urllib.request
from pathlib import Path
from typing import Any

from .parts import Parts
from .processes import Processes, find_free_port, wait_until

_DEPLOY = "org.apache.spark.deploy"


class Spark(Processes):
    """A master, and a worker whose executor has two cores.

    Args:
        parts: Spark and the job server.
        folder: For logs and temporary files.
    """

    def __init__(self, parts: Parts, folder: Path) -> None:
        super().__init__(folder)
        folder.mkdir(parents=True)
        self.parts = parts
        self._port, self._page = find_free_port(), find_free_port()

    @property
    def url(self) -> str:
        return f"spark://127.0.0.1:{self._port}"

    def begin(self) -> None:
        """Starts both, and waits until the master knows the worker."""
        page = str(self._page)
        self._start_java("master", "master.Master", "--port", str(self._port), "--webui-port", page)
        wait_until(lambda: self.ask().get("status") == "ALIVE", "the master")
        own = ["--cores", "2", "--memory", "1g", "--work-dir", str(self.folder)]
        self._start_java("worker", "worker.Worker", *own, "--webui-port", "0", self.url)
        wait_until(lambda: self.ask()["aliveworkers"], "the worker")

    def ask(self) -> dict[str, Any]:
        """Returns what the page of the master says, for programs; nothing before it runs."""
        page = f"http://127.0.0.1:{self._page}/json/"
        try:
            with urllib.request.urlopen(page, timeout=10) as answer:
                return json.load(answer)
        except OSError:
            return {}

    def _start_java(self, name: str, program: str, *arguments: str) -> None:
        """Starts a process of Spark as its own scripts do."""
        command = [str(self.parts.home / "bin" / "spark-class"), f"{_DEPLOY}.{program}"]
        environment = {**os.environ, "SPARK_LOCAL_DIRS": str(self.folder)}
        self.start(name, [*command, "--host", "127.0.0.1", *arguments], environment)
