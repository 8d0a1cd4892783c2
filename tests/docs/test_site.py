"""The site's build is strict. Needs the environment of `make docs`, which runs this."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("sphinx", reason="run by make docs")

ROOT = Path(__file__).parents[2]
# What a browser fetches by itself from another machine; links that people click are none of it.
LOADED = re.compile(
    r"""<(?:script|img|iframe|source|link)\b[^>]*\s(?:src|href)=["'](?:https?:)?//"""
    r"""|(?:@import\s+|url\()["']?(?:https?:)?//"""
)
PAGE = "# Start\n\n```{toctree}\nnames\n```\n\n[Names](names.md#names)\n"
NAMES = "# Names\n\n```{public-names} darkroom\n```\n"
MODULE = '''
"""A package."""

__all__ = ["Box", "pack"]


class Box:
    """A box.

    Attributes:
        size: In cubic metres.
    """

    size: int = 1


def pack(box: Box, *, gently: bool = False) -> None:
    """Packs a box.

    Args:
        box: The box.
        gently: Whether it may break.
    """
'''


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """A small site with the configuration of this one: it can be built."""
    (tmp_path / "docs").mkdir()
    shutil.copy(ROOT / "docs" / "conf.py", tmp_path / "docs" / "conf.py")
    shutil.copytree(ROOT / "docs" / "static", tmp_path / "docs" / "static")
    (tmp_path / "tools").symlink_to(ROOT / "tools")
    package = tmp_path / "build" / "docs-package" / "darkroom"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(MODULE)
    (tmp_path / "docs" / "index.md").write_text(PAGE)
    (tmp_path / "docs" / "names.md").write_text(NAMES)
    return tmp_path


def build(site: Path) -> tuple[int, str]:
    """Builds as `make docs` does; returns the exit code and what it said."""
    command = ["-m", "sphinx", "-q", "-W", "--keep-going", "docs", "build/docs"]
    done = subprocess.run(
        [sys.executable, *command], cwd=site, capture_output=True, text=True, check=False
    )
    return done.returncode, done.stderr


def replace(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert text.count(old) == 1
    path.write_text(text.replace(old, new))


def test_a_sound_site_is_built_with_the_names_of_the_code(site: Path) -> None:
    assert build(site) == (0, "")
    page = (site / "build" / "docs" / "names.html").read_text()
    assert 'id="darkroom.pack"' in page
    assert "Whether it may break." in page
    assert "In cubic metres." in page


def test_broken_links_lost_pages_and_names_without_documentation_fail(site: Path) -> None:
    links = "[Names](missing.md) [Names](names.md#missing)"
    replace(site / "docs" / "index.md", "[Names](names.md#names)", links)
    (site / "docs" / "lost.md").write_text("# Lost\n")
    module = site / "build" / "docs-package" / "darkroom" / "__init__.py"
    replace(module, '["Box", "pack"]', '["Box", "Lid", "pack", "unpack"]')
    replace(module, "        size: In cubic metres.\n", "")
    replace(module, "        gently: Whether it may break.\n", "")
    replace(module, "    size: int = 1\n", "    size: int = 1\n\n\nclass Lid:\n    pass\n")
    code, said = build(site)
    assert code == 1
    assert "missing.md" in said
    assert "names.md#missing" in said or "'missing'" in said
    assert "lost.md: WARNING: document isn't included in any toctree" in said
    names = ("darkroom.Lid", "darkroom.Box.size", "darkroom.pack(gently)")
    for name in (*names, "darkroom.unpack (it does not exist)"):
        assert f"{name} is not documented" in said


def test_the_site_needs_no_network() -> None:
    """What a browser loads by itself comes from the site."""
    pages = list((ROOT / "build" / "docs").rglob("*.html"))
    assert len(pages) > 30
    styles = list((ROOT / "build" / "docs" / "_static").rglob("*.css"))
    remote = {
        path.name: found
        for path in [*pages, *styles]
        if (found := LOADED.findall(path.read_text(encoding="utf-8")))
    }
    assert remote == {}


@pytest.mark.parametrize(
    "text",
    [
        '<script async src="https://example.com/a.js">',
        '<link rel="stylesheet" href="//fonts.example.com/css">',
        "@import 'https://example.com/a.css'",
        "src: url(https://example.com/a.woff2)",
    ],
)
def test_what_needs_a_network_is_known(text: str) -> None:
    assert LOADED.search(text)
