"""Each block of Python and shell of the documentation runs, or says why it does not."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from .blocks import PAGES, ROOT, list_pages, read_blocks, run_page, write_given

pytestmark = pytest.mark.tfx

_LONG, _TORCH = "make test-long", "make test-torch"


@pytest.fixture(scope="session")
def given(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What pages take for granted."""
    folder = tmp_path_factory.mktemp("given")
    write_given(folder)
    return folder


@pytest.fixture
def server(given, tmp_path, monkeypatch, warm_python) -> str:
    """The server of shell blocks, in a folder with what is given."""
    shutil.copytree(given, tmp_path, symlinks=True, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    return str(warm_python.path)


@pytest.mark.parametrize("page", list_pages(""))
def test_the_blocks_of_a_page_run(page, server):
    run_page(page, {""}, {"__name__": "page"}, server)


@pytest.mark.long
@pytest.mark.parametrize("page", list_pages(_LONG))
def test_all_blocks_of_a_page_run(page, server):
    run_page(page, {"", _LONG}, {"__name__": "page"}, server)


@pytest.mark.parametrize("page", PAGES)
def test_each_block_runs_or_says_who_runs_it_or_why_nobody_does(page):
    blocks = [block for block in read_blocks(page) if block.language != "text"]
    assert len(blocks) == len(re.findall("```(?:bash|py|sh)", PAGES[page]))
    others = {block.runner for block in blocks} - {"", _LONG, _TORCH}
    assert all(Path(page).name in (ROOT / name).read_text("utf-8") for name in others)


def test_readme_has_no_comments():
    assert "<!--" not in PAGES["README.md"]
