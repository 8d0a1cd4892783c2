"""Standard streams that are closed, full or read by nobody change neither work nor exit code."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from tests.pictures import write_label_folders


def run(arguments: str, streams: str, folder: Path) -> subprocess.CompletedProcess[str]:
    # Bash has the exit code of the first command of a pipe.
    command = f"{sys.executable} -m darkroom.cli {arguments} {streams}; exit ${{PIPESTATUS[0]}}"
    return subprocess.run(
        ["bash", "-c", command], cwd=folder, capture_output=True, text=True, check=False
    )


def test_a_conversion_is_done(tmp_path):
    write_label_folders(tmp_path / "photos", 1)
    done = run("convert photos --output-dir out", ">&- 2>&- <&-", tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert (tmp_path / "out/dataset.json").is_file()


@pytest.mark.parametrize(
    ("arguments", "streams", "code"),
    [
        ("--version", ">&-", 0),
        ("verify . --json", "2>&-", 1),
        ("verify . --json", ">/dev/full", 1),
        ("verify . --json", "2>&1 | true", 1),
    ],
)
def test_the_exit_code_is_that_of_the_command(arguments, streams, code, tmp_path):
    (tmp_path / "dataset.json").write_text("{}")
    done = run(arguments, streams, tmp_path)
    assert done.returncode == code
    lost = "Standard output cannot be written: No space left on device.\n"
    assert done.stderr == (lost if streams == ">/dev/full" else "")
    if streams == "2>&-" and "--json" in arguments:
        assert json.loads(done.stdout)["error"]["code"] == "data"


def test_a_log_may_take_the_output_of_what_nobody_reads(tmp_path):
    program = (
        "from darkroom.runtime import streams; streams.secure_streams()\n"
        "with streams.redirect_output('log') as out:\n"
        "    print('to the log'); print('progress', file=out); out.flush()"
    )
    for streams in (">&-", ">/dev/full"):
        command = f'{sys.executable} -c "$0" {streams}; exit ${{PIPESTATUS[0]}}'
        done = subprocess.run(["bash", "-c", command, program], cwd=tmp_path, check=False)
        assert done.returncode == 0
        assert (tmp_path / "log").read_text() == "to the log\n"
