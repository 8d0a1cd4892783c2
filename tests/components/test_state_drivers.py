"""What caches compare of files: the drivers of ManifestGen, Trainer and ImportSchemaGen.

tests/manifest/test_fingerprint.py has what changes the fingerprint of a source.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from absl import logging as absl_logging
from tfx.orchestration.data_types import RuntimeParameter
from tfx.types import Channel, standard_artifacts

import darkroom
from darkroom import storage
from darkroom.components import ImportSchemaGen, ManifestGen, Trainer, file_state
from darkroom.components.artifacts import ImageManifest, Rejects
from darkroom.components.manifest_gen import executor
from darkroom.components.state_driver import TAKEN_BY_EACH_RUN
from darkroom.errors import StorageError, UsageError
from darkroom.manifest.fingerprint import fingerprint_source
from darkroom.options.manifest import ManifestOptions

pytestmark = pytest.mark.tfx


@pytest.fixture(autouse=True)
def folder(images: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, on `sys.path`: a list of images, and a module that trains."""
    monkeypatch.chdir(images.parent)
    monkeypatch.syspath_prepend(images.parent)
    for name, text in {
        "own_model.py": "from own_layers import TEXT\n\ndef run_fn(_): ...\n",
        "own_layers.py": "TEXT = 'layers'\n",
        "own_nets.py": "def build(): ...\n",
        "start.weights": "weights",
        "schema.pbtxt": "feature {}",
        "words/one.txt": "cat",
        "checkpoints/1.ckpt": "1",
    }.items():
        path = images.parent / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    return images.parent


@pytest.fixture
def warned(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    found: list[str] = []
    monkeypatch.setattr(absl_logging, "warning", lambda text, *more: found.append(text % more))
    return found


def find_state(node: Any) -> str:
    """Returns the fingerprint that the next run of a component has; its own stays unchanged."""
    before = dict(node.exec_properties)
    found = node.driver_class(None).resolve_exec_properties(before, None, None)
    assert node.exec_properties == before
    [state] = [value for key, value in found.items() if key.endswith("fingerprint")]
    return str(state)


def make_trainer(**options: Any) -> Trainer:
    return Trainer(Channel(type=standard_artifacts.Examples), **options)


def write(name: str, text: str) -> Callable[[], object]:
    return lambda: Path(name).write_text(text)


@pytest.mark.parametrize(
    ("make", "change"),
    [
        (lambda: ManifestGen("images.csv"), write("images.csv", "image_uri\n00.jpg\n")),
        (
            lambda: ManifestGen("images.csv", base="base"),
            lambda: darkroom.convert("images.csv", "base"),
        ),
        (lambda: ManifestGen("images.csv"), write("00.jpg", "other")),
        (lambda: ManifestGen("images.csv", exclude="start.weights"), write("start.weights", "a")),
        (lambda: ManifestGen("images.csv", decisions="start.weights"), write("start.weights", "a")),
        (lambda: ImportSchemaGen("schema.pbtxt"), write("schema.pbtxt", "feature { }")),
        (lambda: make_trainer(run_fn="own_model.run_fn"), write("own_model.py", "run_fn = 1\n")),
        (lambda: make_trainer(run_fn="own_model.run_fn"), write("own_layers.py", "TEXT = 1\n")),
        (lambda: make_trainer(module_file="own_model.py"), write("own_layers.py", "TEXT = 1\n")),
        (
            lambda: make_trainer(run_fn="a.b", custom_config={"weights": "start.weights"}),
            write("start.weights", "other"),
        ),
        (lambda: make_trainer(run_fn="a.b", files=["words"]), write("words/more.txt", "owl")),
        (
            lambda: make_trainer(run_fn="a.b", custom_config={"darkroom": {"m": "own_nets:build"}}),
            write("own_nets.py", "def build(n): ...\n"),
        ),
    ],
    ids=[
        *("list", "base", "image", "exclusions", "decisions", "schema", "module"),
        *("import", "import of a file", "warm start", "files", "model"),
    ],
)
def test_a_change_of_what_a_node_reads_changes_its_state(make: Any, change: Any):
    node = make()
    before = find_state(node)
    assert find_state(node) == before
    change()
    assert find_state(node) not in (before, TAKEN_BY_EACH_RUN)


@pytest.mark.parametrize(
    ("options", "change"),
    [
        ({}, write("pipeline.py", "import own_model\n")),
        ({"custom_config": {"dir": "checkpoints", "n": [1], "odd": "a\0b"}},
         write("checkpoints/2.ckpt", "2")),
    ],
    ids=["code that is not imported", "a folder that the options name"],
)  # fmt: skip
def test_what_does_not_train_may_change(options: dict[str, Any], change: Any):
    node = make_trainer(run_fn="own_model.run_fn", **options)
    before = find_state(node)
    change()
    assert find_state(node) == before


def test_a_folder_in_a_store_that_the_options_name_may_change(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("darkroom.storage.is_folder", lambda path: path.startswith("s3://"))
    monkeypatch.setattr("darkroom.storage.look_up_files", None)  # not called
    find_state(make_trainer(run_fn="own_model.run_fn", custom_config={"dir": "s3://photos/models"}))


def test_a_given_fingerprint_is_used_unchanged(monkeypatch: pytest.MonkeyPatch):
    given = fingerprint_source("images.csv")
    monkeypatch.setattr(file_state, "read_source_state", None)  # not called
    for fingerprint in ("", given):
        node = ManifestGen("images.csv", source_fingerprint=fingerprint)
        assert find_state(node) == fingerprint
    assert find_state(make_trainer(run_fn="no.such", fingerprint="version 1")) == "version 1"


def test_a_file_that_does_not_exist_is_an_error_at_once(folder: Path):
    with pytest.raises(UsageError) as caught:
        make_trainer(run_fn="own_model.run_fn", files=["words/one.txt", "words/oen.txt"])
    assert str(caught.value) == (
        f"files has 'words/oen.txt', which does not exist. Did you mean {folder}/words/one.txt?"
    )


def test_a_function_may_be_a_run_time_parameter():
    function = RuntimeParameter("run_fn", str, default="own_model.run_fn")
    assert make_trainer(run_fn=function).exec_properties["run_fn"] is function


def refuse(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes the state of a file unreadable; the tests may run as root, who may read all."""
    stat_file = storage.stat_file

    def stat(path: str) -> Any:
        if path.endswith(name):
            raise PermissionError(13, "Permission denied", path)
        return stat_file(path)

    monkeypatch.setattr(storage, "stat_file", stat)
    monkeypatch.setattr(
        "darkroom.manifest.chunks._look_up_local", lambda uris: [(None, None)] * len(uris)
    )


@pytest.mark.parametrize(
    ("make", "name", "said"),
    [
        (lambda: make_trainer(run_fn="a.b", files=["start.weights"]), "start.weights",
         "Trainer cannot use the cache, because its files cannot be read: start.weights cannot be"),
        (lambda: ManifestGen("images.csv"), "04.jpg", "04.jpg cannot be read or written: Permis"),
    ],
    ids=["file", "image"],
)  # fmt: skip
def test_what_cannot_be_looked_at_has_another_state_in_each_run(
    make: Any, name: str, said: str, warned: list[str], monkeypatch: pytest.MonkeyPatch
):
    node = make()
    refuse(name, monkeypatch)
    assert find_state(node) != find_state(node)
    assert len(warned) == 2
    assert said in warned[0]


def test_a_source_that_nobody_answers_for_has_another_state_in_each_run(
    warned: list[str], monkeypatch: pytest.MonkeyPatch
):
    def fail(*_: Any, **__: Any) -> str:
        raise StorageError("s3://photos/images.csv: nobody answers.")

    node = ManifestGen("images.csv")
    known = find_state(node)
    with monkeypatch.context() as patch:
        patch.setattr(file_state, "read_source_state", fail)
        assert len({known, find_state(node), find_state(node)}) == 3
    assert warned[0].startswith("ManifestGen cannot use the cache, because ")
    assert warned[0].endswith("s3://photos/images.csv: nobody answers.")
    assert find_state(node) == known


def test_a_missing_image_has_a_known_state(folder: Path, warned: list[str]):
    (folder / "04.jpg").unlink()
    node = ManifestGen("images.csv")
    missing = find_state(node)
    assert find_state(node) == missing
    (folder / "04.jpg").write_bytes(b"there")
    assert find_state(node) != missing
    assert warned == []


def test_making_a_component_reads_nothing(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("builtins.open", None)
    component = ManifestGen("absent.csv", label_map="absent.txt", exclude="absent.txt")
    assert component.exec_properties["source"] == "absent.csv"


def test_a_runner_without_drivers_or_run_ids_gets_a_warning(new_artifact: Any, warned: list[str]):
    artifacts = {"manifest": [new_artifact(ImageManifest)], "list_rejects": [new_artifact(Rejects)]}
    properties = {"source": "images.csv", "options": ManifestOptions().to_json()}
    for value, count in (("0.1.0-abc", 0), (TAKEN_BY_EACH_RUN, 1)):
        executor.Executor().Do({}, artifacts, {**properties, "source_fingerprint": value})
        assert len(warned) == count
    assert "its cache cannot notice that images.csv has changed" in warned[0]
