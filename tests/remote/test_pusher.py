"""Models pushed to object stores, and stores that do not keep them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from darkroom import storage
from darkroom.errors import StorageError

from .conftest import Proxy

pusher = pytest.importorskip("darkroom.components.pusher.executor")

pytestmark = pytest.mark.tfx

CONTENT = {
    "assets/.vocabulary": b"a\n",
    "fingerprint.pb": b"fingerprint",
    "saved_model.pb": b"graph" * 1000,
    "variables/variables.index": b"index",
}


@pytest.fixture
def model(tmp_path: Path) -> str:
    for name, data in CONTENT.items():
        path = tmp_path / "model" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return str(tmp_path / "model")


def read(root: str) -> dict[str, bytes]:
    return {n: storage.read_bytes(f"{root}/{n}") for n in storage.look_up_files(root)}


def is_upload(line: str) -> bool:
    return line.startswith("PUT") or "/upload/" in line


def test_a_model_arrives_completely_and_its_graph_last(store: tuple[Proxy, str], model: str):
    proxy, root = store
    version = pusher.push_version(model, f"{root}/models")
    uploads = [number for number, line in enumerate(proxy.requests) if is_upload(line)]
    assert "saved_model.pb" in proxy.requests[uploads[-1]]
    between = proxy.requests[uploads[-2] + 1 : uploads[-1]]
    for name in set(CONTENT) - {"saved_model.pb"}:  # each was read back before
        assert any(os.path.basename(name) in line for line in between)
    assert version.isdigit()
    assert read(f"{root}/models/{version}") == CONTENT


def test_a_remaining_part_is_never_read_as_a_model(store: tuple[Proxy, str], model: str):
    """As after a kill: nothing deletes the uploaded files."""
    proxy, root = store
    proxy.fail("saved_model.pb", 503)
    proxy.fail("DELETE", 403)
    proxy.fail("?delete", 403)
    with pytest.raises(StorageError):
        pusher.push_version(model, f"{root}/models")
    proxy.faults.clear()
    assert not [name for name in storage.look_up_files(root) if name.endswith("saved_model.pb")]
    version = pusher.push_version(model, f"{root}/models")
    assert read(f"{root}/models/{version}") == CONTENT
