"""What the documentation names exists: commands, options, modules, files, links.

`make docs` builds the site and is stricter: see test_site.py.
"""

from __future__ import annotations

import argparse
import ast
import importlib.util
import json
import re
import shlex
import sys
from collections.abc import Iterator
from glob import glob
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from darkroom.cli.parser import build_parser
from darkroom.dataset import splits
from darkroom.dataset.schema import Kind

from ..packaging.test_layers import find_defined_names, list_modules

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parents[2]
PAGES = [
    *(ROOT / "README.md", ROOT / "CONTRIBUTING.md"),
    *sorted(path for name in ("docs", "benchmarks/lab") for path in (ROOT / name).rglob("*.md")),
]
_BLOCK = re.compile(r"```(\w+)\n(.*?)```", re.S)
_LINK = re.compile(r"\]\(([^)#\s]*)(#[^)\s]*)?\)")
# A path from the root of the repository, in code font.
_PATH = re.compile(
    r"`((?:benchmarks|components|constraints|docs|examples|kubernetes|pipelines|src|tests|tools)"
    r"/[\w./-]+)`"
)
_HEADING = re.compile(r"^#+ (.*)$", re.M)
_TOCTREE = re.compile(r"```{toctree}\n((?::[^\n]*\n)*)(.*?)```", re.S)
_TARGET = re.compile(r"^([a-z-]+):.*##", re.M)


# The modules that the page of the Python API shows.
_PUBLIC = re.findall(
    r"```{public-names} (\S+)\n", (ROOT / "docs" / "reference" / "python-api.md").read_text()
)


def list_blocks(language: str) -> list[tuple[str, str]]:
    """Returns the pages and the texts of all blocks of a language."""
    return [
        (page.name, text)
        for page in PAGES
        for found, text in _BLOCK.findall(page.read_text())
        if found == language
    ]


def _commands(program: str) -> list[str]:
    lines = [
        line.partition(" #")[0].strip().removeprefix("$ ")
        for language in ("bash", "console")
        for _, text in list_blocks(language)
        for line in text.replace("\\\n", " ").splitlines()
    ]
    return sorted({line for line in lines if line.startswith(program + " ")})


@pytest.mark.parametrize("command", _commands("darkroom"))
def test_the_parser_accepts_every_command(command: str):
    build_parser().parse_args(shlex.split(command)[1:])


@pytest.mark.parametrize("command", _commands("make"))
def test_every_make_target_exists(command: str):
    targets = set(_TARGET.findall((ROOT / "Makefile").read_text()))
    named = {word for word in command.split()[1:] if "=" not in word}
    assert named <= targets


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_has_a_target(page: Path):
    prose = _BLOCK.sub("", page.read_text())
    links = [(path, anchor) for path, anchor in _LINK.findall(prose) if "://" not in path]
    assert [path for path, _ in links if not (page.parent / path).exists()] == []
    anchors = [(page.parent / path if path else page, each) for path, each in links if each]
    assert [(path.name, each) for path, each in anchors if each not in _anchors(path)] == []


def _anchors(page: Path) -> set[str]:
    """The anchors that GitHub and the site make of a page's headings."""
    headings = _HEADING.findall(_BLOCK.sub("", page.read_text()))
    words = (re.sub(r"[^\w -]", "", each.lower()).strip() for each in headings)
    return {"#" + each.replace(" ", "-") for each in words}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_path_of_the_repository_exists(page: Path):
    named = _PATH.findall(page.read_text())
    assert [path for path in named if not (ROOT / path).exists()] == []


def test_every_page_is_in_the_navigation():
    folder = ROOT / "docs"
    found = {folder / "index.md"}
    queue = list(found)
    while queue:
        page = queue.pop()
        for options, entries in _TOCTREE.findall(page.read_text()):
            for entry in entries.split():
                pattern = f"{page.parent / entry}.md"
                if (page.parent / f"{entry}.ipynb").exists():
                    continue
                pages = glob(pattern) if ":glob:" in options else [pattern]
                queue += [new for each in pages if (new := Path(each).resolve()) not in found]
                found.update(queue)
    assert found == set(folder.rglob("*.md"))


@pytest.mark.tfx
@pytest.mark.parametrize("module", _PUBLIC)
def test_every_public_name_can_be_imported(module: str):
    loaded = import_module(module)
    assert [name for name in loaded.__all__ if not hasattr(loaded, name)] == []


def test_the_names_that_are_promised_are_those_that_the_reference_shows():
    """A module whose names are promised has an `__all__`, and no other one has."""
    assert sorted(_PUBLIC) == sorted(
        module for module in list_modules() if "__all__" in find_defined_names(module)
    )


@pytest.mark.tfx
@pytest.mark.parametrize(("page", "text"), list_blocks("python"))
def test_every_python_block_is_python_and_imports_what_exists(page: str, text: str):
    for node in ast.walk(ast.parse(text, page)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("darkroom"):
            module = import_module(node.module or "")
            names = {each.name for each in node.names}
            assert {name for name in names if not hasattr(module, name)} == set()
            assert names <= {*module.__all__}


@pytest.mark.parametrize(("page", "text"), list_blocks("toml"))
def test_every_toml_block_is_a_configuration(page: str, text: str):
    from darkroom.pipelines.config import make_cluster_config, make_config

    values = tomllib.loads(text)
    if "pipeline" in values:  # a function of a user's own
        assert ":" in values.pop("pipeline")
        assert make_cluster_config(values).image
    else:
        assert make_config(values).data.endswith("images.csv")


def test_every_module_that_the_architecture_names_exists():
    text = (ROOT / "docs" / "architecture.md").read_text()
    named = set(re.findall(r"`([a-z_]+/[a-z_/]*\.py|pipelines/[a-z_]+/)`", text))
    folders = (ROOT, ROOT / "src" / "darkroom")
    assert len(named) > 15
    assert {name for name in named if not any((f / name).exists() for f in folders)} == set()


# Of other programs, or the beginning of a flag that a shell completes.
_OTHERS = {
    *(
        "--build-arg",
        "--durations",
        "--entrypoint",
        "--format",
        "--gpus",
        "--im",
        "--name",
        "--s3",
        "--shell",
        "--tmpfs",
        "--type",
    ),
    *("--environment", "--job", "--parallelism", "--sdk", "--temp"),  # of Beam: --job_endpoint ...
    "--add-exports",  # of Java
    "--own-pipeline",  # of the entrypoint
    "--logdir",  # of TensorBoard
    "--durations",  # of pytest
    # Of benchmarks/.
    *("--draws", "--pairs", "--photographs", "--pictures", "--python", "--rows", "--sets"),
}


def test_every_flag_in_the_docs_exists():
    flags = set(_list_flags(build_parser()))
    for page in PAGES:
        if page.parent.name == "decisions" or page.name == "from-0.2.md":
            continue  # these tell what once was
        for code in re.findall(r"`[^`\n]*`", page.read_text()):
            named = set(re.findall(r"(?<![\w-])--[a-z][a-z0-9-]+", code))
            assert named <= flags | _OTHERS, page.name


def _list_flags(parser: argparse.ArgumentParser) -> Iterator[str]:
    for action in parser._actions:
        yield from action.option_strings
        if isinstance(action, argparse._SubParsersAction):
            for command in action.choices.values():
                yield from _list_flags(command)


def _load_tool(name: str) -> Any:
    path = ROOT / "tools" / "docs" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


_PAGES = _load_tool("pages")


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.tfx if name == "reference/components.md" else ())
        for name in _PAGES.PAGES
    ],
)
def test_generated_pages_are_what_the_code_says(name: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sys, "path", list(sys.path))
    page = ROOT / "docs" / name
    assert page.read_text() == _PAGES.format_page(name), "run make reference"


def test_every_generated_page_says_so():
    folder = ROOT / "docs"
    pages = [*folder.rglob("*.md"), *folder.rglob("*.svg")]
    assert {
        page.relative_to(folder).as_posix()
        for page in pages
        if _PAGES.GENERATED in page.read_text()
    } == {*_PAGES.PAGES}


@pytest.mark.parametrize(
    ("text", "lengths"),
    [
        ("| a | table of | words |\n| --- | --- | --- |\n", []),
        ("Before it comes code:\n\n```bash\nmake all of it. Now.\n```\n", [4]),
        ("- one two three\n  four\n- five six seven\n", [4, 3]),
        ("The file `dataset.json` is [written last](a.md). See it.", [6]),
    ],
)
def test_words_of_sentences_are_counted(text: str, lengths: list[int]):
    assert _load_tool("sentences").count_words(text) == lengths


def test_the_guide_lists_every_name_that_a_split_may_have():
    text = (ROOT / "docs/guides/convert.md").read_text()
    rows = re.findall(r"^\| `(train|eval|test)` \| (.*) \|$", text, re.MULTILINE)
    listed = {name: split for split, names in rows for name in re.findall(r"`(\w+)`", names)}
    known = splits.known_names().removesuffix(" or an empty cell").split(", ")
    assert {**listed, "UNASSIGNED": ""} == {name: splits.parse_split(name) for name in known}


def test_the_guide_lists_every_kind_of_a_column():
    text = (ROOT / "docs/guides/convert.md").read_text()
    listed = text.partition("columns that it does not name:")[2].partition(".\n")[0]
    assert {*re.findall(r"`(\w+)`", listed)} == {kind.value for kind in Kind}


def test_every_fit_of_the_docs_leaves_shuffling_to_the_dataset():
    # Keras 3.15 warns of a dataset that it cannot shuffle, unless it is told not to.
    notebook = json.loads((ROOT / "docs/guides/notebook.ipynb").read_text())
    cells = ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code"]
    code = "\n".join([*cells, *(text for _, text in list_blocks("python"))])
    calls = [call for call in ast.walk(ast.parse(code)) if isinstance(call, ast.Call)]
    fits = [call for call in calls if isinstance(call.func, ast.Attribute)]
    fits = [call for call in fits if call.func.attr == "fit"]
    assert len(fits) > 3
    assert all("shuffle" in {each.arg for each in call.keywords} for call in fits)
