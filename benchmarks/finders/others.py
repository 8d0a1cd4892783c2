"""What other tools find, each in its own environment, which has no darkroom.

    python others.py NAME FOLDER

FOLDER has images, and `features.npz` with the `names` of their files, `values` [N, D] and `labels`.
A line of the output is a list in JSON: an `Answer`, the seconds without imports, and those of
processors.
"""

from __future__ import annotations

import importlib
import json
import os
import resource
import sys
import time
from collections.abc import Callable
from itertools import combinations
from pathlib import Path
from typing import Any, TypedDict

import numpy as np


class Answer(TypedDict, total=False):
    """What a tool found, by names of files; it lacks what the tool does not look for.

    Attributes:
        pairs: Images that are near copies.
        ranked: Images by how wrong their label seems, the worst first.
        listed: How many of these the tool calls wrong; absent where it has no limit.
        odd: Images that are black, blurred or tiny, by that word.
    """

    pairs: list[list[str]]
    ranked: list[str]
    listed: int
    odd: dict[str, list[str]]


def measure(call: Callable[[], Any]) -> tuple[Any, float, float]:
    """Returns what a call returns, its seconds, and the seconds of processors with children."""
    kinds = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    used = [sum(resource.getrusage(kind)[:2]) for kind in kinds]
    started = time.perf_counter()
    result = call()
    seconds = time.perf_counter() - started
    return result, seconds, sum(sum(resource.getrusage(kind)[:2]) for kind in kinds) - sum(used)


def _foretell(values: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Returns probabilities out of fold, as cleanlab's guides make them, [N, labels]."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import cross_val_predict

    head = LogisticRegression(max_iter=400)
    return cross_val_predict(head, values, labels, cv=5, method="predict_proba")


def _ask_cleanvision(folder: Path) -> Answer:
    from cleanvision import Imagelab

    lab = Imagelab(data_path=str(folder))
    lab.find_issues(verbose=False)
    kinds = ("exact_duplicates", "near_duplicates")
    sets = [each for kind in kinds for each in lab.info[kind]["sets"]]
    pairs = [[Path(path).name for path in pair] for each in sets for pair in combinations(each, 2)]
    odd = {}
    for word, issue in (("black", "dark"), ("blurred", "blurry"), ("tiny", "odd_size")):
        marked = lab.issues[lab.issues[f"is_{issue}_issue"]]
        odd[word] = [Path(path).name for path in marked.index]
    return {"pairs": pairs, "odd": odd}


def _ask_cleanlab(folder: Path) -> Answer:
    from cleanlab import Datalab

    loaded = np.load(folder / "features.npz")
    names, values = loaded["names"].tolist(), loaded["values"]
    lab = Datalab({"label": loaded["labels"].tolist()}, label_name="label", verbosity=0)
    told = _foretell(values, loaded["labels"])
    lab.find_issues(
        features=values, pred_probs=told, issue_types={"label": {}, "near_duplicate": {}}
    )
    labels = lab.get_issues("label")
    sets = lab.get_info("near_duplicate")["near_duplicate_sets"]
    order = np.argsort(labels["label_score"].to_numpy(), kind="stable")
    # Those that it lists come first, as in its report.
    order = sorted(order.tolist(), key=lambda place: not labels["is_label_issue"][place])
    return {
        "pairs": [[names[one], names[other]] for one, near in enumerate(sets) for other in near],
        "ranked": [names[place] for place in order],
        "listed": int(labels["is_label_issue"].sum()),
    }


def _ask_fiftyone(folder: Path) -> Answer:
    import fiftyone as fo
    import fiftyone.brain as fob

    loaded = np.load(folder / "features.npz")
    names, values = loaded["names"].tolist(), loaded["values"]
    known, told = np.unique(loaded["labels"]), _foretell(values, loaded["labels"])
    data = fo.Dataset()
    samples = []
    for name, label, each in zip(names, loaded["labels"].tolist(), told, strict=True):
        sample = fo.Sample(filepath=str(folder / name), label=fo.Classification(label=label))
        likely = str(known[each.argmax()])
        sample["told"] = fo.Classification(
            label=likely, confidence=float(each.max()), logits=np.log(each + 1e-9)
        )
        samples.append(sample)
    data.add_samples(samples)
    fob.compute_mistakenness(data, "told", label_field="label")
    found = fob.compute_near_duplicates(data, embeddings=values)
    file_of = {sample.id: Path(sample.filepath).name for sample in data}
    return {
        "pairs": [
            [file_of[one], file_of[other]]
            for one, near in found.neighbors_map.items()
            for other, _ in near
        ],
        "ranked": [
            Path(sample.filepath).name for sample in data.sort_by("mistakenness", reverse=True)
        ],
    }


# Each tool's module, and what it does.
TOOLS: dict[str, tuple[str, Callable[[Path], Answer]]] = {
    "cleanvision": ("cleanvision", _ask_cleanvision),
    "cleanlab": ("cleanlab", _ask_cleanlab),
    "fiftyone": ("fiftyone.brain", _ask_fiftyone),
}


def main() -> None:
    """Runs a tool, and prints what it found."""
    (module, ask), folder = TOOLS[sys.argv[1]], Path(sys.argv[2])
    os.environ["FIFTYONE_DATABASE_DIR"] = str(folder.with_name("database"))
    os.environ["FIFTYONE_DO_NOT_TRACK"] = "true"
    importlib.import_module(module)
    print(f"\n{json.dumps(measure(lambda: ask(folder)))}", flush=True)


if __name__ == "__main__":
    main()
