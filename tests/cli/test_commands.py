"""The command line: exit codes, messages and JSON."""

from __future__ import annotations

import errno
import importlib.util
import json
import os
import pkgutil
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from darkroom.cli import commands, main
from darkroom.cli.parser import build_parser
from darkroom.conversion.convert import convert
from darkroom.errors import UsageError
from darkroom.steps.known import STEPS
from darkroom.validation.validate import validate


def _run(*arguments: str, cwd: Path | None = None, **options) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "darkroom.cli", *arguments]
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd, **options)


def _json(capsys) -> dict:
    out, _ = capsys.readouterr()
    [line] = out.splitlines()
    return json.loads(line)


def test_a_conversion_says_what_became_of_the_rows(faulty_set, tmp_path, capsys):
    command = ["convert", str(faulty_set.csv), "--output-dir", f"{tmp_path}/out"]
    assert main([*command, "--max-rejects", "1"]) == 0
    out, err = capsys.readouterr()
    assert out.splitlines()[:12] == [
        "Read as    CSV in UTF-8, header in line 1",
        "  image    column image_uri",
        "  label    column label, numbered by sorted text",
        "  split    column split",
        "Rows in    47",
        "Written    39  (train 31, eval 8, test 0) in 4 shards",
        "Rejected   7  (conflict 2, empty 1, empty_label 1, missing 1, not_an_image 1, "
        "truncated 1)",
        "Duplicates 1",
        "Labels     3  train  eval",
        "  cat            11     3",
        "  dog             9     3",
        "  owl            11     2",
    ]
    assert f"Rejects    {tmp_path}/out/rejects.jsonl" in out
    assert "Traceback" not in err

    assert main([*command, "--max-rejects", "1", "--json"]) == 0
    found = _json(capsys)
    assert len(found.pop("fingerprint")) == 64
    assert found.pop("read_as")["splits"] == "column"
    one_each = dict.fromkeys(("empty", "empty_label", "missing", "not_an_image", "truncated"), 1)
    assert found == {
        "rows": 47,
        "written": 39,
        "rejected": {"conflict": 2, **one_each},
        "deduplicated": 1,
        "splits": {"train": 31, "eval": 8, "test": 0},
        "shards": 4,
        "labels": ["cat", "dog", "owl"],
        "classes": {
            "train": {"cat": 11, "dog": 9, "owl": 11},
            "eval": {"cat": 3, "dog": 3, "owl": 2},
        },
        "output_dir": f"{tmp_path}/out",
        "data_dir": f"{tmp_path}/out",
        "rejects_path": f"{tmp_path}/out/rejects.jsonl",
        "already_complete": True,
        "job_id": None,
        "excluded": 0,
        "decisions": None,
        "merged": 0,
        "replaced": 0,
        "numbers": [],
    }


def test_a_source_without_labels_is_converted_and_the_result_says_so(jpeg_set, tmp_path, capsys):
    path = jpeg_set.folder / "nolabel.csv"
    path.write_text("".join(f"{row[1]}\n" for row in [("", "image_uri"), *jpeg_set.rows]))
    message = "The records have no labels: no column names them."
    assert main(["convert", str(path), "--output-dir", f"{tmp_path}/out"]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == f"Missing    {message}"
    result = convert(path, tmp_path / "out")
    assert repr(result).endswith(", labels=0 (no column names them))")
    assert message in result._repr_html_()
    assert "unknown_labels" not in {each.check for each in validate(tmp_path / "out").findings}


def test_an_empty_column_of_objects_is_one_that_nobody_has_filled(jpeg_set, tmp_path, capsys):
    path = jpeg_set.folder / "new.csv"
    path.write_text("image,objects\n" + "".join(f"{row[1]},\n" for row in jpeg_set.rows))
    assert main(["convert", str(path), "--output-dir", f"{tmp_path}/out"]) == 0
    said = capsys.readouterr().out
    assert "no labels" not in said
    assert " records are not annotated " in said


def test_over_budget_is_one_with_the_result(faulty_set, tmp_path, capsys):
    arguments = ["convert", str(faulty_set.csv), "--output-dir", f"{tmp_path}/out"]
    assert main([*arguments, "--json"]) == 1
    found = _json(capsys)
    assert (found["rows"], found["written"], found["fingerprint"]) == (47, 0, "")
    assert sum(found["rejected"].values()) == 7
    assert "message" not in found
    error = found["error"]
    assert error["code"] == "data"
    assert "more than the 1.00% allowed" in error["message"]
    assert "--max-rejects" in error["hint"]

    assert main(arguments) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert "darkroom: 7 of 47 rows were rejected" in err
    assert "row 41: not_an_image (it looks like HTML)" in err
    assert "--max-rejects" in err


def test_wrong_usage_is_two(jpeg_set, tmp_path, capsys):
    arguments = ["convert", str(jpeg_set.csv), "--output-dir", f"{tmp_path}/out", "--json"]
    assert main([*arguments, "--columns", '{"image_uri": "picture"}']) == 2
    assert _json(capsys)["error"]["code"] == "usage"
    arguments += ["--runner", "FnApiRunner"]
    assert main([*arguments, "--beam-option", "nonsense=1"]) == 2
    assert "no option 'nonsense'" in _json(capsys)["error"]["message"]


@pytest.mark.parametrize(
    ("arguments", "message", "hint"),
    [
        (
            ["convert", "x", "--num-shards", "four"],
            "Argument --num-shards: expected a whole number, got 'four'.",
            "convert --help",
        ),
        (
            ["convert", "x", "--outputdir", "y"],
            "The following arguments are required: --output-dir.",
            "Did you mean --output-dir? See darkroom convert --help.",
        ),
        (["convrt"], "'convrt'", "Did you mean convert? See darkroom --help."),
        (
            ["compile", "--target=kubflow", "-o", "p.yaml"],
            "Argument --target: invalid choice: 'kubflow'",
            "Did you mean kubeflow? See darkroom compile --help.",
        ),
        (["verify", "x", "y"], "Unrecognized arguments: y.", "See darkroom verify --help."),
        (
            ["dataservice", "worker", "--dispatcher=x", "--port=1", "--hots=a"],
            "Unrecognized arguments: --hots=a.",
            "Did you mean --host? See darkroom dataservice worker --help.",
        ),
    ],
)
def test_wrong_arguments_are_json_too(arguments, message, hint, capsys):
    assert main([*arguments, "--json"]) == 2
    error = _json(capsys)["error"]
    assert error["code"] == "usage"
    assert message in error["message"]
    assert hint in error["hint"]
    assert main(arguments) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 2)
    assert message in err


def test_what_the_system_says_is_told_as_a_sentence(jpeg_set, tmp_path, capsys):
    (tmp_path / "file").touch()
    command = ["convert", str(jpeg_set.csv), "--output-dir", f"{tmp_path}/file/out", "--json"]
    assert main(command) == 3
    error = _json(capsys)["error"]
    assert error["message"] == f"{tmp_path}/file/out cannot be read or written: Not a directory."
    assert error["hint"]


def test_a_full_disk_is_told_without_the_step_of_beam(jpeg_set, tmp_path, capsys, monkeypatch):
    def fail(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("darkroom.conversion.shards.writing.write_shard", fail)
    arguments = ["convert", str(jpeg_set.csv), "--output-dir", f"{tmp_path}/out", "--json"]
    assert main(arguments) == 3
    error = _json(capsys)["error"]
    assert re.fullmatch(
        rf"{tmp_path}/out/Split-\w+/data_tfrecord-\d+-of-\d+: No space left on device\.",
        error["message"],
    )
    assert error["hint"] == "Check the path, the permissions and the space on disk."


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        pytest.param(
            ["demo", "--root"],
            "Move them, or choose another folder: darkroom demo --root",
            marks=pytest.mark.tensorflow,
        ),
        (["run", "--data=x", "--root"], "Choose another --root, or use it with --overwrite."),
    ],
)
def test_a_hint_names_what_the_command_has(tmp_path, capsys, arguments, hint):
    (tmp_path / "notes.txt").touch()
    assert main([*arguments, str(tmp_path), "--json"]) == 4
    assert _json(capsys)["error"]["hint"].startswith(hint)


@pytest.mark.parametrize(
    ("defect", "message"),
    [
        (RuntimeError("boom"), "RuntimeError: boom"),
        # A module that is part of no extra.
        (ModuleNotFoundError("No module named 'pandsa'", name="pandsa"), "ModuleNotFoundError: No"),
    ],
)
def test_a_defect_of_ours_is_seventy_and_says_so(tmp_path, capsys, monkeypatch, defect, message):
    def fail(*_: object, **__: object) -> None:
        raise defect

    monkeypatch.setattr("darkroom.conversion.convert.convert", fail)
    assert main(["convert", "x.csv", "--output-dir", f"{tmp_path}/out", "--json"]) == 70
    error = _json(capsys)["error"]
    assert (error["code"], error["message"][: len(message)]) == ("internal", message)
    assert error["hint"] == "This is a bug in darkroom: please report it with the lines above."


@pytest.mark.parametrize("error", [SystemExit(143), UsageError("odd", ""), RuntimeError("odd")])
def test_a_signal_that_arrives_as_another_error_is_still_the_signal(
    jpeg_set, tmp_path, capsys, monkeypatch, error
):
    def fail(*_: object, **__: object) -> None:
        try:
            signal.raise_signal(signal.SIGTERM)
        except SystemExit:
            raise error from None

    monkeypatch.setattr("darkroom.conversion.convert.convert", fail)
    monkeypatch.setattr("darkroom.cli.process.Signal.number", None)
    assert main(["convert", str(jpeg_set.csv), "--output-dir", f"{tmp_path}/out"]) == 143
    assert capsys.readouterr().err.splitlines()[-1] == "Ended by SIGTERM; run it again."


@pytest.mark.long
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_amid_the_conversion_ends_it_and_a_rerun_goes_on(
    image_set, tmp_path, number, code
):
    for copy in range(800):
        name = f"copy-{copy}.png"
        os.link(image_set.folder / f"{copy % 40:02d}.png", image_set.folder / name)
        image_set.add("TRAIN", name, "cat", None)
    command = [sys.executable, "-m", "darkroom.cli", "convert", str(image_set.csv)]
    command += ["--output-dir", f"{tmp_path}/out"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    while not (tmp_path / "out" / "Split-train").exists():
        time.sleep(0.01)
    process.send_signal(number)
    _, err = process.communicate()
    assert process.returncode == code, err
    assert "Traceback" not in err
    assert f"Ended by {number.name}" in err
    assert not (tmp_path / "out" / "dataset.json").exists()
    assert main(command[3:]) == 0


@pytest.mark.parametrize(
    ("arguments", "code", "level"),
    [
        ("compile --target=kubeflow --output=p.yaml --set=epochs=0", 2, "3"),
        ("convert no --output-dir out", 3, "3"),
        ("verify no", 3, "1"),
    ],
)
def test_tensorflow_is_loaded_without_its_noise(arguments, code, level, monkeypatch):
    name = "TF_CPP_MIN_LOG_LEVEL"
    monkeypatch.setenv(name, "")
    monkeypatch.delenv(name)
    assert main(arguments.split()) == code
    assert os.environ[name] == level
    monkeypatch.setenv(name, "0")
    assert main(arguments.split()) == code
    assert os.environ[name] == "0"


def test_every_command_is_a_module_of_its_name():
    modules = {each.name for each in pkgutil.iter_modules(commands.__path__)}
    assert sorted(commands.COMMANDS) == sorted({*modules, *commands.STEP_COMMANDS})
    steps = {each.command.name for each in STEPS.values() if each.command}
    assert steps == {*commands.STEP_COMMANDS}
    assert [*build_parser()._subparsers._group_actions[0].choices] == [*commands.COMMANDS]
    # A command that is given is the only one that is built.
    chosen = build_parser(["submit", "--help"])._subparsers._group_actions[0].choices
    assert [*chosen] == ["submit"]


@pytest.mark.long
@pytest.mark.tensorflow
def test_the_start_of_tensorflow_says_nothing(tmp_path):
    """Of later versions no level of logging keeps it."""
    environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "0"}
    done = _run("train", "--data", "no", "--checkpoint-dir", "ck", cwd=tmp_path, env=environment)
    first, *rest = done.stderr.splitlines()
    assert first.startswith("darkroom: ")
    assert not any(word in "".join(rest) for word in ("oneDNN", "cuda", "absl"))


def test_inspect_writes_a_sheet_and_a_table(jpeg_set, tmp_path, capsys):
    main(["convert", str(jpeg_set.csv), "--output-dir", f"{tmp_path}/out"])
    capsys.readouterr()
    arguments = ["inspect", f"{tmp_path}/out", "--split", "VAL", "-n", "5", "--json"]
    assert main([*arguments, "--output-dir", f"{tmp_path}/look"]) == 0
    found = _json(capsys)
    assert found["records"] == 5
    assert Path(found["sheet"]).read_bytes()[:4] == b"\x89PNG"
    assert len(Path(found["csv"]).read_text().splitlines()) == 6
    assert main([*arguments[:2], "--split", "dve", "--json"]) == 2
    assert "Its splits are train, eval." in _json(capsys)["error"]["hint"]
    assert main(["inspect", f"{tmp_path}", "--json"]) == 1
    assert "no dataset.json" in _json(capsys)["error"]["message"]
    assert main(["inspect", f"{tmp_path}/out", "--list", f"{tmp_path}/all.csv"]) == 2
    assert "all.csv does not end in .jsonl or .ndjson" in capsys.readouterr().err
    assert not (tmp_path / "all.csv").exists()


def test_a_missing_extra_is_one_line(jpeg_set, tmp_path):
    if importlib.util.find_spec("tfx"):
        pytest.skip("tfx is installed")
    done = _run("run", "--data", str(jpeg_set.csv), "--root", f"{tmp_path}/run", "--json")
    assert done.returncode == 3, done.stdout + done.stderr
    error = json.loads(done.stdout)["error"]
    assert error["code"] == "missing-extra"
    assert "make setup" in error["hint"]
    # Only where it can work.
    assert ("pip install 'darkroom-data[tfx]'" in error["hint"]) == (sys.version_info < (3, 12))


def test_a_process_ends_with_what_libraries_register_and_without_taking_them_down(tmp_path):
    program = """
import atexit, sys
from darkroom.cli import main
atexit.register(print, "cleaned up")
class Library:
    def __del__(self):
        print("taken down")
sys.library = Library()
sys.exit(main())
"""
    command = [sys.executable, "-c", program, "verify", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stdout.splitlines()[-1:] == ["cleaned up"]


@pytest.mark.parametrize("command", ["run", "compile", "submit", "convert", "train", "verify"])
def test_help_names_a_page(command, capsys):
    assert main([command, "--help"]) == 0
    (page,) = re.findall(r"More is in (docs/\S+\.md)\.", capsys.readouterr().out)
    assert (Path(__file__).parents[2] / page).is_file()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("train --data . --checkpoint-dir c --epochs 0", "--epochs is 0, expected a whole number"),
        ("convert LIST --output-dir o --jpeg-quality 0", "--jpeg-quality is 0, expected"),
        ("convert LIST --output-dir o --allowed-root none", "--allowed-root: "),
    ],
)
def test_a_wrong_option_is_named_as_it_was_given(jpeg_set, capsys, arguments, said):
    assert main([*arguments.replace("LIST", str(jpeg_set.csv)).split(), "--json"]) == 2
    assert said in _json(capsys)["error"]["message"]


def test_columns_in_another_form_are_told_the_right_one(jpeg_set, capsys):
    arguments = ["convert", str(jpeg_set.csv), "--output-dir", "o"]
    assert main([*arguments, "--columns", '["a"]', "--json"]) == 2
    error = _json(capsys)["error"]
    assert error["message"].startswith("--columns is '[\"a\"]', expected the kind of each column")


def test_excluded_rows_have_a_line_and_unknown_names_a_warning(jpeg_set, tmp_path, capsys):
    (tmp_path / "list.txt").write_text("00.jpg\nnone.jpg\n")
    command = ["convert", str(jpeg_set.csv), "--output-dir", f"{tmp_path}/o"]
    assert main([*command, "--exclude", f"{tmp_path}/list.txt"]) == 0
    out, err = capsys.readouterr()
    assert re.search(r"^Duplicates 0\nExcluded   1$", out, re.MULTILINE), out
    assert "Warning: 1 name in" in err
    assert "not found in the source, as 'none.jpg'." in err


def test_rows_of_one_image_with_other_values_are_refused_or_counted(jpeg_set, tmp_path, capsys):
    lines = jpeg_set.csv.read_text().splitlines()
    rows = [f"{line},box {n}" for n, line in enumerate([*lines[1:], lines[1]])]
    path = jpeg_set.csv.with_name("boxes.csv")
    path.write_text("\n".join([f"{lines[0]},box", *rows]))
    command = ["convert", str(path), "--output-dir", f"{tmp_path}/o"]
    assert main(command) == 1
    assert "--merge-rows first" in capsys.readouterr().err
    assert main([*command, "--merge-rows", "first"]) == 0
    assert "\nDuplicates 1  (1 with other values)\n" in capsys.readouterr().out
    assert main([*command, "--merge-rows", "first", "--json"]) == 0
    assert _json(capsys)["merged"] == 1
