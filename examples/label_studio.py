"""Labels corrected in Label Studio: tasks out of a dataset, and decisions back.

    python examples/label_studio.py tasks records tasks.json
    python examples/label_studio.py saved export.json saved.json
    darkroom convert images.csv --output-dir records --update --decisions saved.json

Import `tasks.json` into a project with the configuration below, which shows the label as a
prediction, and export it as JSON. Label Studio serves files of its own machine when it is started
with LOCAL_FILES_SERVING_ENABLED=true and LOCAL_FILES_DOCUMENT_ROOT=/, both with the prefix
LABEL_STUDIO_. Images in stores need a source storage in the project.

    <View>
      <Image name="image" value="$image"/>
      <Choices name="label" toName="image"> <Choice value="cat"/> <Choice value="dog"/> </Choices>
    </View>

With any number of labels an image, the tag is <Choices ... choice="multiple">, and the second
command has a further word, `several`.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pyarrow as pa
import pyarrow.parquet as pq


def make_tasks(records: Path) -> list[dict[str, Any]]:
    """Returns a task for each image of a dataset, in the order of its index."""
    fingerprint = json.loads((records / "dataset.json").read_text())["fingerprint"]
    files = sorted((records / "index").iterdir())
    tables = [pq.read_table(file, columns=["uri", "label"]) for file in files]
    tasks = []
    for place, row in enumerate(pa.concat_tables(tables).to_pylist()):
        uri, label = row["uri"], row["label"] or []
        url = f"/data/local-files/?d={quote(uri[1:])}" if uri.startswith("/") else uri
        choices = [label] if isinstance(label, str) else label
        result = {"from_name": "label", "to_name": "image", "type": "choices"}
        result["value"] = {"choices": choices}
        data = {"image": url, "labels": choices, "place": place, "dataset": fingerprint}
        predictions = [{"model_version": "list", "result": [result]}] if choices else []
        tasks.append({"data": data, "predictions": predictions})
    return tasks


def find_corrections(exported: list[dict[str, Any]], *, several: bool = False) -> dict[str, Any]:
    """Returns what the gallery would save: the labels that a person gave, where they are others.

    Args:
        exported: The content of the file that Label Studio exports as JSON.
        several: Whether an image has any number of labels.
    """
    decisions = []
    for task in exported:
        done = [each for each in task["annotations"] if not each.get("was_cancelled")]
        if not done:
            continue
        results = done[-1]["result"]
        choices = [label for each in results for label in each["value"].get("choices", ())]
        if sorted(choices) != sorted(task["data"]["labels"]) and (choices or several):
            label = choices if several else choices[0]
            place = task["data"]["place"]
            decisions.append({"action": "relabel", "label": label, "places": [place]})
    datasets = {task["data"]["dataset"] for task in exported}
    if len(datasets) != 1:
        raise SystemExit(f"The tasks are of {len(datasets)} datasets: export those of one.")
    return {"form": "darkroom decisions 1", "dataset": datasets.pop(), "decisions": decisions}


if __name__ == "__main__":
    step, source, target, *several = sys.argv[1:]
    if step == "tasks":
        made: Any = make_tasks(Path(source))
    else:
        made = find_corrections(json.loads(Path(source).read_text()), several=bool(several))
    Path(target).write_text(json.dumps(made, indent=1))
