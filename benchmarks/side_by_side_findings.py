"""darkroom beside tools that find near copies and wrong labels.

    python benchmarks/side_by_side_findings.py --photographs DIR [--images 300] [--seeds 12]
        [--environments .venv/finders] [--python PYTHON]

Run it by hand: it is not part of `make bench`, because the first run installs each tool into its
own environment (some GB from the network in all), with the versions of `benchmarks/finders/*.txt`.
DIR has folders of labels. On a busy machine set OPENBLAS_NUM_THREADS=1: threads that wait count
as seconds of processors, too.

Copies: all photographs, and eight edits of some, are one folder, as in near_copies.py. The table
has the share of the edits that are a pair with their original; the pairs of two photographs as
they are, and all pairs with images of two photographs, which are false unless these are copies; and
the seconds from files to pairs. darkroom writes its records and verifies pixels in these.
imagehash's hashes are compared within 8 of 64 bits; the others have their own limits. imagededup's
`CNN` needs weights from the network, so its search is tried with the features of darkroom.

Labels: 3, 5 and 10 % are changed at random, as in wrong_labels.py, and judged on the features that
darkroom stores. `guide` is scikit-learn's logistic regression out of fold, as cleanlab's guides ask
for; `tuned` has darkroom's penalty; `same` takes the probabilities of darkroom.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from finders.others import TOOLS, measure
from loaders.environments import make_environment
from near_copies import EDITS, count_found, find_by_darkroom, list_photographs, write_edits
from wrong_labels import change_labels, foretell_labels, measure_ranking, read_labelled

import darkroom
from darkroom.dataset.index import read_index
from darkroom.features.table import read_features
from darkroom.validation.foretold import compare_looks

_FINDERS = Path(__file__).parent / "finders"
_SHARES = (0.03, 0.05, 0.1)
Times = tuple[float, float]


def run_other(name: str, folder: Path, arguments: argparse.Namespace) -> tuple[Any, float, float]:
    """Returns what a tool found in a folder, its seconds, and those of processors."""
    pins = _FINDERS / f"{name.partition(',')[0]}.txt"
    python = make_environment(pins, arguments.environments, arguments.python)
    command = [python, _FINDERS / "others.py", name, folder]
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{name} failed:\n{done.stderr}")
    return json.loads(done.stdout.splitlines()[-1])


def show_copies(name: str, pairs: Iterable[Any], times: Times, num_edited: int) -> None:
    """Prints a row of the table of copies, and the first pairs of two photographs."""
    known = {tuple(sorted(Path(image).stem for image in pair)) for pair in pairs}
    shares, others = count_found(known, num_edited)
    plain = [pair for pair in others if not pair[0][1] and not pair[1][1]]
    cells = " | ".join(f"{share:.3f}" for share in (*shares, np.mean(shares)))
    print(
        f"| {name} | {cells} | {len(plain)} | {len(others)} | {times[0]:.1f} | {times[1]:.1f} |",
        flush=True,
    )


def compare_copies(arguments: argparse.Namespace, scratch: Path) -> None:
    """Prints the table of copies."""
    files, num_edited = list_photographs(arguments.photographs), arguments.images
    source, records = scratch / "source", scratch / "copies"
    source.mkdir()
    listed = write_edits(files, num_edited, source)
    print(f"{len(files):,} photographs, {num_edited:,} edited")
    print(f"| tool | {' | '.join(EDITS)} | mean | plain | of two | s | processors, s |")
    spent = np.zeros(2)
    for name, prepare in (
        ("darkroom, hashes", lambda: darkroom.convert(listed, records)),
        ("darkroom, features", lambda: darkroom.embed(records)),
    ):
        spent += measure(prepare)[1:]
        pairs, *times = measure(lambda: find_by_darkroom(records, str(scratch)))
        verified = [pair for pair, correlation in pairs.items() if correlation]
        show_copies(name, verified, tuple(spent + times), num_edited)
        print(f"    {len(pairs) - len(verified)} pairs that are not verified")
    save_features(records, source / "features.npz")
    for name in TOOLS:
        if not name.startswith("cleanlab"):
            pairs, *times = run_other(name, source, arguments)
            show_copies(name, pairs, tuple(times), num_edited)


def save_features(records: Path, path: Path) -> None:
    """Writes the features of a dataset with the names of its images."""
    index = str(records / "index")
    features = read_features(str(records / "features.parquet"), index)
    rows = read_index(index, ["row", "uri"]).to_pylist()
    names = {row["row"]: Path(row["uri"]).name for row in rows}
    np.savez(path, names=[names[row] for row in features.rows.tolist()], values=features.values)


def compare_labels(arguments: argparse.Namespace, scratch: Path) -> None:
    """Prints the table of labels: means of all seeds."""
    records = scratch / "labels"
    darkroom.convert(str(arguments.photographs), records)
    darkroom.embed(records)
    values, names, true = read_labelled(records)
    cases = [(share, seed) for share in _SHARES for seed in range(arguments.seeds)]
    given, changed = zip(*(change_labels(true, *case) for case in cases), strict=True)

    def foretell() -> list[tuple[np.ndarray, np.ndarray]]:
        looks = compare_looks(values, np.arange(len(true)))
        return [foretell_labels(looks, each, names) for each in given]

    own, *times = measure(foretell)
    told = np.stack([each for each, _ in own]).astype(float)
    np.savez(scratch / "labels.npz", values=values, given=np.stack(given), told=told)
    rankings = [
        (each[np.arange(len(true)), labels], each.argmax(1), listed)
        for (each, listed), labels in zip(own, given, strict=True)
    ]
    show_labels("darkroom", rankings, (true, changed), times)
    for name in TOOLS:
        if name.startswith("cleanlab"):
            files, *times = run_other(name, scratch, arguments)
            saved = [np.load(scratch / file) for file in files]
            rankings = [(each["score"], each["likely"], each["listed"]) for each in saved]
            show_labels(name, rankings, (true, changed), times)


def show_labels(name: str, rankings: list[Any], labels: tuple[Any, Any], times: Any) -> None:
    """Prints the rows of a tool in the table of labels, one for each share that was changed."""
    true, changed = labels
    rows = [
        measure_ranking(*each, true, is_changed)
        for each, is_changed in zip(rankings, changed, strict=True)
    ]
    means = np.mean(np.reshape(rows, (len(_SHARES), -1, len(rows[0]))), axis=1)
    seconds = " | ".join(f"{each / len(rows):.2f}" for each in times)
    for share, (top, auroc, right, number, hit) in zip(_SHARES, means, strict=True):
        cells = f"{top:.3f} | {auroc:.3f} | {right:.3f} | {number:.1f} | {hit:.2f}"
        print(f"| {name} | {share:.0%} | {cells} | {seconds} |", flush=True)


def main() -> None:
    """Makes the images, and prints both tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--photographs", type=Path, required=True, help="folders of JPEGs by label")
    parser.add_argument("--images", type=int, default=300, help="photographs that are edited")
    parser.add_argument("--seeds", type=int, default=12, help="times that labels are changed")
    parser.add_argument("--environments", type=Path, default=Path(".venv/finders"))
    parser.add_argument("--python", default=sys.executable, help="for the environments")
    parser.add_argument("--scratch", default=None, help="folder for the images")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=arguments.scratch) as scratch:
        compare_copies(arguments, Path(scratch))
        compare_labels(arguments, Path(scratch))


if __name__ == "__main__":
    main()
