"""What a conversion costs on each engine, beside a run on one machine: all in one table.

    python benchmarks/engines.py [--images 100000] [--engines local,flink,spark,prism]
                                 [--prism FILE]

The images are JPEGs of about 28 kB. Each engine converts 60 of them, and all. `start` is what the
few take more than in a local run; `over` is what all take more, without this start: for the time
that passes, and for that of the processors, of all processes together. Bytes are compared with
those of the local run. Memory is VmHWM of each process: the most that it had at once.

Flink is a cluster of a job manager and two task managers, by the configuration in kubernetes/.
Spark is a master and two workers, as they come; of a worker and its executor, the larger counts.
Both need Java and Maven. Prism is one program, of the same version as Beam in Python:
go install github.com/apache/beam/sdks/v2/go/cmd/prism@v2.74.0.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.engines.cluster import Cluster
from tests.engines.conftest import DARKROOM, hash_files, use_processes, use_spark
from tests.engines.network import make_machines
from tests.engines.parts import find_missing, make_flink, make_spark
from tests.engines.pictures import write_jpegs
from tests.engines.spark import Spark
from tests.engines.watching import Watch

_FEW = 60


@dataclass(frozen=True)
class Engine:
    """An engine: the options that choose it, and its processes by name."""

    options: tuple[str, ...] = ()
    list_processes: Callable[[], Mapping[str, int]] = dict


def _write_worker(scratch: Path) -> Path:
    """Writes the program that an engine starts as a worker."""
    worker = scratch / "worker.sh"
    worker.write_text(f'#!/bin/sh\nexec {sys.executable} -m darkroom.engines.worker "$@"\n')
    worker.chmod(0o755)
    return worker


@contextmanager
def _start_flink(scratch: Path) -> Iterator[Engine]:
    """Gives a cluster with a worker process for each task manager."""
    worker = _write_worker(scratch)
    with make_machines(3) as machines:
        cluster = Cluster(make_flink(), scratch / "cluster", machines)
        try:
            cluster.start_job_manager()
            for number in (1, 2):
                cluster.start_task_manager(number)
            options = use_processes(cluster, worker, parallelism=2)
            yield Engine(tuple(options), cluster.list_processes)
        finally:
            cluster.stop()


@contextmanager
def _start_spark(scratch: Path) -> Iterator[Engine]:
    """Gives a cluster with a worker process for each executor."""
    spark = Spark(make_spark(), scratch / "spark")
    try:
        spark.start_master()
        for number in (1, 2):
            spark.start_worker(number)
        options = use_spark(spark, _write_worker(scratch))
        yield Engine(tuple(options), spark.list_processes)
    finally:
        spark.stop()


_CLUSTERS = {"flink": _start_flink, "spark": _start_spark}


def _convert(source: Path, output: Path, engine: Engine) -> tuple[float, Watch]:
    """Converts a source; returns the seconds, and what the processes took."""
    command = [*DARKROOM, "convert", str(source), "--output-dir", str(output)]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE}
    started = time.perf_counter()
    with subprocess.Popen([*command, *engine.options], text=True, **quiet) as client:
        with Watch(lambda: {"client": client.pid, **engine.list_processes()}) as watch:
            _, said = client.communicate()
        if client.returncode:
            raise SystemExit(said)
    return time.perf_counter() - started, watch


def _measure(name: str, engine: Engine, sources: Mapping[str, Path], before: dict) -> None:
    """Converts few images and all, prints a row, and keeps what the local run took."""
    folder = sources["all"].parent.parent
    seconds, processor = {}, {}
    for size in ("few", "all"):
        output = folder / f"{name}-{size}"
        seconds[size], watch = _convert(sources[size], output, engine)
        processor[size] = watch.processor_seconds
    hashes = hash_files(output)
    shutil.rmtree(output)
    local = before.setdefault("local", (seconds, processor, hashes))
    row = f"{name:8}"
    for unit, base in ((seconds, local[0]), (processor, local[1])):
        start = unit["few"] - base["few"]
        row += f"{start:9.1f}{unit['all']:9.1f}{(unit['all'] - start) / base['all'] - 1:7.0%}"
    rate = before["images"] / seconds["all"]
    print(f"{row}{rate:10.0f}  {'equal' if hashes == local[2] else 'DIFFERENT'}", flush=True)
    for process, peak in watch.peaks.items():
        print(f"{'':10}{process:28}{peak / 1e6:8.0f} MB", flush=True)


def main() -> None:
    """Measures and prints each engine."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--images", type=int, default=100_000)
    parser.add_argument("--engines", default="local,flink,spark,prism", help="the local run first")
    parser.add_argument("--prism", default=shutil.which("prism") or "", help="the program of Prism")
    parser.add_argument("--scratch", default=None, help="folder for images and datasets")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=arguments.scratch) as name:
        scratch = Path(name)
        numbers = {"few": _FEW, "all": arguments.images}
        sources = {size: write_jpegs(scratch / size, each) for size, each in numbers.items()}
        load, cores = os.getloadavg()[0], os.cpu_count()
        print(f"{arguments.images} images, {cores} cores, load before the start: {load:.1f}")
        print("        seconds:                 of the processors:")
        print("engine      start      all   over    start      all   over  images/s  bytes")
        before: dict = {"images": arguments.images}
        for each in arguments.engines.split(","):
            if each in _CLUSTERS and (missing := find_missing()):
                print(missing)
            elif each == "prism" and not arguments.prism:
                print("Prism was not found.")
            elif start := _CLUSTERS.get(each):
                with start(scratch) as engine:
                    _measure(each, engine, sources, before)
            else:
                prism = (
                    "--beam-option",
                    f"prism_location={arguments.prism}",
                )
                options = ("--runner", "PrismRunner", *prism) if each == "prism" else ()
                _measure(each, Engine(options), sources, before)


if __name__ == "__main__":
    main()
