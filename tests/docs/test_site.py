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


@pytest.mark.parametrize("link", ["missing.md", "names.md#missing"])
def test_a_broken_link_fails(site: Path, link: str) -> None:
    replace(site / "docs" / "index.md", "names.md#names", link)
    code, said = build(site)
    assert code == 1
    assert "index.md:7" in said
    assert "missing" in said


def test_a_page_outside_the_navigation_fails(site: Path) -> None:
    (site / "docs" / "lost.md").write_text("# Lost\n")
    code, said = build(site)
    assert code == 1
    assert "lost.md: WARNING: document isn't included in any toctree" in said


@pytest.mark.parametrize(
    ("old", "path"),
    [
        ('"""A box.', "darkroom.Box"),
        ("        size: In cubic metres.\n", "darkroom.Box.size"),
        ("        gently: Whether it may break.\n", "darkroom.pack(gently)"),
    ],
)
def test_a_public_name_without_documentation_fails(site: Path, old: str, path: str) -> None:
    new = '"""' if old.startswith('"""') else ""
    module = site / "build" / "docs-package" / "darkroom" / "__init__.py"
    if new:
        text = module.read_text()
        start = text.index('    """A box.')
        module.write_text(text[:start] + text[text.index("    size: int") :])
    else:
        replace(module, old, new)
    code, said = build(site)
    assert code == 1
    assert f"{path} is not documented" in said


def test_a_public_name_that_does_not_exist_fails(site: Path) -> None:
    module = site / "build" / "docs-package" / "darkroom" / "__init__.py"
    replace(module, '["Box", "pack"]', '["Box", "pack", "unpack"]')
    code, said = build(site)
    assert code == 1
    assert "darkroom.unpack (it does not exist) is not documented" in said


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
        "<img alt='' src='http://example.com/a.png'>",
        "@import 'https://example.com/a.css'",
        "src: url(https://example.com/a.woff2)",
    ],
)
def test_what_needs_a_network_is_known(text: str) -> None:
    assert LOADED.search(text)
