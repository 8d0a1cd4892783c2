"""Turns a dataset into one of format 1, as version 0.1.0 wrote it."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path

from darkroom.dataset.commit import read_dataset, write_dataset


def make_format_1(root: Path) -> None:
    """Gives a dataset a commit without the files beside the shards, and hashes of its index."""
    dataset = replace(read_dataset(str(root)), format_version=1, files={})
    (root / "SHA256SUMS").unlink()
    if (root / "index").is_dir():
        paths = sorted((root / "index").glob("index-*"))
        lines = [f"{hashlib.sha256(p.read_bytes()).hexdigest()}  {p.name}\n" for p in paths]
        (root / "index" / "SHA256SUMS").write_text("".join(lines))
    write_dataset(str(root), dataset.with_fingerprint())
