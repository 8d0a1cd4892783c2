"""What other tools find, each in its own environment, which has no darkroom.

    python others.py NAME FOLDER

FOLDER has images, or labels in `labels.npz`. The last line of the output is JSON: what was found,
the seconds without imports, and those of processors.
"""

from __future__ import annotations

import importlib
import json
import resource
import sys
import time
from collections.abc import Callable
from functools import partial
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

# Bits of 64 within which two hashes of imagehash are a pair here: it has no limit of its own.
_MOST_BITS = 8


def measure(call: Callable[[], Any]) -> tuple[Any, float, float]:
    """Returns what a call returns, its seconds, and the seconds of processors with children."""
    kinds = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    used = [sum(resource.getrusage(kind)[:2]) for kind in kinds]
    started = time.perf_counter()
    result = call()
    seconds = time.perf_counter() - started
    return result, seconds, sum(sum(resource.getrusage(kind)[:2]) for kind in kinds) - sum(used)


def _find_by_imagehash(folder: Path, name: str) -> list[list[str]]:
    import imagehash
    from PIL import Image

    paths = sorted(folder.glob("*.jpg"))
    hashes = [getattr(imagehash, name)(Image.open(path)).hash.ravel() for path in paths]
    signs = np.where(np.stack(hashes), 1, -1).astype(np.float32)
    differences = (signs.shape[1] - signs @ signs.T) / 2
    near = np.argwhere(np.triu(differences <= _MOST_BITS, 1)).tolist()
    return [[paths[place].name for place in pair] for pair in near]


def _find_by_imagededup(folder: Path) -> list[list[str]]:
    from imagededup.methods import PHash

    found = PHash(verbose=False).find_duplicates(image_dir=str(folder))
    return [[one, other] for one, others in found.items() for other in others]


def _find_by_cosine(folder: Path) -> list[list[str]]:
    """The search of imagededup's `CNN` on given features: its weights come from the network."""
    import torch
    from imagededup.methods import CNN
    from imagededup.utils import CustomModel

    loaded = np.load(folder / "features.npz")
    features = dict(zip(loaded["names"].tolist(), loaded["values"], strict=True))
    model = CustomModel("given", torch.nn.Identity(), np.asarray)
    found = CNN(verbose=False, model_config=model).find_duplicates(encoding_map=features)
    return [[one, other] for one, others in found.items() for other in others]


def _find_by_cleanvision(folder: Path) -> list[list[str]]:
    from cleanvision import Imagelab

    lab = Imagelab(data_path=str(folder))
    kinds = ("exact_duplicates", "near_duplicates")
    lab.find_issues({kind: {} for kind in kinds}, verbose=False)
    sets = [each for kind in kinds for each in lab.info[kind]["sets"]]
    return [[Path(path).name for path in pair] for each in sets for pair in combinations(each, 2)]


def _score_by_cleanlab(folder: Path, head: str) -> list[str]:
    """Adds scores, likely labels and listed images of all rows of labels to the folder.

    Args:
        folder: Has `labels.npz` with `values` [N, D], `given` [K, N] and `told` [K, N, labels].
        head: `guide`, as cleanlab's guides make probabilities; `tuned` for darkroom's penalty;
            `same` takes `told`.
    """
    from cleanlab.filter import find_label_issues
    from cleanlab.rank import get_label_quality_scores
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import cross_val_predict
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    heads = {
        "guide": LogisticRegression(max_iter=400),
        "tuned": make_pipeline(StandardScaler(), LogisticRegression(C=0.02, max_iter=1000)),
    }
    loaded = np.load(folder / "labels.npz")
    names = []
    for number, (given, told) in enumerate(zip(loaded["given"], loaded["told"], strict=True)):
        if head in heads:
            told = cross_val_predict(
                heads[head], loaded["values"], given, cv=5, method="predict_proba"
            )
        names.append(f"{head}-{number}.npz")
        np.savez(
            folder / names[-1],
            score=get_label_quality_scores(given, told),
            likely=told.argmax(1),
            listed=np.flatnonzero(find_label_issues(given, told)),
        )
    return names


# Each tool's module, and what it does.
TOOLS: dict[str, tuple[str, Callable[[Path], Any]]] = {
    "imagehash, phash": ("imagehash", partial(_find_by_imagehash, name="phash")),
    "imagehash, dhash": ("imagehash", partial(_find_by_imagehash, name="dhash")),
    "imagededup, PHash": ("imagededup.methods", _find_by_imagededup),
    "imagededup, cosine": ("imagededup.methods", _find_by_cosine),
    "cleanvision": ("cleanvision", _find_by_cleanvision),
    "cleanlab, its guide": ("cleanlab.filter", partial(_score_by_cleanlab, head="guide")),
    "cleanlab, tuned": ("cleanlab.filter", partial(_score_by_cleanlab, head="tuned")),
    "cleanlab, same": ("cleanlab.filter", partial(_score_by_cleanlab, head="same")),
}


def main() -> None:
    """Runs a tool, and prints what it found."""
    module, find = TOOLS[sys.argv[1]]
    importlib.import_module(module)
    print(json.dumps(measure(lambda: find(Path(sys.argv[2])))))


if __name__ == "__main__":
    main()
