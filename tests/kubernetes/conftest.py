"""The manifests of kubernetes/, read as plain YAML, and the pods that they create."""

from __future__ import annotations

import copy
import re
import shutil
import subprocess
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

yaml = pytest.importorskip("yaml")

FOLDER = Path(__file__).parents[2] / "kubernetes"
SETTINGS = {
    "DATA": "gs://my-bucket/images.csv",
    "ROOT": "gs://my-bucket/pipelines",
    "PUSH_TO": "gs://my-bucket/pushed",
    "POD_IP": "10.0.0.1",
    "POD_NAME": "darkroom-input-1",
}


@dataclass(frozen=True)
class Pod:
    """A pod of a workload: the workload's kind and name, the pod's labels and spec."""

    kind: str
    name: str
    labels: dict[str, str]
    spec: dict[str, Any]

    def __str__(self) -> str:
        return f"{self.kind}/{self.name}"

    @property
    def is_served(self) -> bool:
        """Whether it runs until someone ends it."""
        return self.kind in ("Deployment", "StatefulSet", "InferenceService")

    def expand(self, container: dict[str, Any], **values: str) -> tuple[list[str], dict[str, str]]:
        """Returns command and environment of a container as Kubernetes combines them.

        An environment variable sees those before it; an unknown one stays as it is.
        """
        environment = {"KFP_HOST": "http://ml-pipeline.kubeflow:8888", **SETTINGS, **values}

        def replace(text: str) -> str:
            return re.sub(r"\$\((\w+)\)", lambda m: environment.get(m[1], m[0]), text)

        for each in container.get("env", []):
            if "value" in each:
                environment[each["name"]] = replace(each["value"])
        command = [*container.get("command", []), *container.get("args", [])]
        return [replace(each) for each in command], environment


def read_objects(*patterns: str) -> list[dict[str, Any]]:
    """Reads all Kubernetes objects of the files that match below kubernetes/."""
    paths = sorted(path for pattern in patterns for path in FOLDER.glob(pattern))
    every = [each for path in paths for each in yaml.safe_load_all(path.read_text())]
    return [each for each in every if "apiVersion" in each and "metadata" in each]


def make_pods(objects: list[dict[str, Any]]) -> Iterator[Pod]:
    """Yields the pods of all workloads, including those that operators create."""
    kinds = {each["kind"]: each for each in objects}
    for each in objects:
        kind, name, spec = each["kind"], each["metadata"]["name"], each.get("spec", {})
        if kind in ("Job", "Deployment", "StatefulSet"):
            template = spec["template"]
        elif kind == "TrainJob" and spec["runtimeRef"]["kind"] == "ClusterTrainingRuntime":
            template = _make_torch_template(each, objects)
        elif kind == "TrainJob":
            runtime = kinds["TrainingRuntime"]["spec"]["template"]["spec"]
            template = copy.deepcopy(
                runtime["replicatedJobs"][0]["template"]["spec"]["template"],
            )
            template["spec"]["containers"][0] |= {
                key: spec["trainer"][key] for key in ("args", "env")
            }
        elif kind == "InferenceService":
            runtime = kinds["ServingRuntime"]["spec"]
            predictor = spec["predictor"]
            template = {"metadata": predictor, "spec": {**runtime, **predictor}}
        else:
            continue
        yield Pod(kind, name, template["metadata"]["labels"], template["spec"])


def _make_torch_template(job: dict[str, Any], objects: list[dict[str, Any]]) -> dict[str, Any]:
    """Returns the pod of a TrainJob whose runtime, torch-distributed, has an image alone."""
    [patch], trainer = job["spec"]["runtimePatches"], job["spec"]["trainer"]
    [node] = patch["trainingRuntimeSpec"]["template"]["spec"]["replicatedJobs"]
    template = copy.deepcopy(node["template"]["spec"]["template"])
    [container] = template["spec"]["containers"]
    container |= {key: trainer[key] for key in ("image", "command", "args")}
    container["resources"] = trainer["resourcesPerNode"]
    [account] = [
        each
        for each in objects
        if (each["kind"], each["metadata"]["name"])
        == ("ServiceAccount", template["spec"]["serviceAccountName"])
    ]
    # A pod that does not say it has the account's.
    key = "automountServiceAccountToken"
    return {**template, "spec": {key: account[key], **template["spec"]}}


# What each overlay is tried with besides what it has.
CHOSEN = {
    "gke": ("serving", "nightly", "registry", "cpu-limits"),
    "kfp-store": ("serving", "trainer", "cpu-limits"),
    "s3": ("serving",),
}


def list_choices(kustomization: str) -> dict[str, str]:
    """Returns the lines of an overlay that offer a component, by its name."""
    found = re.finditer(r"^  # - (\.\./\.\./components/([a-z-]+)).*\n", kustomization, re.M)
    return {each[2]: each[0] for each in found}


def render(overlay: str, folder: Path | None = None) -> str:
    """Returns what kubectl makes of an overlay of `folder`, or of kubernetes/."""
    done = subprocess.run(
        ["kubectl", "kustomize", str((folder or FOLDER) / "overlays" / overlay)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def render_with_choices(overlay: str, components: Iterable[str], folder: Path) -> str:
    """Returns what kubectl makes of an overlay in whose copy somebody chose components."""
    shutil.copytree(FOLDER, folder)
    path = folder / "overlays" / overlay / "kustomization.yaml"
    text = path.read_text()
    for name, line in list_choices(text).items():
        if name in components:
            text = text.replace(line, line.replace("# -", "-"))
    if "trainer" in components:
        text = text.replace("  - ../../components/training\n", "")
    path.write_text(text)
    return render(overlay, folder)


@pytest.fixture(scope="session")
def objects() -> list[dict[str, Any]]:
    """The objects of the base and of every component."""
    return read_objects("base/*.yaml", "components/*/*.yaml")


@pytest.fixture(scope="session")
def pods(objects) -> list[Pod]:
    """The pods of the base and of every component."""
    return list(make_pods(objects))
