"""What a conversion by a runner of Beam is compared with, and its client."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.pictures import write_label_folders
from tests.trees import read_files

from darkroom.conversion.convert import convert

from .pool import kill_group

# Ends what hangs; nothing here takes as long.
LIMIT_SECONDS = 300


@pytest.fixture(scope="session")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of 200 images in two classes."""
    folder = tmp_path_factory.mktemp("images") / "src"
    write_label_folders(folder, 100)
    return folder


@pytest.fixture(scope="session")
def local(source: Path) -> dict[str, bytes]:
    """What a run on this machine writes."""
    convert(source, source.parent / "local", num_shards=4)
    files = read_files(source.parent / "local")
    assert {"dataset.json", "SHA256SUMS", "labels.txt"} <= files.keys()
    return files


@contextmanager
def start_client(
    source: Path, output: Path, runner: str, options: Mapping[str, object]
) -> Iterator[subprocess.Popen[str]]:
    """Starts `darkroom convert` by a runner; what is left of it ends with the block."""
    client = subprocess.Popen(
        [
            *(sys.executable, "-m", "darkroom.cli", "convert", str(source)),
            *("--output-dir", str(output), "--num-shards", "4", "--runner", runner),
            *(f"--beam-option={name}={value}" for name, value in options.items()),
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        # A shell that runs tests in the background may ignore it.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    try:
        yield client
    finally:
        kill_group(client)


def finish(client: subprocess.Popen[str]) -> tuple[int, str]:
    """Returns the exit code of a client and what it said on the terminal."""
    _, said = client.communicate(timeout=LIMIT_SECONDS)
    return client.returncode, said
