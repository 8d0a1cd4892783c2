"""Conversions on Prism (make test-engines): bytes, and what stops them or is left of them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from tests.trees import read_files

from .conftest import finish, start_client
from .pool import kill_group, start_pool
from .prism import find_missing, make_prism
from .processes import wait_until

pytestmark = [pytest.mark.long, pytest.mark.skipif(bool(find_missing()), reason=find_missing())]

OTHER_CODEC = """
from importlib import metadata
find = metadata.version
metadata.version = lambda name: "0.5" if name == "simplejpeg" else find(name)
"""
# A worker that writes two shards, and then waits for ever.
TWO_SHARDS = """
import itertools, threading
from darkroom.conversion.shards import writing
write, begun = writing.write_shard, itertools.count()
def wait(task, *rest):
    if next(begun) >= 2:
        threading.Event().wait()
    return write(task, *rest)
writing.write_shard = wait
"""


@pytest.fixture(scope="module")
def prism() -> dict[str, object]:
    """The option of Beam that names the program."""
    return {"prism_location": make_prism()}


def _convert(source: Path, output: Path, options: Mapping[str, object]) -> tuple[int, str]:
    with start_client(source, output, "PrismRunner", options) as client:
        return finish(client)


def test_workers_in_the_client_write_the_same_bytes(prism, source, local, tmp_path):
    code, said = _convert(source, tmp_path / "out", prism)
    assert code == 0, said
    assert read_files(tmp_path / "out") == local


def test_a_worker_with_another_codec_stops_the_job(prism, source, tmp_path):
    with start_pool(tmp_path / "pool", OTHER_CODEC) as workers:
        code, said = _convert(source, tmp_path / "out", prism | workers)
    assert code == 3, said
    assert "has simplejpeg 0.5, but the client has simplejpeg " in said
    assert not (tmp_path / "out/dataset.json").exists()


def test_a_killed_conversion_resumes(prism, source, local, tmp_path):
    out = tmp_path / "out"
    with (
        start_pool(tmp_path / "pool", TWO_SHARDS) as workers,
        start_client(source, out, "PrismRunner", prism | workers) as client,
    ):
        kept = _wait_for_shards(out, 2)
        kill_group(client)
    with start_pool(tmp_path / "other_pool") as workers:
        code, said = _convert(source, out, prism | workers)
    assert code == 0, said
    assert read_files(out) == local
    assert {path: path.stat().st_mtime_ns for path in kept} == kept


def _wait_for_shards(out: Path, count: int) -> dict[Path, int]:
    """Returns the times of the shards of which a report is there."""

    def find() -> list[Path]:
        return list(out.glob(".attempt/**/shard-*[0-9].json"))

    wait_until(lambda: len(find()) >= count, "shards")
    return {path: path.stat().st_mtime_ns for path in out.glob("Split-*/data_tfrecord-*")}
