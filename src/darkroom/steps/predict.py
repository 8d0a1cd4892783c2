"""Predicts what new images are labelled with, by an exported model."""

from __future__ import annotations

from darkroom.steps import parts
from darkroom.steps.places import name_place
from darkroom.steps.step import Artifact, Given, Made, Parameter, Paths, Step


def run(paths: Paths, options: Given) -> Made:
    """Lists what new images are labelled with; a task replaces the list of a first try."""
    from darkroom.evaluation.predict import predict

    path = paths["predictions"]
    found = predict(paths["model"], options["images"], path, overwrite=True)
    numbers = {"predicted": len(found.predictions), "failed": len(found.failed)}
    uri = {"predictions_uri": name_place(path)}
    return Made(found, numbers, {"predictions": numbers}, results=uri)


STEP = Step(
    "predict_images",
    "Predicts what new images are labelled with, by an exported model, as a server would answer.",
    run,
    (
        Parameter(
            "images",
            list,
            "Images, folders of them, or patterns, in a store or a volume. KFP's cache compares "
            "these texts, not the images.",
        ),
    ),
    inputs=(parts.MODEL,),
    outputs=(
        Artifact(
            "predictions",
            "Dataset",
            "predictions.jsonl, a list for convert_images and darkroom gallery --predictions.",
            file="predictions.jsonl",
        ),
        parts.name_page("prediction", "Predictions"),
        parts.name_metrics("prediction"),
    ),
    results=(
        Parameter("predictions_uri", str, "Where the list is."),
        Parameter("predicted", int, "Images in it."),
        Parameter("failed", int, "Images that a conversion would reject; the page names ten."),
    ),
    needs_tensorflow=True,
)
