"""Prints SHA-256, label and split of each record of the index, as `load_dataset` reads it."""

import json
import sys

from datasets import load_dataset

for split, rows in load_dataset(sys.argv[1]).items():
    for row in rows:
        print(json.dumps([row["sha256"], row["label"], split]))
