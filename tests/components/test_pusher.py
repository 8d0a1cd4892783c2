from __future__ import annotations

import errno
import json
import os
import shutil
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tensorflow.core.protobuf import saved_model_pb2
from tfx.types import standard_artifacts

from darkroom.components.pusher import executor, saved_model
from darkroom.errors import StorageError
from darkroom.storage import copies

from ..trees import read_files

pytestmark = [pytest.mark.tfx, pytest.mark.usefixtures("simple_decoder")]

FILES = (
    "assets/.vocabulary",
    "fingerprint.pb",
    "variables/variables.data-00000-of-00002",
    "variables/variables.data-00001-of-00002",
    "variables/variables.index",
)


def _make_graph() -> bytes:
    graph = saved_model_pb2.SavedModel()
    meta = graph.meta_graphs.add()
    meta.asset_file_def.add().filename = ".vocabulary"
    meta.object_graph_def.SetInParent()
    return graph.SerializeToString()


CONTENT = {
    **{name: f"content of {name}".encode() for name in FILES},
    "saved_model.pb": _make_graph(),
}


@pytest.fixture
def inputs(new_artifact: Callable[..., Any]) -> dict[str, list[Any]]:
    """A model with a few files, and a blessing of it."""
    model = new_artifact(standard_artifacts.Model)
    for name, data in CONTENT.items():
        path = Path(model.uri) / "Format-Serving" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    blessing = new_artifact(standard_artifacts.ModelBlessing)
    blessing.set_int_custom_property("blessed", 1)
    model.set_string_custom_property("tfx_version", "1.16.0")
    return {"model": [model], "model_blessing": [blessing]}


def _push(inputs: dict[str, list[Any]], pushed: Any, destination: str) -> None:
    text = json.dumps({"filesystem": {"base_directory": destination} if destination else {}})
    properties = {"push_destination": text, "custom_config": "null"}
    executor.Executor().Do(inputs, {"pushed_model": [pushed]}, properties)


def test_without_a_destination_the_model_is_a_version_in_its_artifact(inputs, new_artifact):
    pushed = new_artifact(standard_artifacts.PushedModel)
    (Path(pushed.uri) / "left").write_text("by a failed attempt")
    _push(inputs, pushed, "")
    version = pushed.get_string_custom_property("pushed_version")
    assert version.isdigit()
    assert [path.name for path in Path(pushed.uri).iterdir()] == [version]
    assert read_files(Path(pushed.uri) / version) == CONTENT
    assert pushed.get_int_custom_property("pushed") == 1
    assert pushed.get_string_custom_property("pushed_destination") == version


def test_a_folder_gets_the_same_files_as_from_tfx(inputs, new_artifact, tmp_path):
    pushed = new_artifact(standard_artifacts.PushedModel)
    _push(inputs, pushed, str(tmp_path / "models"))
    [version] = (tmp_path / "models").iterdir()
    assert read_files(version) == CONTENT
    assert read_files(Path(pushed.uri)) == CONTENT
    assert pushed.get_int_custom_property("pushed") == 1
    assert pushed.get_string_custom_property("pushed_version") == version.name
    assert pushed.get_string_custom_property("pushed_destination") == str(version)
    assert version.stat().st_mode & 0o777 == 0o777 & ~_umask()


def test_what_is_at_the_destination_stays(inputs, new_artifact, tmp_path, monkeypatch):
    base = tmp_path / "models"
    (base / "1700000000").mkdir(parents=True)
    (base / "1700000000/saved_model.pb").write_bytes(b"mine")
    (base / "1700000001").write_bytes(b"mine")
    (base / "1700000002").symlink_to(tmp_path / "nowhere")
    (base / "README").write_bytes(b"mine")
    before = {path: path.read_bytes() for path in base.rglob("*") if path.is_file()}
    monkeypatch.setattr(saved_model.time, "time", lambda: 1_700_000_000.0)
    # Others take two versions after they were found free.
    found = iter(["1700000000", "1700000000"])
    find = saved_model._find_version
    monkeypatch.setattr(saved_model, "_find_version", lambda base: next(found, None) or find(base))
    pushed = new_artifact(standard_artifacts.PushedModel)
    _push(inputs, pushed, str(base))
    assert pushed.get_string_custom_property("pushed_version") == "1700000003"
    assert read_files(base / "1700000003") == CONTENT
    assert {path: path.read_bytes() for path in before} == before
    names = ["1700000000", "1700000001", "1700000002", "1700000003", "README"]
    assert sorted(os.listdir(base)) == names
    assert not (tmp_path / "nowhere").exists()


def test_a_model_that_is_the_newest_version_there_is_not_pushed_again(
    inputs, new_artifact, tmp_path, caplog
):
    base = tmp_path / "models"
    first, again, other, back = (new_artifact(standard_artifacts.PushedModel) for _ in range(4))
    _push(inputs, first, str(base))
    [version] = os.listdir(base)
    # Other tests may have set the level of absl.
    with caplog.at_level("INFO", "absl"):
        _push(inputs, again, str(base))
    assert os.listdir(base) == [version]
    assert f"Not pushed to {base / version}: the model is there already." in caplog.text
    assert [each.get_int_custom_property("was_there") for each in (first, again)] == [0, 1]
    for pushed in (first, again):
        assert pushed.get_string_custom_property("pushed_version") == version
        assert pushed.get_string_custom_property("pushed_destination") == str(base / version)
        assert pushed.get_int_custom_property("pushed") == 1
        assert read_files(Path(pushed.uri)) == CONTENT
    # A server was given more beside the model.
    extra = base / version / "assets.extra/tf_serving_warmup_requests"
    extra.parent.mkdir()
    extra.write_bytes(b"requests")
    _push(inputs, again, str(base))
    assert os.listdir(base) == [version]
    # Of equal length: sizes alone would not tell.
    changed = Path(inputs["model"][0].uri) / "Format-Serving/variables/variables.index"
    before = changed.read_bytes()
    changed.write_bytes(before[::-1])
    _push(inputs, other, str(base))
    # A model that is there, but not the newest one, is pushed: servers take the newest.
    changed.write_bytes(before)
    _push(inputs, back, str(base))
    assert len(os.listdir(base)) == 3


def _umask() -> int:
    mask = os.umask(0o022)
    os.umask(mask)
    return mask


def test_a_model_that_is_not_blessed_is_not_pushed(inputs, new_artifact):
    inputs["model_blessing"][0].set_int_custom_property("blessed", 0)
    pushed = new_artifact(standard_artifacts.PushedModel)
    _push(inputs, pushed, "")
    assert pushed.get_int_custom_property("pushed") == 0
    assert list(Path(pushed.uri).iterdir()) == []


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (shutil.rmtree, "FOLDER/saved_model.pb does not exist"),
        (lambda folder: (folder / "saved_model.pb").write_bytes(b""), "FOLDER/saved_model.pb does"),
        (lambda folder: (folder / FILES[0]).unlink(), f"The model FOLDER has no {FILES[0]}."),
        (lambda folder: (folder / FILES[2]).unlink(), f"The model FOLDER has no {FILES[2]}."),
        (
            lambda folder: (folder / "saved_model.pb").write_bytes(CONTENT["saved_model.pb"][:-1]),
            "FOLDER/saved_model.pb is damaged",
        ),
    ],
    ids=["swept", "empty graph", "asset", "shard", "graph"],
)
def test_a_model_that_is_not_complete_is_not_pushed(
    inputs, new_artifact, tmp_path, damage: Callable[[Path], object], said: str
):
    folder = Path(inputs["model"][0].uri) / "Format-Serving"
    damage(folder)
    pushed = new_artifact(standard_artifacts.PushedModel)
    with pytest.raises(StorageError) as caught:
        _push(inputs, pushed, str(tmp_path / "models"))
    assert said.replace("FOLDER", str(folder)) in caught.value.message
    assert caught.value.exit_code == 3
    assert "--set cache=false" in caught.value.hint
    _check_not_pushed(pushed)
    assert not (tmp_path / "models").exists()


def test_a_frozen_graph_of_tensorflow_1_needs_no_variables(tmp_path):
    graph = saved_model_pb2.SavedModel()
    graph.meta_graphs.add()
    (tmp_path / "saved_model.pb").write_bytes(graph.SerializeToString())
    saved_model.check_saved_model(str(tmp_path))


def _check_not_pushed(pushed: Any) -> None:
    for name in ("pushed_version", "pushed_destination"):
        assert pushed.get_string_custom_property(name) == ""
    assert pushed.get_int_custom_property("pushed") == 0


def _after_copy(monkeypatch: pytest.MonkeyPatch, text: str, act: Callable[[str], object]) -> None:
    plain = copies.copy_hashed

    def copy(source: str, destination: str) -> object:
        made = plain(source, destination)
        if text in destination:
            act(destination)
        return made

    monkeypatch.setattr(copies, "copy_hashed", copy)


@pytest.mark.parametrize("text", ["/models/", "/PushedModel-"])
def test_a_destination_that_loses_a_file_gets_no_version(
    inputs, new_artifact, tmp_path, monkeypatch, text: str
):
    old = tmp_path / "models/1"
    old.mkdir(parents=True)
    (old / "saved_model.pb").write_text("older")
    pushed = new_artifact(standard_artifacts.PushedModel)
    with monkeypatch.context() as patch:
        _after_copy(patch, text, lambda path: path.endswith("index") and os.unlink(path))
        with pytest.raises(StorageError, match=r"variables.index does not exist after it was"):
            _push(inputs, pushed, str(tmp_path / "models"))
    _check_not_pushed(pushed)
    assert read_files(tmp_path / "models") == {"1/saved_model.pb": b"older"}
    assert os.listdir(tmp_path / "models") == ["1"]
    _push(inputs, pushed, str(tmp_path / "models"))
    assert len(os.listdir(tmp_path / "models")) == 2


def test_a_push_that_is_killed_leaves_no_version(inputs, tmp_path, monkeypatch):
    model = Path(inputs["model"][0].uri) / "Format-Serving"
    base = tmp_path / "models"
    child = os.fork()
    if child == 0:
        try:
            _after_copy(monkeypatch, "saved_model.pb", lambda _: os.kill(os.getpid(), 9))
            saved_model.push_version(str(model), str(base))
        finally:
            os._exit(0)
    assert os.waitpid(child, 0)[1] == signal.SIGKILL
    [part] = base.iterdir()
    assert part.name.startswith(".part-")  # servers look at names that are numbers
    version = saved_model.push_version(str(model), str(base))
    assert {path.name for path in base.iterdir()} == {part.name, version}
    assert read_files(base / version) == CONTENT


def test_where_folders_cannot_be_renamed_the_graph_comes_last(inputs, tmp_path, monkeypatch):
    def rename(*_: str) -> None:
        raise OSError(errno.EMFILE, "Too many open files")  # as Google's mounted buckets say it

    copied: list[str] = []
    monkeypatch.setattr(saved_model.storage, "rename", rename)
    _after_copy(monkeypatch, "/models/1", copied.append)
    version = saved_model.push_version(
        str(Path(inputs["model"][0].uri) / "Format-Serving"), str(tmp_path / "models")
    )
    assert os.listdir(tmp_path / "models") == [version]
    assert read_files(tmp_path / "models" / version) == CONTENT
    assert [path.rpartition("/")[2] for path in copied][-1] == "saved_model.pb"
    with monkeypatch.context() as patch:
        _after_copy(patch, f"/models/{version[:3]}", os.unlink)
        with pytest.raises(StorageError):
            saved_model.push_version(
                str(Path(inputs["model"][0].uri) / "Format-Serving"), str(tmp_path / "models")
            )
    assert os.listdir(tmp_path / "models") == [version]
