"""A cluster of Flink: a job manager and a task manager, as processes of this machine."""

from __future__ import annotations

import json
import urllib.request
from pathlib import Path
from typing import Any

from .parts import Parts
from .processes import Processes, find_free_port, wait_until

_ENTRY = "org.apache.flink.runtime.entrypoint.StandaloneSessionClusterEntrypoint"
_TASKS = "org.apache.flink.runtime.taskexecutor.TaskManagerRunner"
# What Java 17 hides and Flink needs.
_OPENED = [
    f"--add-opens=java.base/{each}=ALL-UNNAMED"
    for each in ("java.lang", "java.net", "java.io", "java.nio", "sun.nio.ch", "java.text")
] + [
    f"--add-opens=java.base/{each}=ALL-UNNAMED"
    for each in ("java.lang.reflect", "java.time", "java.util", "java.util.concurrent")
]
# The sizes of memory are those that Flink's own scripts would calculate.
_CONFIG = """\
jobmanager.rpc.address: 127.0.0.1
jobmanager.rpc.port: {rpc}
rest.address: 127.0.0.1
rest.port: {rest}
taskmanager.host: 127.0.0.1
taskmanager.numberOfTaskSlots: 2
taskmanager.cpu.cores: 2.0
taskmanager.memory.framework.heap.size: 128m
taskmanager.memory.framework.off-heap.size: 128m
taskmanager.memory.task.heap.size: 512m
taskmanager.memory.task.off-heap.size: 0m
taskmanager.memory.managed.size: 128m
taskmanager.memory.network.min: 64m
taskmanager.memory.network.max: 64m
taskmanager.memory.jvm-metaspace.size: 256m
taskmanager.memory.jvm-overhead.min: 128m
taskmanager.memory.jvm-overhead.max: 128m
"""
_LOG = """\
rootLogger.level = INFO
rootLogger.appenderRef.console.ref = Console
appender.console.name = Console
appender.console.type = CONSOLE
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %d{HH:mm:ss,SSS} %-5p %c - %m%n
"""


class Flink(Processes):
    """A job manager and a task manager with two slots.

    Args:
        parts: Flink and the job server.
        folder: For configuration and logs.
    """

    def __init__(self, parts: Parts, folder: Path) -> None:
        super().__init__(folder)
        folder.mkdir(parents=True)
        self.parts, rest = parts, find_free_port()
        self.address = f"127.0.0.1:{rest}"
        (folder / "config.yaml").write_text(_CONFIG.format(rpc=find_free_port(), rest=rest))
        (folder / "log4j.properties").write_text(_LOG)

    def begin(self) -> None:
        """Starts both, and waits until the job manager knows the slots."""
        self._start_java("job manager", _ENTRY)
        self._start_java("task manager", _TASKS)
        wait_until(lambda: self.ask("overview").get("slots-total"), "the slots of Flink")

    def ask(self, path: str) -> dict[str, Any]:
        """Returns what Flink's REST interface says; nothing before it runs."""
        try:
            with urllib.request.urlopen(f"http://{self.address}/{path}", timeout=10) as answer:
                return json.load(answer)
        except OSError:
            return {}

    def run_client(self, *arguments: str) -> str:
        """Runs a command of Flink's own program, as `flink list`; returns what it prints."""
        command = [*self._java(), "org.apache.flink.client.cli.CliFrontend", *arguments]
        return self.run([*command, "-m", self.address], {"FLINK_CONF_DIR": str(self.folder)})

    def _start_java(self, name: str, main: str) -> None:
        self.start(name, [*self._java(), main, "--configDir", str(self.folder)])

    def _java(self) -> list[str]:
        log = f"-Dlog4j.configurationFile={self.folder / 'log4j.properties'}"
        return ["java", "-Xmx1g", *_OPENED, log, "-cp", f"{self.parts.home / 'lib'}/*"]
