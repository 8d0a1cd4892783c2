"""Registers a model in the model registry of Kubeflow or Vertex."""

from __future__ import annotations

from darkroom.options.pipeline import check_registry
from darkroom.steps import parts
from darkroom.steps.places import name_place
from darkroom.steps.step import Artifact, Given, Made, Parameter, Paths, Step


def run(paths: Paths, options: Given) -> Made:
    """Registers a model, with what is known of it."""
    # Other tasks run where requests is not installed.
    from darkroom.steps.registry import register_version

    named = {"uri": name_place(paths["model"]), "page": name_place(paths["page"])}
    registry, name, run = options["registry"], options["model_name"], options["run"]
    version = register_version(registry, name, paths["model"], **named, run=run)
    return Made(version, results={"version": version})


STEP = Step(
    "register_model",
    "Registers a model in the model registry of Kubeflow or Vertex, with what it was made from.",
    run,
    (
        Parameter(
            "registry", str, "Address of the registry: https://HOST, or vertex://PROJECT/REGION."
        ),
        Parameter("model_name", str, "Name of the model in the registry."),
        Parameter("run", str, "Id of the run, as dsl.PIPELINE_JOB_ID_PLACEHOLDER.", ""),
    ),
    inputs=(
        parts.MODEL,
        Artifact("page", "HTML", "The page of train_classifier or evaluate_classifier."),
    ),
    results=(Parameter("version", str, "Name of the version; empty if the registry is down."),),
    checks=(check_registry,),
)
