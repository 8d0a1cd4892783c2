"""A standalone cluster of Spark: a master and two workers, as processes of this machine."""

from __future__ import annotations

import json
import os
import urllib.request
from pathlib import Path
from typing import Any

from .parts import Parts
from .processes import Processes, find_free_port, wait_until

_DEPLOY = "org.apache.spark.deploy"
_ENDED = ("FINISHED", "FAILED", "KILLED")


class Spark(Processes):
    """A master and its workers, which have executors, which have Beam's workers.

    Args:
        parts: Spark and the job server.
        folder: For logs and temporary files.
    """

    def __init__(self, parts: Parts, folder: Path) -> None:
        super().__init__(folder)
        folder.mkdir(parents=True, exist_ok=True)
        self.parts = parts
        self._port, self._page = find_free_port(), find_free_port()

    @property
    def url(self) -> str:
        return f"spark://127.0.0.1:{self._port}"

    def ask(self) -> dict[str, Any]:
        """Returns what the page of the master says, for programs."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self._page}/json/", timeout=10) as answer:
            return json.load(answer)

    def list_jobs(self) -> list[dict[str, Any]]:
        """All jobs with their states, the first one first."""
        said = self.ask()
        return sorted(said["activeapps"] + said["completedapps"], key=lambda job: job["id"])

    def end_job(self, job: str) -> None:
        """Ends a job, as the button of the master's page does."""
        form = f"id={job}&terminate=true".encode()
        urllib.request.urlopen(f"http://127.0.0.1:{self._page}/app/kill/", form, timeout=10).close()

    def wait_for_end(self) -> str:
        """Waits for the end of the newest job; returns its state."""
        return wait_until(
            lambda: (state := self.list_jobs()[-1]["state"]) in _ENDED and state, "the job's end"
        )

    def start_master(self) -> None:
        page = str(self._page)
        self._start_java("master", "master.Master", "--port", str(self._port), "--webui-port", page)
        wait_until(self._answers, "the master")

    def start_worker(self, number: int) -> None:
        """Starts worker 1 or 2, and waits until the master knows it."""
        name, before = f"worker {number}", self._list_workers()
        (work := self.folder / name).mkdir(exist_ok=True)
        own = ["--cores", "2", "--memory", "1g", "--work-dir", str(work), "--webui-port", "0"]
        self._start_java(name, "worker.Worker", *own, self.url)
        wait_until(lambda: self._list_workers() - before, name)

    def _start_java(self, name: str, program: str, *arguments: str) -> None:
        """Starts a process of Spark as its own scripts do."""
        command = [str(self.parts.home / "bin" / "spark-class"), f"{_DEPLOY}.{program}"]
        environment = {**os.environ, "SPARK_LOCAL_DIRS": str(self.folder)}
        self.start(name, [*command, "--host", "127.0.0.1", *arguments], environment)

    def _answers(self) -> bool:
        try:
            return self.ask()["status"] == "ALIVE"
        except OSError:
            return False

    def _list_workers(self) -> set[str]:
        return {each["id"] for each in self.ask()["workers"] if each["state"] == "ALIVE"}
