"""The folder of a training: nothing in it is replaced or deleted that darkroom did not write."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from darkroom.errors import OutputError, UsageError
from darkroom.storage import ledger
from darkroom.training.state.folder import check_checkpoint_place, claim_folder, delete_model

from ..trees import read_files, write_files

NAMES = ("training.json", "history.json", "input.json", "input.md")
FOLDERS = ("checkpoints", "best", "tensorboard", "model")


@pytest.mark.parametrize("name", [*NAMES, *(f"{each}/mine" for each in FOLDERS)])
def test_a_file_of_the_user_under_a_name_of_a_training_stops_it(tmp_path: Path, name: str):
    before = write_files(tmp_path, name)
    with pytest.raises(OutputError, match="did not write") as stop:
        claim_folder(str(tmp_path))
    assert "Choose another --checkpoint-dir" in stop.value.hint
    assert read_files(tmp_path) == before


@pytest.mark.parametrize("name", ["c[1]", "c*", "runs?/c"])
def test_tensorflow_would_delete_the_checkpoints_of_others_by_a_pattern(name: str):
    with pytest.raises(UsageError, match=r"^checkpoint_dir is '.*', expected a name without"):
        check_checkpoint_place(name)


def test_other_files_of_the_user_stop_it(tmp_path: Path):
    before = write_files(tmp_path, "thesis.txt")
    with pytest.raises(OutputError, match=r"contains unrelated files: thesis\.txt"):
        claim_folder(str(tmp_path))
    assert read_files(tmp_path) == before


@pytest.mark.parametrize("name", FOLDERS)
def test_a_link_to_a_folder_of_the_user_stops_it(tmp_path: Path, name: str):
    before = write_files(tmp_path / "mine", "saved_model.pb")
    (tmp_path / "run").mkdir()
    claim_folder(str(tmp_path / "run"))
    (tmp_path / "run" / name).symlink_to(tmp_path / "mine")
    with pytest.raises(OutputError, match=f"did not write.*: {name}"):
        claim_folder(str(tmp_path / "run"))
    assert read_files(tmp_path / "mine") == before


def test_a_folder_that_was_used_may_have_notes(tmp_path: Path):
    folder = tmp_path / "run"
    claim_folder(str(folder))
    before = write_files(folder, "notes.txt", "model/saved_model.pb", "history.json")
    claim_folder(str(folder))
    assert read_files(folder) == before


@pytest.mark.parametrize("existing", ["", ".DS_Store", "lost+found/"])
def test_an_empty_folder_is_used(tmp_path: Path, existing: str):
    if existing.endswith("/"):
        (tmp_path / existing).mkdir()
    elif existing:
        write_files(tmp_path, existing)
    claim_folder(str(tmp_path))
    assert ledger.is_listed(str(tmp_path), "model/")


@pytest.mark.parametrize("value", [[], {}, [1], [{"epoch": 2}], [{"loss": 1}], "x"])
def test_another_history_is_not_a_training(tmp_path: Path, value: object):
    (tmp_path / "history.json").write_text(json.dumps(value))
    before = read_files(tmp_path)
    with pytest.raises(OutputError):
        claim_folder(str(tmp_path))
    assert read_files(tmp_path) == before


def test_only_the_files_of_a_model_are_deleted(tmp_path: Path):
    mine = {"README.md", "assets/notes.txt", "variables/thesis.txt"}
    model = {"saved_model.pb", "fingerprint.pb", "assets/labels.txt", "variables/variables.index"}
    model |= {"variables/variables.data-00000-of-00001"}
    write_files(tmp_path / "model", *mine, *model)
    delete_model(str(tmp_path))
    assert set(read_files(tmp_path / "model")) == mine


def test_a_link_in_a_model_stops_the_next_one(tmp_path: Path):
    before = write_files(tmp_path / "mine", "variables.index")
    (tmp_path / "model").mkdir()
    (tmp_path / "model/variables").symlink_to(tmp_path / "mine")
    with pytest.raises(OutputError, match="has a link that darkroom did not write: variables"):
        delete_model(str(tmp_path))
    assert read_files(tmp_path / "mine") == before
