"""Prints SHA-256, label and split of each record of the index, as mlcroissant reads it."""

import json
import sys

import mlcroissant

dataset = mlcroissant.Dataset(jsonld=f"{sys.argv[1]}/croissant.json")
assert not dataset.metadata.ctx.issues.errors


def simplify(value):
    """Returns texts, which are bytes there, and arrays as JSON has them."""
    return value.decode() if isinstance(value, bytes) else value.tolist()


for row in dataset.records("records"):
    values = [row[f"records/{name}"] for name in ("sha256", "label", "split")]
    print(json.dumps(values, default=simplify))
splits = [row["splits/name"] for row in dataset.records("splits")]
assert splits == ["train", "test"], splits
