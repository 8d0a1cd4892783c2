"""darkroom beside tools that look for near copies, wrong labels and damage, on one planted set.

    python benchmarks/side_by_side_findings.py --photographs DIR [--environments .venv/finders]
        [--python PYTHON] [--scratch DIR]

Run it by hand: it is not part of `make bench`, because the first run installs each tool into its
own environment (2 GB from the network in all), with the versions of `benchmarks/finders/*.txt`.
DIR has folders of labels. On a busy machine set OPENBLAS_NUM_THREADS=1: threads that wait count
as seconds of processors, too.

`finders/planted.py` plants everything. A cell has what was found of it, and after a slash what else
the tool lists, which is false unless the photographs themselves have it. Each tool has its own
limits. The features that darkroom computes are also those of cleanlab and FiftyOne, whose own
networks need weights from elsewhere; their labels are foretold by scikit-learn's logistic
regression out of fold, as cleanlab's guides ask for.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from finders.others import TOOLS, Answer, measure
from finders.planted import COPIES, DAMAGE, DAMAGED, EACH, WRONG, Planted, plant
from loaders.environments import make_environment

import darkroom
from darkroom.dataset.index import read_index
from darkroom.features.table import read_features
from darkroom.storage.user_cache import CACHE_VARIABLE

_FINDERS = Path(__file__).parent / "finders"
_ODD = {"black": "dark", "blurred": "blurred", "tiny": "tiny"}


def ask_darkroom(records: Path) -> Answer:
    """Returns what the checks of a dataset find; pairs are those that pixels verify."""
    found = darkroom.validate(records).findings
    pairs = [
        [Path(row["uri"]).name, Path(row["other_uri"]).name]
        for each in found
        for row in each.rows
        if each.check.startswith("near_") and "correlation" in row
    ]
    [wrong] = (each for each in found if each.check == "suspect_labels" and each.next_rows)
    marked = [row for each in found if each.check == "quality" for row in each.rows]
    odd = {
        word: [Path(row["uri"]).name for row in marked if name in row["problem"].split(", ")]
        for word, name in _ODD.items()
    }
    ranked = [Path(row["uri"]).name for row in (*wrong.rows, *wrong.next_rows)]
    return {"pairs": pairs, "ranked": ranked, "listed": len(wrong.rows), "odd": odd}


def ask_other(name: str, folder: Path, arguments: argparse.Namespace) -> tuple[Answer, float]:
    """Returns what a tool found in a folder, and its seconds of processors."""
    python = make_environment(_FINDERS / f"{name}.txt", arguments.environments, arguments.python)
    command = [python, _FINDERS / "others.py", name, folder]
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True)
    answers = [line for line in done.stdout.splitlines() if line.startswith("[{")]
    if not answers:
        raise SystemExit(f"{name} failed:\n{done.stderr}")
    answer, _, used = json.loads(answers[-1])
    return answer, used


def save_features(records: Path, planted: Planted, path: Path) -> None:
    """Writes the features of a dataset with names and labels of its images."""
    index = str(records / "index")
    features = read_features(str(records / "features.parquet"), index)
    rows = {row["row"]: row["uri"] for row in read_index(index, ["row", "uri"]).to_pylist()}
    names = [Path(rows[row]).name for row in features.rows.tolist()]
    labels = [planted.labels[name] for name in names]
    np.savez(path, names=names, values=features.values, labels=labels)


def count(answer: Answer, planted: Planted) -> dict[str, str]:
    """Returns the cells of a tool, by what is planted."""
    cells: dict[str, str] = {}
    if "pairs" in answer:
        pairs = {frozenset(pair) for pair in answer["pairs"]}
        true = {frozenset((copy, planted.copies[copy][0])): copy for copy in planted.copies}
        hits = [true[pair] for pair in pairs if pair in true]
        for kind in COPIES:
            cells[kind] = str(sum(planted.copies[copy][1] == kind for copy in hits))
        others = [pair for pair in pairs if pair not in true]
        apart = sum(len({planted.splits[name] for name in pair}) == 2 for pair in others)
        cells["all copies"] = f"{len(hits)} / {len(others)}"
        cells["leaks"] = f"{sum(map(planted.is_leak, hits))} / {apart}"
    if "ranked" in answer:
        is_wrong = [name in planted.wrong for name in answer["ranked"]]
        cells[f"wrong labels, first {WRONG}"] = f"{sum(is_wrong[:WRONG])}"
        if "listed" in answer:
            hit = sum(is_wrong[: answer["listed"]])
            cells["wrong labels, listed"] = f"{hit} / {answer['listed'] - hit}"
    for word, names in answer.get("odd", {}).items():
        hit = sum(planted.damaged.get(name) == word for name in names)
        cells[word] = f"{hit} / {len(names) - hit}"
    return cells


def compare(arguments: argparse.Namespace, scratch: Path) -> dict[str, dict[str, str]]:
    """Returns the cells of each tool."""
    source, records = scratch / "source", scratch / "records"
    source.mkdir()
    # Nothing is known from earlier runs.
    os.environ[CACHE_VARIABLE] = str(scratch / "cache")
    planted = plant(arguments.photographs, source)
    leaks = sum(map(planted.is_leak, planted.copies))
    numbers = dict.fromkeys(COPIES, EACH) | {"all copies": len(planted.copies), "leaks": leaks}
    numbers |= {f"wrong labels, first {WRONG}": WRONG, "wrong labels, listed": len(planted.wrong)}
    columns: dict[str, dict[str, Any]] = {
        "planted": {**numbers, **dict.fromkeys(DAMAGE, DAMAGED)},
    }
    _, _, converted = measure(lambda: darkroom.convert(planted.listed, records))
    _, _, embedded = measure(lambda: darkroom.embed(records))
    answer, _, used = measure(lambda: ask_darkroom(records))
    seconds = f"{converted:.0f} + {embedded:.0f} + {used:.0f}"
    columns["darkroom"] = count(answer, planted) | {"seconds of processors": seconds}
    save_features(records, planted, source / "features.npz")
    for name in TOOLS:
        answer, used = ask_other(name, source, arguments)
        columns[name] = count(answer, planted) | {"seconds of processors": f"{used:.0f}"}
    return columns


def main() -> None:
    """Plants, asks all tools, and prints the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--photographs", type=Path, required=True, help="folders of JPEGs by label")
    parser.add_argument("--environments", type=Path, default=Path(".venv/finders"))
    parser.add_argument("--python", default=sys.executable, help="for the environments")
    parser.add_argument("--scratch", default=None, help="folder for the images")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=arguments.scratch) as scratch:
        columns = compare(arguments, Path(scratch))
    print(f"| | {' | '.join(columns)} |")
    print(f"| --- |{' ---: |' * len(columns)}")
    for row in (*columns["planted"], "seconds of processors"):
        print(f"| {row} | {' | '.join(str(each.get(row, '')) for each in columns.values())} |")


if __name__ == "__main__":
    main()
