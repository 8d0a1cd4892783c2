"""Prints what somebody decided about the faults of the demo, in the folder `images`."""

import hashlib
import json
from pathlib import Path

from darkroom.dataset.keys import make_key
from darkroom.pipelines.local import demo

copies = [(each, {"action": "drop"}) for each in (demo.LEAKED, demo.RELABELLED, *demo.NEAR_COPIES)]
wrong = [
    (each, {"action": "relabel", "label": each.path.split("/")[1]}) for each in demo.WRONG_LABELS
]
for fault, decision in copies + wrong:
    sha256 = hashlib.sha256(Path("images", fault.path).read_bytes()).hexdigest()
    print(json.dumps({**decision, "key": make_key(fault.path), "sha256": sha256}))
