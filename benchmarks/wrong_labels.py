"""How many wrong labels are found among the images of a dataset that has features.

    python benchmarks/wrong_labels.py RECORDS [--seeds 12] [--splits 100]
    python benchmarks/wrong_labels.py --photographs DIR

3, 5 and 10 % of the labels are changed at random. `first 2k`: which share of the k changed ones is
among the first 2k of the ranking; `AUROC` of the ranking; `right`: the share of the changed ones
for which the label before is the most likely; `listed`: how many the check lists, and which share
of these was changed. The labels of the dataset itself have errors, which count as false here. Then
random splits: how far `drift` is from finding any.

With `--photographs`, folders of labels, 40 wrong labels are planted beside near copies and damage
(`finders/planted.py`), by four seeds: how many of them are the first 40 that `validate` ranks, how
many it lists, and how many of those are planted. Each image is labelled on its own, or a copy has
the label of its original, also a wrong one.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

import numpy as np
from finders.planted import WRONG, Planted, plant

import darkroom
from darkroom.dataset.index import read_index
from darkroom.features.table import read_features
from darkroom.targets.suspects import find_suspecting
from darkroom.validation.drift import tell_apart
from darkroom.validation.foretold import Looks, compare_looks, foretell


def _measure_auroc(doubt: np.ndarray, changed: np.ndarray) -> float:
    others = np.sort(doubt[~changed])
    return float(np.searchsorted(others, doubt[changed]).mean() / len(others))


def read_labelled(records: Path) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Returns the features of a dataset, float32 [images, values], its labels, and their numbers.

    Raises:
        SystemExit: The dataset has no features.
    """
    index = str(records / "index")
    features = read_features(str(records / "features.parquet"), index)
    if features is None:
        raise SystemExit(f"{records} has no features.parquet")
    labels = {row["row"]: row["label"] for row in read_index(index, ["row", "label"]).to_pylist()}
    names, true = np.unique([labels[row] for row in features.rows.tolist()], return_inverse=True)
    return features.values, names, true


def change_labels(true: np.ndarray, share: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Returns the labels with some of them changed at random, and which were."""
    random = np.random.default_rng(seed)
    count = round(share * len(true))
    places = random.choice(len(true), count, replace=False)
    given, num_labels = true.copy(), true.max() + 1
    given[places] = (true[places] + random.integers(1, num_labels, count)) % num_labels
    return given, np.isin(np.arange(len(true)), places)


def foretell_labels(
    looks: Looks, given: np.ndarray, names: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Returns the probability of each label, by darkroom, and the images that it lists."""
    suspecting = find_suspecting("label")
    known = suspecting.encode(given, names)
    told = foretell(looks, known, suspecting)
    return told, suspecting.judge(known, told, given, names).images


def measure_ranking(
    score: np.ndarray, likely: np.ndarray, listed: np.ndarray, true: np.ndarray, changed: np.ndarray
) -> tuple[float, ...]:
    """Returns the numbers of the table for scores that are low where a label seems wrong."""
    count = changed.sum()
    first = changed[np.argsort(score, kind="stable")[: 2 * count]].sum()
    return (
        first / max(count, 1),
        _measure_auroc(-score, changed) if count else 0.0,
        (likely == true)[changed].mean() if count else 0.0,
        len(listed),
        changed[listed].mean() if len(listed) else 0.0,
    )


def rank_planted(result: darkroom.ValidationResult, planted: Planted) -> tuple[list[bool], int]:
    """Returns which ranked images have a planted wrong label, and how many the check lists."""
    found = [each for each in result.findings if each.check == "suspect_labels" and each.next_rows]
    ranked = [row for each in found for row in (*each.rows, *each.next_rows)]
    names = (Path(row["uri"]).name for row in ranked)
    return [name in planted.wrong for name in names], sum(len(each.rows) for each in found)


def measure_planted(photographs: Path) -> None:
    """Prints how many planted wrong labels are among the first, and among those that are listed."""
    print(f"{WRONG} wrong labels planted: seed, in the first {WRONG}, listed, planted of these")
    for copies_follow in (False, True):
        print("a copy has the label of its original" if copies_follow else "each image on its own")
        for seed in range(4):
            with tempfile.TemporaryDirectory() as scratch:
                source, records = Path(scratch, "source"), Path(scratch, "records")
                source.mkdir()
                planted = plant(photographs, source, seed, copies_follow)
                darkroom.convert(planted.listed, records)
                darkroom.embed(records)
                hits, listed = rank_planted(darkroom.validate(records), planted)
            print(f"{seed:4} {sum(hits[:WRONG]):4} {listed:4} {sum(hits[:listed]):4}", flush=True)


def main() -> None:
    """Prints the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("records", type=Path, nargs="?")
    parser.add_argument("--photographs", type=Path, help="folders of JPEGs by label")
    parser.add_argument("--seeds", type=int, default=12)
    parser.add_argument("--splits", type=int, default=100)
    arguments = parser.parse_args()
    if arguments.photographs:
        measure_planted(arguments.photographs)
    if not arguments.records:
        return
    values, names, true = read_labelled(arguments.records)
    started = time.process_time()
    looks = compare_looks(values, np.arange(len(true)))
    print(
        f"{len(true):,} images, {len(names)} labels; {time.process_time() - started:.1f} s of CPU"
    )
    print("changed  first 2k  AUROC  right  listed, changed of these")
    for share in (0.0, 0.03, 0.05, 0.1):
        rows = []
        for seed in range(arguments.seeds):
            given, changed = change_labels(true, share, seed)
            told, listed = foretell_labels(looks, given, names)
            score = told[np.arange(len(true)), given]
            rows.append(measure_ranking(score, told.argmax(1), listed, true, changed))
        top, auroc, right, number, hit = np.mean(rows, 0)
        print(f"{share:>7.0%}  {top:8.3f}  {auroc:.3f}  {right:.3f}  {number:6.1f}, {hit:.2f}")
    random, num_found = np.random.default_rng(0), 0
    for number in range(arguments.splits):
        is_side = random.random(len(true)) < (0.1, 0.2, 0.5)[number % 3]
        num_found += bool(tell_apart(looks, is_side, ~is_side, np.arange(len(true))))
    print(f"drift by features in {num_found} of {arguments.splits} random splits")


if __name__ == "__main__":
    main()
