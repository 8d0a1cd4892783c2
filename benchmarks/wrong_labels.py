"""How many wrong labels are found among the images of a dataset that has features.

    python benchmarks/wrong_labels.py RECORDS [--seeds 12] [--splits 100]

3, 5 and 10 % of the labels are changed at random. `first 2k`: which share of the k changed ones is
among the first 2k of the ranking; `AUROC` of the ranking; `right`: the share of the changed ones
for which the label before is the most likely; `listed`: how many the check lists, and which share
of these was changed. The labels of the dataset itself have errors, which count as false here. With
cleanlab in the environment, its ranking of the same probabilities, and of those of the head of
scikit-learn, is beside it. Then random splits: how far `drift` is from finding any.
"""

from __future__ import annotations

import argparse
import importlib.util
import time
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

from darkroom.dataset.index import list_index_files
from darkroom.features.table import read_features
from darkroom.targets.suspects import find_suspecting
from darkroom.validation.drift import tell_apart
from darkroom.validation.foretold import NUM_FOLDS, compare_looks, foretell


def _measure_auroc(doubt: np.ndarray, changed: np.ndarray) -> float:
    others = np.sort(doubt[~changed])
    return float(np.searchsorted(others, doubt[changed]).mean() / len(others))


def _score_by_cleanlab(values: np.ndarray, given: np.ndarray, told: np.ndarray) -> dict[str, tuple]:
    """Returns the scores of cleanlab, and the most likely classes, by the way they were made."""
    if importlib.util.find_spec("cleanlab") is None:
        return {}
    from cleanlab.rank import get_label_quality_scores
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import cross_val_predict
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    head = make_pipeline(StandardScaler(), LogisticRegression(C=0.02, max_iter=1000))
    own = cross_val_predict(head, values, given, cv=NUM_FOLDS, method="predict_proba")
    return {
        f"cleanlab, {name}": (get_label_quality_scores(given, each), each.argmax(1))
        for name, each in (("same", told.astype(float)), ("its head", own))
    }


def main() -> None:
    """Prints the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("records", type=Path)
    parser.add_argument("--seeds", type=int, default=12)
    parser.add_argument("--splits", type=int, default=100)
    arguments = parser.parse_args()
    index = str(arguments.records / "index")
    features = read_features(str(arguments.records / "features.parquet"), index)
    if features is None:
        parser.error(f"{arguments.records} has no features.parquet")
    tables = [pq.read_table(path, columns=["row", "label"]) for path in list_index_files(index)]
    labels = {row["row"]: row["label"] for table in tables for row in table.to_pylist()}
    names, true = np.unique([labels[row] for row in features.rows.tolist()], return_inverse=True)
    started = time.process_time()
    looks = compare_looks(features.values, np.arange(len(true)))
    suspecting = find_suspecting("label")
    print(
        f"{len(true):,} images, {len(names)} labels; {time.process_time() - started:.1f} s of CPU"
    )
    print("changed  ranking             first 2k  AUROC  right  listed, changed of these")
    for share in (0.0, 0.03, 0.05, 0.1):
        found: dict[str, list[tuple[float, ...]]] = {}
        for seed in range(arguments.seeds):
            random = np.random.default_rng(seed)
            count = round(share * len(true))
            places = random.choice(len(true), count, replace=False)
            given = true.copy()
            given[places] = (true[places] + random.integers(1, len(names), count)) % len(names)
            changed = np.isin(np.arange(len(true)), places)
            known = suspecting.encode(given, names)
            told = foretell(looks, known, suspecting)
            listed = suspecting.judge(known, told, given, names).images
            rankings = {"darkroom": (told[np.arange(len(true)), given], told.argmax(1))}
            rankings |= _score_by_cleanlab(features.values, given, told) if count else {}
            for name, (score, likely) in rankings.items():
                first = changed[np.argsort(score, kind="stable")[: 2 * count]].sum()
                numbers = (
                    first / max(count, 1),
                    _measure_auroc(-score, changed) if count else 0.0,
                    (likely == true)[places].mean() if count else 0.0,
                    len(listed) if name == "darkroom" else 0,
                    changed[listed].mean() if name == "darkroom" and len(listed) else 0,
                )
                found.setdefault(name, []).append(numbers)
        for name, rows in found.items():
            top, auroc, right, number, hit = np.mean(rows, 0)
            print(
                f"{share:>7.0%}  {name:18}  {top:8.3f}  {auroc:.3f}  {right:.3f}  "
                f"{number:6.1f}, {hit:.2f}"
            )
    random, num_found = np.random.default_rng(0), 0
    for number in range(arguments.splits):
        is_side = random.random(len(true)) < (0.1, 0.2, 0.5)[number % 3]
        num_found += bool(tell_apart(looks, is_side, ~is_side))
    print(f"drift by features in {num_found} of {arguments.splits} random splits")


if __name__ == "__main__":
    main()
