"""The model registries of Kubeflow and Vertex on loopback, as far as a registration needs them.

Kubeflow's answers as its server 0.3.8 did, and Vertex's as Google's reference says.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from darkroom.evaluation.report.facts import EVALUATION_FILE, Facts, encode_evaluation
from darkroom.evaluation.report.result import Evaluation
from darkroom.targets.label.metrics import measure

from ..pipelines.kubeflow_server import Server

FINGERPRINT, SHA256 = "2b72" * 16, "f00d" * 16
VERSION = "sha256-f00df00df00d"
FACTS = {"score": 0.5, "test_accuracy": 0.5, "dataset_fingerprint": FINGERPRINT, "sha256": SHA256}


def write_evaluation(folder: Path) -> None:
    """Writes the numbers of a model that finds one of two records."""
    metrics = measure(np.array([[1.0, 0.0]] * 2), np.array([0, 1]), ["cat", "dog"])
    facts = Facts(data={"train": [{"name": "pets", "fingerprint": FINGERPRINT, "records": 2}]})
    folder.mkdir(parents=True, exist_ok=True)
    content = encode_evaluation(Evaluation("m", SHA256, "test", metrics), facts)
    (folder / EVALUATION_FILE).write_bytes(content)


@dataclass
class Registry(Server):
    """Both registries: what was made in Kubeflow's, by path, and the uploads to Vertex's."""

    interface: str = "v1alpha3"
    made: dict[tuple[str, str, str], dict[str, Any]] = field(default_factory=dict)
    uploads: list[dict[str, Any]] = field(default_factory=list)
    known: set[str] = field(default_factory=set)

    def answer(self, method: str, path: str, query: dict[str, str], body: Any) -> Any:
        """Returns the answer to a request; a LookupError is 404, a FileExistsError 409."""
        if path.startswith("/vertex/"):
            return self._answer_as_vertex(path.removeprefix("/vertex/"), body)
        if not path.startswith(f"/api/model_registry/{self.interface}/"):
            raise LookupError(path)
        *parents, last = path.split("/")[4:]
        kind = last.rpartition("_")[2].removesuffix("s")
        if method == "GET":
            key = kind, query.get("parentResourceId", ""), query.get("name", "")
            return {"items": []} if last.endswith("s") else self.made[key]
        key = kind, parents[1] if parents else body.get("registeredModelId", ""), body["name"]
        if key in self.made:
            raise FileExistsError
        return self.made.setdefault(key, {**body, "id": f"{len(self.made) + 1}"})

    def _answer_as_vertex(self, path: str, body: Any) -> Any:
        if body is None and path not in self.known:
            raise LookupError(path)
        if body is not None:
            self.uploads.append(body)
            name = f"{path.removesuffix(':upload')}/{body['model']['displayName']}"
            self.known |= {"operations/1", name, f"{name}@{body['model']['versionAliases'][0]}"}
        return {"name": "operations/1", "done": body is None}
