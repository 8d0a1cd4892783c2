"""What every test gets: no cloud, no credentials, the same random numbers each time.

The marks `tensorflow`, `tfx` and `torch` of a file say what it needs. A file is left out, before
it is imported, where that is not installed, or when `-m` asks for the tests without it. So is one
with the mark `crosses`, and a folder of another part, when `--part` asks for the tests of one.
"""

from __future__ import annotations

import gc
import importlib.util
import os
import random
import re
import resource
import shutil
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from hypothesis import HealthCheck, settings

from .image_set import (  # noqa: F401
    converted_jpegs,
    faulty_set,
    image_set,
    jpeg_records,
    jpeg_set,
    labelled_set,
)
from .light_beam import light_beam, light_beam_path  # noqa: F401
from .parts import is_of_another_part, refuse_other_wings
from .quick_database import connect_shared, own_database, quick_database  # noqa: F401
from .quick_decoding import decoder_process, quick_decoding  # noqa: F401
from .records import helpers, write_dataset  # noqa: F401
from .simple_decoder import simple_decoder  # noqa: F401
from .warm_python import WarmProcess, spare_imports, warm_python  # noqa: F401

settings.register_profile("repeatable", max_examples=25, deadline=None, derandomize=True)
settings.load_profile("repeatable")
# Of the properties' long version; its seed is another one each time.
settings.register_profile(
    "many", max_examples=1_000, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)

# Else Python looks for this folder in `sys.path` after each change of that, and finds the tests of
# a package (tf2onnx).
sys.modules["tests"].__path__ = [str(Path(__file__).parent)]
_STARTED = time.monotonic()
# Seconds of processor time, by test.
_USED: dict[str, float] = {}
# Python looks through all of TensorFlow's objects for garbage: a sixteenth of the suite's time.
gc.set_threshold(100_000, 20, 100)
spare_imports()
# Reading the files of kfp takes a third of the time of their tests, by the reader in Python.
yaml.SafeLoader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
# In memory, calls of fsync cost nothing: on a disk, a test of files takes a tenth longer.
_MEMORY, _MIN_FREE_BYTES = "/dev/shm", 4 << 30
_CLOUD_PREFIXES = ("AWS_", "BOTO_", "CLOUDSDK_", "GCLOUD_", "GCP_", "GOOGLE_")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--part", help="run the tests of one part, without those that cross parts")


def pytest_configure(config: pytest.Config) -> None:
    """Declares a mark, and puts the files of all but the long tests into memory, if it has room.

    From the mark, tests/bad_input/faults.py writes a page of docs/.
    """
    if config.option.part:
        refuse_other_wings(config.option.part)
        config.option.markexpr += " and not crosses"
    mark = "fault(number, input, behaviour, code, hint): shows what a bad input leads to"
    config.addinivalue_line("markers", mark)
    is_short = "not long" in config.option.markexpr
    if is_short and os.path.isdir(_MEMORY) and shutil.disk_usage(_MEMORY).free > _MIN_FREE_BYTES:
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", _MEMORY)


def _count_processor_seconds() -> float:
    """What this process, and its children that ended, have used."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Counts the processor time of a test, with the fixtures that begin or end with it."""
    before = _count_processor_seconds() + WarmProcess.processor_seconds
    result = yield
    after = _count_processor_seconds() + WarmProcess.processor_seconds
    _USED[item.nodeid] = after - before
    return result


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Hands what the tests of a worker used to the process that started it."""
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["used"] = (_USED, WarmProcess.processor_seconds)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Takes what the tests of a worker used."""
    used, warm = getattr(node, "workeroutput", {}).get("used", ({}, 0))
    _USED.update(used)
    WarmProcess.processor_seconds += warm


def pytest_unconfigure(config: pytest.Config) -> None:
    """Says what a run took: its ten dearest tests, as many as --durations asks for, and all of it.

    Its budget is in CONTRIBUTING.md.
    """
    if hasattr(config, "workerinput"):
        return
    count = 10 if config.option.durations is None else config.option.durations or len(_USED)
    for test in sorted(_USED, key=lambda test: -_USED[test])[:count]:
        print(f"{_USED[test]:7.2f} s of processor time: {test}")
    processor = _count_processor_seconds() + WarmProcess.processor_seconds
    wall = time.monotonic() - _STARTED
    print(f"Took {wall:.0f} s, and {processor:.0f} s of processor time in all processes.")


def pytest_collection_finish() -> None:
    """Leaves what is there now out of the search for garbage: modules, which stay to the end."""
    gc.freeze()


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leaves out files, and folders of such, that need what is not there or not wanted."""
    if config.option.part and is_of_another_part(collection_path, config.option.part):
        return True
    files = [collection_path] if collection_path.is_file() else collection_path.rglob("test_*.py")
    tests = [file for file in files if file.match("test_*.py")]
    return True if tests and all(_is_left_out(file, config) for file in tests) else None


def _is_left_out(file: Path, config: pytest.Config) -> bool:
    line = re.search(r"^pytestmark = (\[[^\]]*\]|.*)", file.read_text("utf-8"), re.MULTILINE)
    marks = set(re.findall(r"pytest\.mark\.(\w+)", line[1])) if line else set()
    needed = marks & {"tensorflow", "tfx", "torch"}
    return not all(map(importlib.util.find_spec, needed)) or any(
        f"not {mark}" in config.option.markexpr for mark in needed | marks & {"crosses"}
    )


@pytest.fixture(scope="session")
def empty_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that holds nothing, for settings that name one."""
    return tmp_path_factory.mktemp("empty")


@pytest.fixture(autouse=True, scope="session")
def own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Gives a run its cache: that of the user says what an earlier run, or version, has found."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DARKROOM_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(autouse=True)
def no_cloud(monkeypatch: pytest.MonkeyPatch, empty_folder: Path) -> None:
    """Takes away credentials, and the ways in which client libraries look for more."""
    for name in os.environ:
        if name.startswith(_CLOUD_PREFIXES):
            monkeypatch.delenv(name)
    monkeypatch.setenv("CLOUDSDK_CONFIG", str(empty_folder))
    monkeypatch.setenv("NO_GCE_CHECK", "true")
    monkeypatch.setenv("AWS_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", os.devnull)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")


@pytest.fixture(autouse=True)
def seeded() -> None:
    """Starts every test from the same random state.

    Keras takes the seeds of its weights from `random`. TensorFlow's own seed is not set: that would
    make it prepare all its functions again in each test.
    """
    random.seed(0)
    np.random.seed(0)


@pytest.fixture(autouse=True, scope="session")
def no_tensorflow(request: pytest.FixtureRequest) -> Iterator[None]:
    """Fails a run without TensorFlow, as that of make test-fast, in which something loaded it."""
    yield
    if "not tensorflow" in request.config.option.markexpr:
        assert {"tensorflow", "tfx"} & sys.modules.keys() == set()


@pytest.fixture(autouse=True, scope="session")
def no_bare_imports() -> Iterator[None]:
    """Fails the run when something imported components or pipelines under a bare name.

    The same class under two names is two classes to TFX and to pickle.
    """
    yield
    bare = sorted(m for m in sys.modules if m.split(".")[0] in {"components", "pipelines"})
    assert bare == []
