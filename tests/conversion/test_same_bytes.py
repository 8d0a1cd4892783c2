"""Equal data gives equal bytes, whatever else differs: every way to run times every surrounding."""

import hashlib
import itertools
import json
import os
import random
import shutil
import signal
import struct
import subprocess
import sys
import time
import zlib
from contextlib import suppress
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from PIL import Image

from darkroom.conversion.convert import convert
from darkroom.dataset.checksums import read_sums
from darkroom.options.conversion import ConversionOptions
from darkroom.proof.verify import verify

from ..pictures import write_label_folders

pytestmark = pytest.mark.usefixtures("decoder_process")

# Processes with workers of their own take seconds to start; so not each with every surrounding.
WORKERS = (
    *itertools.product(("in_memory", "multi_threading"), (1, 2, 4)),
    ("multi_processing", 2),
    ("multi_processing", 4),
)
SURROUNDINGS = {
    "as it is": {},
    "hash seed 77": {"PYTHONHASHSEED": "77"},
    "locale C": {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
    "locale tr_TR": {"LC_ALL": "tr_TR.UTF-8", "LANG": "tr_TR.UTF-8"},
    "time zone of Kolkata": {"TZ": "Asia/Kolkata"},
    "time zone of Marquesas": {"TZ": "Pacific/Marquesas"},
    "rows shuffled": {},
    "folder moved": {},
}

# The command, whose decoder stops a process when it gets a marked image; 0 are all of the command.
PAUSED = """
from darkroom.cli.program import main
from darkroom.runtime import child
pause = '''
import os, signal
from darkroom.images import sandbox_child
real = sandbox_child.prepare_image
def prepare(data, *rest):
    if data.endswith(b"PAUSE"): os.kill({who}, signal.SIGSTOP)
    return real(data, *rest)
sandbox_child.prepare_image = prepare
'''
child.PROGRAM = child.PROGRAM.replace("importlib.im", pause + "importlib.im")
raise SystemExit(main())
"""


@pytest.fixture
def images(faulty_set):
    """Images with faults, and some that are encoded again."""
    rng = np.random.default_rng(3)
    for number in range(6):
        pixels = Image.fromarray(rng.integers(0, 256, (20, 30, 3), np.uint8))
        mode, suffix = (("CMYK", "jpg"), ("P", "png"), ("RGB", "webp"))[number % 3]
        pixels.convert(mode).save(faulty_set.folder / f"again{number}.{suffix}")
        faulty_set.add("TRAIN", f"again{number}.{suffix}", "dog", None)
    return faulty_set


def _read_dataset(folder: Path) -> dict[str, bytes]:
    """Returns shards, labels and commit; the index and the rejects name places and rows."""
    paths = [*folder.glob("Split-*/*"), folder / "labels.txt", folder / "dataset.json"]
    return {str(path.relative_to(folder)): path.read_bytes() for path in paths}


def _surround(name: str, images, folder: Path) -> Path:
    """Returns the source for a surrounding."""
    if name not in ("rows shuffled", "folder moved"):
        return images.csv
    shutil.copytree(images.folder, folder / "moved")
    source = folder / "moved" / images.csv.name
    if name == "rows shuffled":
        lines = source.read_text().splitlines()
        head = lines[:1] if "image_uri" in lines[0] else []
        rows = lines[len(head) :]
        random.Random(name).shuffle(rows)
        source.write_text("\n".join([*head, *rows, ""]))
    return source


def _run(source: Path, output: Path, mode: str, workers: int, variables: dict[str, str]) -> None:
    command = [sys.executable, "-m", "darkroom.cli", "convert", source, "--output-dir", output]
    command += ["--max-rejects", "0.5", "--num-shards", "5"]
    command += ["--beam-option", f"direct_running_mode={mode}"]
    command += ["--beam-option", f"direct_num_workers={workers}"]
    done = subprocess.run(
        list(map(str, command)), env={**os.environ, **variables}, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


def _write_png(path: Path, seed: int) -> None:
    """Writes an image whose bytes depend on no version of Pillow or zlib."""
    height, width = 4, 5
    row = b"\0" + bytes((seed + n) % 256 for n in range(3 * width))
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    parts = [(b"IHDR", header), (b"IDAT", zlib.compress(row * height, 0)), (b"IEND", b"")]
    data = [
        struct.pack(">I", len(part)) + name + part + struct.pack(">I", zlib.crc32(name + part))
        for name, part in parts
    ]
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + b"".join(data))


def test_the_commit_is_the_same_whatever_writes_the_files_beside_the_shards(tmp_path, monkeypatch):
    """Another order of rows, another folder, and another form of Parquet, as of other versions."""
    (tmp_path / "a").mkdir()
    lines = [f"TRAIN,{number}.png,{'cat' if number % 3 else 'dog'}" for number in range(7)]
    lines.append("TRAIN,gone.png,cat")
    for number in range(7):
        _write_png(tmp_path / "a" / f"{number}.png", 9 * number)
    (tmp_path / "a" / "list.csv").write_text("\n".join(["split,image_uri,label", *lines]))
    shutil.copytree(tmp_path / "a", tmp_path / "b")
    (tmp_path / "b" / "list.csv").write_text("\n".join(["split,image_uri,label", *lines[::-1]]))
    options = {"num_shards": 2, "max_rejects": 1}
    convert(tmp_path / "a" / "list.csv", tmp_path / "one", **options)
    writer = pq.ParquetWriter

    class OtherWriter(writer):
        def __init__(self, where, schema, **rest):
            super().__init__(where, schema, **{"compression": "gzip", **rest})

    monkeypatch.setattr(pq, "ParquetWriter", OtherWriter)
    convert(tmp_path / "b" / "list.csv", tmp_path / "two", **options)
    monkeypatch.undo()

    paths = (tmp_path / name / "dataset.json" for name in ("one", "two"))
    one, two = (json.loads(path.read_text()) for path in paths)
    assert one == two
    assert one["files"].keys() == {
        *("index/index-00000-of-00002.parquet", "index/index-00001-of-00002.parquet"),
        *("labels.txt", "rejects.jsonl", "rejects.parquet"),
    }
    assert [one["files"][name]["rows"] for name in sorted(one["files"])] == [3, 4, 2, 1, 1]
    assert verify(tmp_path / "one").is_sound
    assert verify(tmp_path / "two").is_sound
    sums = [read_sums(f"{tmp_path}/{name}") for name in ("one", "two")]
    assert {name for name in sums[0] if sums[0][name] != sums[1][name]} == {
        *(name for name in one["files"] if name.startswith("index")),
        *("rejects.jsonl", "rejects.parquet"),
    }
    # The same on every line of TFX, with every version of pyarrow: all but the codecs' versions.
    del one["fingerprint"], one["options"]
    text = json.dumps(one, sort_keys=True)
    assert (
        hashlib.sha256(text.encode()).hexdigest()
        == "ddc7954d5d2ccc2c7ab09a13a900c895d5abe93c7e5ba6332fda2c8e0101552f"
    )


@pytest.mark.long
def test_a_portable_runner_writes_the_same_bytes(images, tmp_path):
    """As Flink and Spark do it: workers get a serialised job, and find the manifest by its path."""
    options = {"max_rejects": 0.5, "num_shards": 5}
    convert(images.csv, tmp_path / "local", **options)
    convert(
        images.csv,
        tmp_path / "portable",
        runner="PortableRunner",
        **options,
        options=ConversionOptions(
            beam_options={"job_endpoint": "embed", "environment_type": "LOOPBACK"}
        ),
    )
    assert _read_dataset(tmp_path / "portable") == _read_dataset(tmp_path / "local")
    assert not (tmp_path / "portable" / ".attempt").exists()


@pytest.mark.long
def test_every_way_to_run_writes_the_same_bytes(images, tmp_path, capsys):
    runs = [("in_memory", 1, name) for name in SURROUNDINGS]
    runs += [("multi_threading", 2, name) for name in SURROUNDINGS]
    runs += [("multi_processing", 2, name) for name in SURROUNDINGS]
    runs += [(mode, workers, "as it is") for mode, workers in WORKERS]
    expected: dict[str, bytes] = {}
    counts: dict[str, int] = {}
    for mode, workers, name in dict.fromkeys(runs):
        folder = tmp_path / f"{mode}-{workers}-{name}"
        folder.mkdir()
        _run(_surround(name, images, folder), folder / "out", mode, workers, SURROUNDINGS[name])
        found = _read_dataset(folder / "out")
        expected = expected or found
        assert found == expected, (mode, workers, name)
        for each in (f"{mode}, {workers}", name):
            counts[each] = counts.get(each, 0) + 1
    assert sum("data_tfrecord" in name for name in expected) >= 10
    with capsys.disabled():
        print()
        for each, count in counts.items():
            print(f"{each:<28}{count:>4} runs, all {len(expected)} files equal")


def _is_stopped(session: int) -> bool:
    """Tells whether a process of a session is stopped."""
    for file in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            fields = file.read_text().rpartition(")")[2].split()
            if fields[0] == "T" and int(fields[3]) == session:
                return True
    return False


@pytest.mark.long
@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
def test_a_pause_changes_no_byte(tmp_path):
    write_label_folders(tmp_path / "images", 12)
    with (tmp_path / "images" / "cat" / "5.png").open("ab") as file:
        file.write(b"PAUSE")
    convert(tmp_path / "images", tmp_path / "whole")
    runs = {}
    for name, who in {"one decoder": "os.getpid()", "all processes": "0"}.items():
        command = [sys.executable, "-c", PAUSED.format(who=who), "convert", tmp_path / "images"]
        command += ["--output-dir", tmp_path / name]
        runs[name] = subprocess.Popen(command, start_new_session=True)
    for run in runs.values():
        while not _is_stopped(run.pid):
            assert run.poll() is None
            time.sleep(0.005)
    # One that does nothing is given up after half a minute, and the next one as well.
    time.sleep(70)
    for name, run in runs.items():
        os.killpg(run.pid, signal.SIGCONT)
        assert run.wait(60) == 0
        assert _read_dataset(tmp_path / name) == _read_dataset(tmp_path / "whole")
