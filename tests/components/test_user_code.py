"""Which modules count as the code of a function."""

from __future__ import annotations

import sys
import zipfile
from pathlib import Path

import pytest

from darkroom.components.user_code import fingerprint_sources, forget_modules, read_sources


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder on `sys.path` with modules that import each other in all ways."""
    files = {
        "single.py": "import json\nimport helper\nfrom own_package.deep import thing\n",
        "helper.py": "VALUE = 1\n",
        "unused.py": "",
        "own_package/__init__.py": "",
        "own_package/deep.py": "from . import near\nfrom .sub.leaf import x\nthing = 1\n",
        "own_package/near.py": "def f():\n    import helper\n    import numpy, darkroom.errors\n",
        "own_package/sub/leaf.py": "from .. import other\nx = 1\n",
        "own_package/other.py": "",
        "own_package/unused.py": "",
        "broken.py": "def (",
    }
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    return tmp_path


def test_what_a_module_imports_of_the_users_belongs_to_its_code(project: Path):
    near = {"own_package", "own_package.near", "helper"}
    assert read_sources("own_package.near").keys() == near
    assert read_sources("single").keys() == {
        *(*near, "single", "own_package.deep"),
        *("own_package.sub", "own_package.sub.leaf", "own_package.other"),
    }
    assert "single" not in sys.modules


def test_of_an_installed_package_the_module_itself_counts(project: Path):
    assert read_sources("numpy.linalg").keys() == {"numpy.linalg"}


@pytest.mark.parametrize("name", ["json", "sys", "darkroom.training", "no.such"])
def test_the_modules_of_python_and_darkroom_have_no_source(project: Path, name: str):
    assert read_sources(name) == {}
    assert fingerprint_sources({}) == ""


def test_a_module_that_cannot_be_parsed_still_has_a_state(project: Path):
    assert read_sources("broken") == {"broken": "def ("}


def test_a_changed_import_changes_the_fingerprint(project: Path):
    before = fingerprint_sources(read_sources("single"))
    (project / "own_package/unused.py").write_text("1\n")
    assert fingerprint_sources(read_sources("single")) == before
    (project / "own_package/near.py").write_text("2\n")
    assert fingerprint_sources(read_sources("single")) != before


def test_modules_are_found_in_folders_and_wheels(tmp_path: Path):
    (tmp_path / "code").mkdir()
    (tmp_path / "code/outside.py").write_text("import beside_it\n")
    (tmp_path / "code/beside_it.py").write_text("VALUE = 1\n")
    expected = {"outside": "import beside_it\n", "beside_it": "VALUE = 1\n"}
    assert read_sources("outside", [str(tmp_path / "code")]) == expected
    with zipfile.ZipFile(tmp_path / "w.whl", "w") as wheel:
        for name, text in expected.items():
            wheel.writestr(f"{name}.py", text)
    assert read_sources("outside", [str(tmp_path / "w.whl")]) == expected


def test_a_forgotten_module_is_read_again(project: Path):
    import helper  # type: ignore[import-not-found]

    assert helper.VALUE == 1
    (project / "helper.py").write_text("VALUE = 22\n")
    forget_modules(["helper", "never_imported", "__main__"])
    import helper

    assert helper.VALUE == 22
    assert "__main__" in sys.modules
    forget_modules(["helper"])
