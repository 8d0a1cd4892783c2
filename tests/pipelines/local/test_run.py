"""The folder of a run: nothing in it is replaced that darkroom did not write."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from darkroom.errors import MissingExtraError, OutputError, StorageError, UsageError
from darkroom.pipelines.local import run
from darkroom.pipelines.local.run import run_pipeline
from darkroom.storage.ledger import LEDGER_FILE

from ...trees import read_files, write_files


@pytest.fixture
def source(tmp_path: Path) -> Path:
    (tmp_path / "images.csv").write_text("a.png,a\n")
    return tmp_path / "images.csv"


@pytest.fixture
def start(source: Path, monkeypatch: pytest.MonkeyPatch):
    """Starts a run in a folder; nothing is run."""
    monkeypatch.setattr(run, "is_installed", lambda _: True)
    summary = SimpleNamespace(to_dict=dict, exit_code=0)
    form = run._WITH_TFX._replace(perform=lambda *_: summary)
    monkeypatch.setattr(run, "_WITH_TFX", form)

    def start(root: Path, *, overwrite: bool = False, **options: str) -> int:
        values = {"data": str(source), "root": str(root), **options}
        return run_pipeline(values, as_json=True, overwrite=overwrite)

    return start


@pytest.mark.parametrize(("name", "overwrite"), [("artifacts/mine", False), ("log.txt", True)])
def test_a_file_of_the_user_under_a_name_of_a_run_stops_it(tmp_path, start, name, overwrite):
    before = write_files(tmp_path / "root", name)
    with pytest.raises(OutputError, match="did not write") as stop:
        start(tmp_path / "root", overwrite=overwrite)
    assert stop.value.hint == "Choose another --root."
    assert read_files(tmp_path / "root") == before


def test_other_data_stays_with_overwrite_and_stops_a_run_without(tmp_path, start):
    root = tmp_path / "root"
    before = write_files(root, "thesis.txt")
    with pytest.raises(OutputError, match=r"contains unrelated files: thesis\.txt"):
        start(root)
    assert read_files(root) == before
    assert start(root, overwrite=True) == 0
    assert before.items() <= read_files(root).items()


def test_a_run_uses_its_folder_again_also_after_a_kill_while_sqlite_wrote(tmp_path, start):
    root = tmp_path / "root"
    assert start(root) == 0
    before = write_files(
        root, "artifacts/Trainer/model", "metadata.sqlite", "metadata.sqlite-journal"
    )
    assert start(root) == 0
    assert before.items() <= read_files(root).items()


def test_no_log_is_written_through_a_link(tmp_path, start):
    root = tmp_path / "root"
    assert start(root) == 0
    (tmp_path / "thesis.txt").write_bytes(b"mine")
    (root / "log.txt").unlink()
    (root / "log.txt").symlink_to(tmp_path / "thesis.txt")
    with pytest.raises(OutputError, match=r"log\.txt"):
        start(root)
    assert (tmp_path / "thesis.txt").read_bytes() == b"mine"


@pytest.mark.parametrize(
    ("option", "kind", "said"),
    [
        pytest.param("schema", FileNotFoundError, "No such file", marks=pytest.mark.tfx),
        ("weights", UsageError, "which is not a file"),
        ("exclude", FileNotFoundError, "No such file"),
        ("label_map", StorageError, "does not exist"),
    ],
)
def test_a_missing_file_is_an_error_before_anything_starts(tmp_path, start, option, kind, said):
    with pytest.raises(kind, match=said) as caught:
        start(tmp_path / "root", **{option: f"{tmp_path}/nope"})
    assert f"{tmp_path}/nope" in str(caught.value)
    assert not (tmp_path / "root").exists()


@pytest.mark.tfx
def test_a_file_that_is_not_a_schema_is_an_error_before_anything_starts(tmp_path, start):
    (tmp_path / "schema.pbtxt").write_text("feature: many")
    with pytest.raises(UsageError, match=r"schema\.pbtxt is not a schema"):
        start(tmp_path / "root", schema=f"{tmp_path}/schema.pbtxt")
    assert not (tmp_path / "root").exists()


@pytest.mark.tfx
def test_a_run_takes_the_states_of_files_itself_and_keeps_its_checkpoints(
    tmp_path, source, monkeypatch
):
    made = []
    summary = SimpleNamespace(to_dict=dict, exit_code=0)
    monkeypatch.setattr("darkroom.pipelines.local.runner.launch", made.append)
    monkeypatch.setattr("darkroom.pipelines.local.lineage.read_summary", lambda *_, **__: summary)
    values = {"data": str(source), "root": f"{tmp_path}/root"}
    values |= dict.fromkeys(("source_fingerprint", "model_fingerprint"), "of last week")
    assert run_pipeline(values, as_json=True, overwrite=False) == 0
    [pipeline] = made
    properties = {node.id: node.exec_properties for node in pipeline.components}
    assert properties["ManifestGen"]["source_fingerprint"] == "{{$.pipeline_job_uuid}}"
    config = json.loads(properties["Trainer"]["custom_config"])
    assert config["model_fingerprint"] == ""
    assert config["checkpoint_dir"] == f"{tmp_path}/root/checkpoints"


def test_a_wrong_runner_is_an_error_before_anything_starts(tmp_path, start):
    with pytest.raises(UsageError, match="Unknown runner 'Nope'"):
        start(tmp_path / "root", beam_args=["--runner=Nope"])
    assert not (tmp_path / "root").exists()


@pytest.mark.tfx
def test_a_wrong_model_is_an_error_before_the_data_is_read(tmp_path, source):
    root = tmp_path / "root"
    root.mkdir()
    (root / "log.txt").touch()  # a root with only an empty log is used
    values = {"data": str(source), "root": str(root), "model": "keras.applications:MobilNet"}
    with pytest.raises(UsageError) as caught:
        run_pipeline(values, as_json=True, overwrite=False)
    assert "Did you mean MobileNet" in caught.value.hint
    assert sorted(path.name for path in root.iterdir()) == [LEDGER_FILE, "log.txt"]


def test_a_run_without_tfx_leaves_nothing(tmp_path, source, monkeypatch):
    monkeypatch.setattr(run, "is_installed", lambda name: name != "tfx")
    values = {"data": str(source), "root": str(tmp_path / "runs/first")}
    with pytest.raises(MissingExtraError, match="The module tfx needs the extra 'tfx'"):
        run_pipeline(values, as_json=True, overwrite=False)
    assert [path.name for path in tmp_path.iterdir()] == ["images.csv"]
