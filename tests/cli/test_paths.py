"""Paths that cannot be used: every command ends with the same code, and says what may be meant."""

from __future__ import annotations

import json
import os
import shutil

import pytest

from darkroom.cli import main

from ..image_set import LABELS

MISSING = [
    "convert DIR/imags.csv --output-dir DIR/o",
    "convert LIST --output-dir DIR/o --label-map DIR/imags.csv",
    "verify DIR/imags.csv",
    "inspect DIR/imags.csv",
    "run --config DIR/imags.csv",
]
IRREGULAR = [
    "convert DIR/pipe.csv --output-dir DIR/o",
    "convert LIST --output-dir DIR/o --exclude DIR/pipe.parquet",
    "convert LIST --output-dir DIR/o --exclude /dev/zero",
    "convert LIST --output-dir DIR/o --label-map DIR/pipe.csv",
    "run --config DIR/pipe.csv",
]


@pytest.fixture
def call(jpeg_set, tmp_path, capsys):
    """Runs a command; returns its exit code and its error."""

    def call(command: str) -> tuple[int, dict[str, str]]:
        shutil.copy(jpeg_set.csv, tmp_path / "images.csv")
        words = command.replace("DIR", str(tmp_path)).replace("LIST", str(jpeg_set.csv)).split()
        code = main([*words, "--json"])
        return code, json.loads(capsys.readouterr().out)["error"]

    return call


@pytest.mark.parametrize("command", MISSING)
def test_a_missing_path_is_three_and_the_near_one_is_named(call, command, tmp_path):
    code, error = call(command)
    assert (code, error["code"]) == (3, "environment")
    assert f"{tmp_path}/imags.csv does not exist." in error["message"]
    assert f"Did you mean {tmp_path}/images.csv?" in error["hint"]


@pytest.mark.parametrize("command", IRREGULAR)
def test_pipes_and_devices_are_refused_at_once(call, command, tmp_path):
    for ending in ("csv", "parquet"):
        os.mkfifo(tmp_path / f"pipe.{ending}")
    code, error = call(command)
    assert (code, error["code"]) == (3, "environment")
    assert "is not a regular file." in error["message"]


def test_a_tilde_is_the_home_folder_in_arguments_and_not_in_cells(
    jpeg_set, tmp_path, monkeypatch, capsys
):
    home = jpeg_set.csv.parent
    monkeypatch.setenv("HOME", str(home))
    (work := tmp_path / "work").mkdir()
    monkeypatch.chdir(work)
    (home / "labels.txt").write_text("\n".join(LABELS) + "\n")
    text = (home / "images.csv").read_text()
    (home / "home.csv").write_text(f"{text}train,~/00.jpg,cat\n")
    words = ["convert", "~/home.csv", "--output-dir=~/records", "--label-map=~/labels.txt"]
    assert main([*words, "--max-rejects=1", "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["output_dir"] == f"{home}/records"
    assert result["rejected"] == {"missing": 1}
    assert os.listdir(work) == []
