"""The hash that tells two states of the code apart."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from darkroom import version


@pytest.fixture
def hash_copy(monkeypatch, tmp_path):
    """Hashes a copy of the code, after a change of one of its files."""
    version.hash_code()  # is kept from here on, and else would be that of the copy
    for package in ("conversion", "dataset", "images", "manifest", "targets", "training"):
        source = Path(version.PACKAGE_FOLDER, package)
        shutil.copytree(source, tmp_path / package, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr(version, "PACKAGE_FOLDER", str(tmp_path))

    def hash_copy(changed: str | None = None) -> str:
        if changed:
            path = tmp_path / changed
            path.write_text(path.read_text("utf-8") + "\n# changed\n", "utf-8")
        return version.hash_code.__wrapped__()

    return hash_copy


def test_a_copy_has_the_same_hash(hash_copy):
    assert hash_copy() == version.hash_code()


@pytest.mark.parametrize(
    "changed",
    [
        "conversion/shards/encode.py",
        "dataset/example.py",
        "images/prepare.py",
        "manifest/rows.py",
        "targets/labels/kind.py",
    ],
)
def test_code_that_makes_bytes_changes_it(hash_copy, changed):
    assert hash_copy(changed) != version.hash_code()


def test_other_code_does_not_change_it(hash_copy):
    assert hash_copy("training/run.py") == version.hash_code()
