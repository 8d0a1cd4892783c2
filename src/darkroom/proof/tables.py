"""Verifies the label map, the rejects and the sidecars of a dataset."""

from __future__ import annotations

from collections.abc import Iterator

from darkroom.dataset import layout
from darkroom.dataset.checksums import find_changed
from darkroom.dataset.commit import Dataset
from darkroom.dataset.layout import LABELS_FILE
from darkroom.dataset.opening import compare_labels
from darkroom.proof.findings import FileFinding, explain_change, explain_error
from darkroom.proof.sums import Sums

_REJECTS_FILES = frozenset((layout.REJECTS_FILE, layout.REJECTS_LIST_FILE))
_DESCRIBE = "Delete it if it is there, then write it again with darkroom describe."
_EMBED = "Delete it if it is there, then make it again with darkroom embed."


def check_labels(root: str, dataset: Dataset) -> Iterator[FileFinding]:
    """Yields the problems with `labels.txt`: it must be the label map of the commit."""
    try:
        what = compare_labels(root, dataset)
    except OSError as error:
        yield explain_error(LABELS_FILE, error)
        return
    if what:
        yield explain_change(LABELS_FILE, what)


def has_rejects(sums: Sums) -> bool:
    """Tells whether the rejects are listed; in TFX they are a separate artifact."""
    return not _REJECTS_FILES.isdisjoint(sums)


def check_tables(root: str, sums: Sums) -> Iterator[FileFinding]:
    """Yields the problems with rejects and sidecars that are listed, by their hashes."""
    for name in sorted(sums, key=layout.is_sidecar):
        if name not in _REJECTS_FILES and not layout.is_sidecar(name):
            continue
        hint = _EMBED if name == layout.FEATURES_FILE else _DESCRIBE
        try:
            for _, what in find_changed(root, sums, [name]):
                yield explain_change(name, what, hint if layout.is_sidecar(name) else "")
        except OSError as error:
            yield explain_error(name, error)
