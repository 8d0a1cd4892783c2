"""Each block of Python and shell of the documentation runs, or says why it does not."""

from __future__ import annotations

import contextlib
import re
import shutil
import socket
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import darkroom
from darkroom.input.service import run_dispatcher, run_worker

from ..warm_python import WarmProcess, WarmPython
from .blocks import (
    PAGES,
    ROOT,
    list_pages,
    make_environment,
    read_blocks,
    run_page,
    write_given,
    write_programs,
)

pytestmark = pytest.mark.tfx

_LONG = "make test-long"
_RUN_FN = "docs/guides/own-pipeline.md"
_SERVICE = "grpc://input-0:5050"
_TRAINED = [f"docs/guides/{name}.md" for name in ("evaluate", "exporting", "serving")]


@pytest.fixture(scope="session")
def given(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What pages take for granted."""
    folder = tmp_path_factory.mktemp("given")
    write_given(folder)
    return folder


@pytest.fixture
def folder(given: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of it, in which a page is read."""
    shutil.copytree(given, tmp_path, symlinks=True, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    return tmp_path


@pytest.fixture(scope="session")
def programs(tmp_path_factory: pytest.TempPathFactory, warm_python: WarmPython) -> Any:
    """A folder with the programs that pages start; their processor time is counted at the end."""
    folder = tmp_path_factory.mktemp("programs")
    write_programs(folder, warm_python.path)
    return folder


@pytest.fixture(scope="session")
def trained(given: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model of what is given."""
    folder = tmp_path_factory.mktemp("trained") / "first"
    darkroom.train(given / "records", folder, image_size=(16, 16), epochs=1)
    return folder


@pytest.fixture
def run(folder: Path, programs: Path, request: pytest.FixtureRequest) -> Iterator[Any]:
    """Runs a page with what it takes for granted beside the folder: a model, a service."""
    names: dict[str, Any] = {"__name__": "page"}
    with contextlib.ExitStack() as stack:

        def run_it(page: str, *runners: str) -> dict[str, Any]:
            replaced = {}
            if page in _TRAINED and _LONG in runners:
                shutil.copytree(request.getfixturevalue("trained"), folder / "runs/first")
            if "model.fit(" in PAGES[page]:
                names["model"] = _build_model()
            if _SERVICE in PAGES[page]:
                replaced[_SERVICE] = stack.enter_context(run_dispatcher(0))
                with socket.socket() as listener:
                    listener.bind(("localhost", 0))
                    port = listener.getsockname()[1]
                stack.enter_context(run_worker(replaced[_SERVICE], port))
            run_page(page, {"", *runners}, names, replaced, make_environment(programs))
            return names

        yield run_it
    used = programs / "used"
    if used.exists():
        WarmProcess.processor_seconds += sum(map(float, used.read_text().split()))
        used.unlink()


def _build_model() -> Any:
    """The model of a reader, for images of 16 pixels."""
    import keras

    layers = [keras.Input((16, 16, 3)), keras.layers.Flatten(), keras.layers.Dense(2)]
    model = keras.Sequential(layers)
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile("sgd", loss)
    return model


@pytest.mark.parametrize("page", list_pages(""))
def test_the_blocks_of_a_page_run(page, run):
    names = run(page)
    if page == _RUN_FN:
        args = SimpleNamespace(
            train_files=["records/Split-train/*"],
            eval_files=["records/Split-eval/*"],
            serving_model_dir="serving",
        )
        names["run_fn"](args)
        assert Path("serving/saved_model.pb").exists()


@pytest.mark.long
@pytest.mark.parametrize("page", list_pages(_LONG))
def test_all_blocks_of_a_page_run(page, run):
    run(page, _LONG)


@pytest.mark.parametrize("page", PAGES)
def test_each_block_runs_or_says_who_runs_it_or_why_nobody_does(page):
    blocks = [block for block in read_blocks(page) if block.language != "text"]
    assert len(blocks) == len(re.findall("```(?:bash|py|sh)", PAGES[page]))
    others = {block.runner for block in blocks} - {"", _LONG, "make test-torch"}
    assert all(Path(page).name in (ROOT / name).read_text("utf-8") for name in others)
