"""Prints what somebody decided in the gallery: `1` at each pair, `t` at each wrong label."""

import hashlib
import json
from pathlib import Path

from darkroom.dataset.keys import make_key
from darkroom.pipelines.local import demo

PAIRS = ("leakage", "label_conflicts", "near_leakage")

decided = {
    each.path: {"action": "relabel", "label": each.path.split("/")[1]} for each in demo.WRONG_LABELS
}
for finding in json.loads(Path("report/report.json").read_text())["findings"]:
    for row in finding["rows"] if finding["check"] in PAIRS else ():
        # The image that is held out is on the left.
        is_left = row["other_split"] != "eval" or row["split"] == "eval"
        path = Path(row["other_uri" if is_left else "uri"]).relative_to(Path("images").resolve())
        decided[str(path)] = {"action": "drop"}
for path, decision in decided.items():
    sha256 = hashlib.sha256(Path("images", path).read_bytes()).hexdigest()
    print(json.dumps({**decision, "key": make_key(path), "sha256": sha256}))
