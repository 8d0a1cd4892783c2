"""darkroom in Jupyter and IPython, with the newest packages and without those that are optional."""

from __future__ import annotations

import ast
import csv
import json
from collections import Counter
from pathlib import Path

import pytest
from PIL import Image

import darkroom
from darkroom.dataset import commit as datasets
from darkroom.dataset.example import decode_example
from darkroom.dataset.tfrecord import read_records

BOTH = pytest.mark.parametrize("environment", ["newest", "bare"])
FRONTS = pytest.mark.parametrize("front", ["notebook", "ipython"])
CONVERT = """
import darkroom
result = darkroom.convert("images.csv", "records")
print(result.rows, result.written, dict(result.splits))
"""
FRAME = """
import darkroom
import pandas as pd
df = pd.read_csv("images.csv")
result = df.tensorflow.to_tfrecord(output_dir="records")
print(result.rows, result.written, dict(result.splits))
"""
COUNTS = "23 23 {'train': 18, 'eval': 5}\n"


def read_files(folder: Path) -> dict[str, bytes]:
    """Returns all files of a dataset but those that say what its source was."""
    sources = {"index", "read-as.json", "SHA256SUMS"}
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not {path.name, path.parent.name} & sources
    }


def read_labels(folder: Path) -> dict[str, Counter[str]]:
    """Returns the labels of a dataset's records by split."""
    return {
        name: Counter(
            decode_example(record)["image/class/text"][0].decode()
            for shard in split.shards
            for record in read_records(str(folder / shard.file))
        )
        for name, split in datasets.read_dataset(str(folder)).splits.items()
        if split.records
    }


@FRONTS
@pytest.mark.parametrize(
    ("environment", "code"), [("newest", CONVERT), ("bare", CONVERT), ("newest", FRAME)]
)
def test_a_conversion_writes_the_same_bytes_as_elsewhere(request, environment, front, code, images):
    cell = request.getfixturevalue(front)(code)
    assert (cell.out, cell.err, cell.trace) == (COUNTS, "", [])
    folder = images.parent
    assert read_labels(folder / "records") == {
        "train": Counter(cat=6, dog=6, owl=6),
        "eval": Counter(cat=2, dog=2, owl=1),
    }
    darkroom.convert(images, folder / "elsewhere")
    assert read_files(folder / "records") == read_files(folder / "elsewhere")
    # Beam removes its folder everywhere but in notebooks.
    assert list((folder / "tmp").glob("beam-pipeline*")) == []


@BOTH
def test_a_dataset_is_verified_and_inspected(notebook, images):
    assert notebook(CONVERT).out == COUNTS
    cell = notebook('result = darkroom.verify("records"); print(result.findings, result.records)')
    assert (cell.out, cell.err) == ("() 23\n", "")

    cell = notebook('darkroom.inspect("records", n=18)')
    folder = images.parent / "inspection"
    assert (cell.err, cell.trace) == ("", [])
    assert "data:image/png;base64," in cell.page
    assert cell.value == (
        f"Inspection(sheet='{folder}/contact-sheet.png', csv='{folder}/records.csv', records=18)"
    )
    with Image.open(folder / "contact-sheet.png") as sheet:
        assert sheet.width > sheet.height / 2 > 100
    with (folder / "records.csv").open(newline="", encoding="utf-8") as file:
        table = list(csv.DictReader(file))
    assert Counter(row["image/class/text"] for row in table) == Counter(cat=6, dog=6, owl=6)

    cell = notebook("darkroom.validate('records')")
    assert (cell.err, cell.trace) == ("", [])
    assert "in the source: 23 written" in cell.page
    cell = notebook('found = darkroom.find_duplicates("records"); print(found.bytes_groups, found)')
    assert (cell.out.split()[0], cell.err) == ("1", "")
    assert (images.parent / "duplicates.parquet").exists()


def test_a_dataset_is_loaded(notebook, images):
    assert notebook(CONVERT).out == COUNTS
    cell = notebook(
        "import json\n"
        'data = darkroom.load("records", image_size=(12, 10), batch_size=4, training=True)\n'
        "batches = [(x.numpy(), y.numpy()) for x, y in data['eval']]\n"
        "print(json.dumps([[int(x.sum()) for x in xs] for xs, _ in batches]))\n"
        "print(json.dumps([int(y) for _, ys in batches for y in ys]))\n"
        "print(json.dumps([list(x.shape) for x, _ in data['train']]))"
    )
    assert cell.trace == []
    assert not any(word in cell.err for word in ("apitools", "apache_beam", "Beam"))
    sums, labels, shapes = map(json.loads, cell.out.splitlines()[-3:])
    assert Counter(labels) == Counter({0: 2, 1: 2, 2: 1})
    assert sum(shape[0] for shape in shapes) == 18
    assert {tuple(shape[1:]) for shape in shapes} == {(12, 10, 3)}
    # Records are in random order. Images that keep their bytes also keep their pixels.
    found = [value for batch in sums for value in batch]
    expected = []
    for number in (7, 19):  # the PNGs of the eval split
        with Image.open(images.parent / f"images/{number:02d}.png") as image:
            expected.append(sum(image.tobytes()))
    assert len(found) == 5
    assert set(expected) <= set(found)


@BOTH
def test_an_error_says_what_is_wrong_and_what_to_do(notebook, images):
    with images.open("a", encoding="utf-8") as file:
        file.write("TRAIN,images/none.png,cat\n")
    cell = notebook('import darkroom\ndarkroom.convert("images.csv", "records", max_rejects=0)')
    assert any(
        line.startswith("TooManyRejectsError: 1 of 24 rows was rejected") for line in cell.trace
    )
    assert any("max_rejects (--max-rejects)" in line for line in cell.trace)
    cell = notebook('darkroom.verify("records").findings')
    assert "has not finished: run it again" in cell.value


@BOTH
def test_other_threads_and_a_running_event_loop_convert_too(notebook, images):
    cell = notebook(
        "import asyncio, darkroom\n"
        "run = lambda folder: asyncio.to_thread(darkroom.convert, 'images.csv', folder)\n"
        "results = await asyncio.gather(run('a'), run('b'))\n"
        "print([result.written for result in results])"
    )
    assert not cell.trace, "\n".join(cell.trace)
    assert (cell.out, cell.err) == ("[23, 23]\n", "")
    folder = images.parent
    assert read_files(folder / "a") == read_files(folder / "b")


@BOTH
def test_a_conversion_has_one_line_of_progress(notebook, images):
    cell = notebook("import darkroom\ndarkroom.convert('images.csv', 'records')")
    (line,) = cell.shown
    assert line.startswith("Converting done in ")
    assert ", 23 rows " in line
    assert "Converted: 23 records" in cell.page
    assert (cell.out, cell.err) == ("", "")


def test_the_options_of_a_conversion_and_of_load_are_completed(notebook):
    cell = notebook(
        "import darkroom, pandas\nframe = pandas.DataFrame()\n"
        "lines = ['frame.tensorflow.to_tfrecord(max_', 'darkroom.load(image_s']\n"
        "kernel = get_ipython().kernel\n"
        "[kernel.do_complete(line, len(line))['matches'] for line in lines]"
    )
    assert ast.literal_eval(cell.value) == [["max_rejects="], ["image_size="]]
