"""What the documentation names exists: commands, options, modules, files, links."""

from __future__ import annotations

import ast
import re
import shlex
import sys
from importlib import import_module
from pathlib import Path

import pytest

from darkroom.cli.parser import build_parser

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
_BLOCK = re.compile(r"```(\w+)\n(.*?)```", re.S)
_LINK = re.compile(r"\]\(([^)#]+)\)")
_TARGET = re.compile(r"^([a-z-]+):.*##", re.M)


def _blocks(language: str) -> list[tuple[str, str]]:
    return [
        (page.name, text)
        for page in PAGES
        for found, text in _BLOCK.findall(page.read_text())
        if found == language
    ]


def _commands(program: str) -> list[str]:
    lines = [
        line.partition(" #")[0].strip()
        for _, text in _blocks("bash")
        for line in text.replace("\\\n", " ").splitlines()
    ]
    return sorted({line for line in lines if line.startswith(program + " ")})


@pytest.mark.parametrize("command", _commands("darkroom"))
def test_every_command_is_one_that_the_parser_takes(command: str):
    build_parser().parse_args(shlex.split(command)[1:])


@pytest.mark.parametrize("command", _commands("make"))
def test_every_make_target_exists(command: str):
    targets = set(_TARGET.findall((ROOT / "Makefile").read_text()))
    named = {word for word in command.split()[1:] if "=" not in word}
    assert named <= targets


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_leads_somewhere(page: Path):
    prose = _BLOCK.sub("", page.read_text())
    links = [link for link in _LINK.findall(prose) if "://" not in link]
    assert [link for link in links if not (page.parent / link).exists()] == []


@pytest.mark.parametrize(("page", "text"), _blocks("python"))
def test_every_python_block_is_python_and_imports_what_exists(page: str, text: str):
    for node in ast.walk(ast.parse(text, page)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("darkroom"):
            module = import_module(node.module or "")
            assert [each.name for each in node.names if not hasattr(module, each.name)] == []


@pytest.mark.parametrize(("page", "text"), _blocks("toml"))
def test_every_toml_block_is_a_configuration(page: str, text: str):
    from darkroom.pipelines.config import make_config

    assert make_config(tomllib.loads(text)).data.endswith("images.csv")


def test_the_architecture_names_every_module_of_the_core():
    text = (ROOT / "docs" / "architecture.md").read_text()
    named = set(re.findall(r"`([a-z_]+)/?\*?`", text))
    families = re.findall(r"`([a-z_]+)\*`", text)
    modules = {path.stem for path in (ROOT / "src" / "darkroom").glob("*.py")} - {"__init__"}
    missing = {
        module
        for module in modules - named
        if not any(module.startswith(family) for family in families)
    }
    assert missing == set()
