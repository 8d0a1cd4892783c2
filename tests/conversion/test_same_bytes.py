"""Equal data gives equal bytes, whatever else differs: every way to run times every surrounding."""

import itertools
import os
import random
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from darkroom.conversion.convert import convert

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


@pytest.mark.slow
def test_a_portable_runner_writes_the_same_bytes(images, tmp_path):
    """As Flink and Spark do it: workers get a serialised job, and find the manifest by its path."""
    options = {"max_rejects": 0.5, "num_shards": 5}
    convert(images.csv, tmp_path / "local", **options)
    convert(
        images.csv,
        tmp_path / "portable",
        runner="PortableRunner",
        beam_options={"job_endpoint": "embed", "environment_type": "LOOPBACK"},
        **options,
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
