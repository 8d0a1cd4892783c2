"""What Kubeflow's launcher copies between the store and a pod, with folders for both.

After `objectstore/object_store.go` of kubeflow/pipelines, backend/src/v2. A store knows no folders:
it lists the objects whose keys begin with a text.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path


def upload(local: Path, key: Path) -> None:
    """Copies a file or a folder into the store, which keeps what this does not replace.

    Args:
        local: The file or folder of the pod. There may be none.
        key: Where the store has it.
    """
    if local != key:
        for path in _list_files(local):
            _copy(path, key / path.relative_to(local))


def download(key: Path, local: Path, *, with_siblings: bool) -> None:
    """Copies an object, or what is below it, to a pod.

    Args:
        key: Where the store has it. There may be nothing.
        local: Where the pod gets it.
        with_siblings: Whether the key is only the beginning of a text, so that `model` brings
            `model_run`, too.
    """
    if local == key:
        return
    names = [key.name]
    if with_siblings and key.parent.is_dir():
        names = [each.name for each in key.parent.iterdir() if each.name.startswith(key.name)]
    for name in names:
        source = key.with_name(name)
        for path in _list_files(source):
            _copy(path, local.with_name(name) / path.relative_to(source))


def _list_files(path: Path) -> Iterator[Path]:
    if path.is_file():
        yield path
    elif path.is_dir():
        yield from (each for each in path.rglob("*") if each.is_file())


def _copy(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, target)
