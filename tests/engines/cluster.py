"""A Flink cluster of separate processes, with the configuration that kubernetes/ ships."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import time
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .network import Machine
from .parts import Parts
from .processes import Processes, is_open, wait_until

SHIPPED = Path(__file__).parents[2] / "kubernetes" / "components" / "flink"
ENTRY = "org.apache.flink.runtime.entrypoint.StandaloneSessionClusterEntrypoint"
RUNNER = "org.apache.flink.runtime.taskexecutor.TaskManagerRunner"
SIZES = "org.apache.flink.runtime.util.bash.BashJavaUtils"


class Cluster(Processes):
    """A job manager, task managers and what goes with them, on machines of their own.

    Args:
        parts: Flink and the job server.
        folder: For configuration, logs and temporary files.
        machines: The first one is this one, with the clients; the second has the job manager.
    """

    def __init__(self, parts: Parts, folder: Path, machines: list[Machine]) -> None:
        super().__init__(folder)
        self.parts, self.machines = parts, machines
        self._jars = ":".join(sorted(str(jar) for jar in (parts.home / "lib").glob("*.jar")))
        self._configuration = folder / "conf"
        self._configuration.mkdir(parents=True)
        for path in SHIPPED.glob("*.*"):
            (self._configuration / path.name).write_text(path.read_text())

    @property
    def address(self) -> str:
        """The address of the job manager, for clients."""
        return f"{self.machines[1].address}:8081"

    def ask(self, path: str) -> Any:
        """Returns what Flink's REST interface says."""
        with urllib.request.urlopen(f"http://{self.address}/{path}", timeout=10) as answer:
            return json.load(answer)

    def list_jobs(self) -> list[dict[str, Any]]:
        """All jobs with their states, the first one first."""
        return sorted(self.ask("jobs/overview")["jobs"], key=lambda job: job["start-time"])

    def count_restarts(self, job: str) -> int:
        return len(self.ask(f"jobs/{job}/exceptions")["exceptionHistory"]["entries"])

    def cancel_jobs(self) -> None:
        for job in self.list_jobs():
            if job["state"] not in ("FINISHED", "FAILED", "CANCELED"):
                url = f"http://{self.address}/jobs/{job['jid']}"
                urllib.request.urlopen(urllib.request.Request(url, method="PATCH"), timeout=10)
        wait_until(lambda: not self.ask("overview")["jobs-running"], "the end of all jobs")

    def list_task_managers(self) -> set[str]:
        return {each["id"] for each in self.ask("taskmanagers")["taskmanagers"]}

    def start_job_manager(self) -> None:
        machine = self.machines[1]
        loopback = {"jobmanager.bind-host": "127.0.0.1", "rest.bind-address": "127.0.0.1"}
        own = {} if machine.is_own else loopback
        self._start_java("job manager", machine, ENTRY, "GET_JM_RESOURCE_PARAMS", own)
        wait_until(lambda: is_open(machine.address, 8081), "the REST interface of Flink")

    def start_task_manager(self, number: int) -> None:
        """Starts task manager 1 or 2, and waits until the job manager knows it."""
        machine, name = self.machines[number + 1], f"{number}-{time.monotonic_ns()}"
        own = {"taskmanager.host": machine.address, "taskmanager.resource-id": name}
        if not machine.is_own:  # several on one machine cannot have the same ports
            own |= {"taskmanager.bind-host": machine.address}
            own |= {"taskmanager.rpc.port": "0", "taskmanager.data.port": "0"}
        self._start_java(f"task manager {number}", machine, RUNNER, "GET_TM_RESOURCE_PARAMS", own)
        wait_until(lambda: name in self.list_task_managers(), f"task manager {number}")

    def start_pool(
        self, number: int, command: list[str], environment: Mapping[str, str] | None = None
    ) -> None:
        """Starts the pool of Beam's workers of a task manager, by a command of Python."""
        # The pool starts its workers by the name `python`.
        path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        environment = {**os.environ, "PATH": path, **(environment or {})}
        machine = self.machines[number + 1]
        command = [*machine.prefix, sys.executable, *command]
        self.start(f"pool {number}", command, environment)
        wait_until(lambda: is_open(machine.address, 50000), f"pool {number}")

    def start_job_server(self, arguments: list[str], port: int) -> None:
        """Starts Beam's job server on the machine of the job manager."""
        machine, java = self.machines[1], ["java", "-jar", str(self.parts.jar)]
        self.start("job server", [*machine.prefix, *java, *arguments])
        wait_until(lambda: is_open(machine.address, port), "the job server")

    def _start_java(
        self, name: str, machine: Machine, main: str, sizes: str, own: Mapping[str, str]
    ) -> None:
        """Starts a process of Flink as the scripts of its image do."""
        temporary = self.folder / name
        temporary.mkdir(exist_ok=True)
        host = self.machines[1].address
        own = {"jobmanager.rpc.address": host, "rest.address": host, **own}
        own["io.tmp.dirs"] = str(temporary)
        settings = [f"-D{key}={value}" for key, value in own.items()]
        tool = self.parts.home / "bin" / "bash-java-utils.jar"
        command = ["java", "-cp", f"{tool}:{self._jars}", SIZES, sizes]
        where = ["--configDir", str(self._configuration)]
        done = subprocess.run([*command, *where, *settings], capture_output=True, text=True)
        found = re.findall(r"^BASH_JAVA_UTILS_EXEC_RESULT:(.*)$", done.stdout, re.MULTILINE)
        assert len(found) == 2, done.stdout + done.stderr
        log = f"-Dlog4j.configurationFile={self._configuration / 'log4j-console.properties'}"
        memory, dynamic = map(shlex.split, found)
        mode = ["--executionMode", "cluster"] if main == ENTRY else []
        java = ["java", *memory, *self._read_java_options(), log, "-cp", self._jars, main]
        self.start(name, [*machine.prefix, *java, *where, *mode, *settings, *dynamic])

    def _read_java_options(self) -> list[str]:
        """What Flink's scripts take from `env.java.opts.all` of its configuration."""
        text = (self._configuration / "config.yaml").read_text()
        found = re.search(
            r"^env:\n  java:\n    opts:\n      all: (?:>-\n)?((?:.*--.*\n)+)", text, re.M
        )
        return shlex.split(found[1]) if found else []
