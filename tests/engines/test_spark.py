"""A conversion on a real Spark (make test-spark) writes the bytes of a run on this machine."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.trees import read_files

from .conftest import finish, start_client
from .parts import find_missing, make_spark
from .pool import start_pool
from .processes import wait_until
from .spark import Spark

pytestmark = pytest.mark.spark


def test_the_same_bytes(source: Path, local: dict[str, bytes], tmp_path: Path):
    if missing := find_missing():
        pytest.skip(missing)
    spark = Spark(make_spark(), tmp_path / "cluster")
    options = {
        "spark_master_url": spark.url,
        "spark_job_server_jar": spark.parts.jar,
        # As the guide says for Java 17.
        "job_server_jvm_properties": "--add-exports=java.base/sun.nio.ch=ALL-UNNAMED",
    }
    try:
        spark.begin()
        with (
            start_pool(tmp_path / "pool") as workers,
            start_client(source, tmp_path / "out", "SparkRunner", {**options, **workers}) as client,
        ):
            code, said = finish(client)
        assert code == 0, said
        wait_until(lambda: not spark.ask()["activeapps"], "the end of the application")
        [job] = spark.ask()["completedapps"]
    finally:
        spark.stop()
    assert job["state"] == "FINISHED"
    assert read_files(tmp_path / "out") == local
    assert "Starting worker with command" in (tmp_path / "pool/pool.log").read_text()
