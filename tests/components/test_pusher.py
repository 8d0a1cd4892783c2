from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tfx.types import standard_artifacts

from darkroom import storage
from darkroom.components.pusher import executor

FILES = ("fingerprint.pb", "saved_model.pb", "variables/variables.index")


@pytest.fixture
def inputs(new_artifact: Callable[..., Any]) -> dict[str, list[Any]]:
    """A model with a few files, and a blessing of it."""
    model = new_artifact(standard_artifacts.Model)
    for name in FILES:
        path = Path(model.uri) / "Format-Serving" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"content of {name}")
    blessing = new_artifact(standard_artifacts.ModelBlessing)
    blessing.set_int_custom_property("blessed", 1)
    model.set_string_custom_property("tfx_version", "1.16.0")
    return {"model": [model], "model_blessing": [blessing]}


def _push(inputs: dict[str, list[Any]], pushed: Any, destination: str) -> None:
    text = json.dumps({"filesystem": {"base_directory": destination} if destination else {}})
    properties = {"push_destination": text, "custom_config": "null"}
    executor.Executor().Do(inputs, {"pushed_model": [pushed]}, properties)


def _read(folder: Path) -> dict[str, str]:
    return {n: (folder / n).read_text() for n in storage.walk_files(str(folder))}


CONTENT = {name: f"content of {name}" for name in FILES}


def test_without_destination_the_model_is_a_version_in_its_artifact(inputs, new_artifact):
    pushed = new_artifact(standard_artifacts.PushedModel)
    (Path(pushed.uri) / "left").write_text("by a failed attempt")
    _push(inputs, pushed, "")
    version = pushed.get_string_custom_property("pushed_version")
    assert version.isdigit()
    assert [path.name for path in Path(pushed.uri).iterdir()] == [version]
    assert _read(Path(pushed.uri) / version) == CONTENT
    assert pushed.get_int_custom_property("pushed") == 1
    assert pushed.get_string_custom_property("pushed_destination") == version


def test_a_folder_gets_the_model_as_from_tfx(inputs, new_artifact, tmp_path):
    pushed = new_artifact(standard_artifacts.PushedModel)
    _push(inputs, pushed, str(tmp_path / "models"))
    [version] = (tmp_path / "models").iterdir()
    assert _read(version) == CONTENT
    assert _read(Path(pushed.uri)) == CONTENT


def test_a_model_goes_to_s3_by_our_client_with_its_commit_last(
    inputs, new_artifact, monkeypatch: pytest.MonkeyPatch
):
    copied: dict[str, str] = {}
    monkeypatch.setattr(
        executor.storage, "copy_file", lambda a, b: copied.update({b: Path(a).read_text()})
    )
    pushed = new_artifact(standard_artifacts.PushedModel)
    _push(inputs, pushed, "s3://models/photos")
    base = pushed.get_string_custom_property("pushed_destination")
    assert base.startswith("s3://models/photos/")
    assert copied == {f"{base}/{name}": text for name, text in CONTENT.items()}
    assert list(copied)[-1] == f"{base}/saved_model.pb"
    assert _read(Path(pushed.uri)) == CONTENT


def test_a_model_that_is_not_blessed_is_pushed_nowhere(inputs, new_artifact):
    inputs["model_blessing"][0].set_int_custom_property("blessed", 0)
    pushed = new_artifact(standard_artifacts.PushedModel)
    _push(inputs, pushed, "")
    assert pushed.get_int_custom_property("pushed") == 0
    assert list(Path(pushed.uri).iterdir()) == []
