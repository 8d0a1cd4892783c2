"""Finds images that are in a dataset more than once."""

from __future__ import annotations

from darkroom.steps import parts
from darkroom.steps.command import Command, flag
from darkroom.steps.step import Artifact, Given, Made, Parameter, Paths, Step


def run(paths: Paths, options: Given) -> Made:
    """Writes the list; a task replaces that of a first try."""
    from darkroom.audit.duplicates import find_duplicates
    from darkroom.steps.places import name_place

    path = paths["duplicates"]
    found = find_duplicates(paths["dataset"], path, **{"overwrite": True, **options})
    numbers = {name: value for name, value in found.to_dict().items() if type(value) is int}
    uri = {"duplicates_uri": name_place(path)}
    return Made(found, numbers, {"duplicates": numbers}, results=uri)


STEP = Step(
    "find_duplicates",
    "Finds images that are in a dataset more than once.",
    run,
    (
        parts.DATASET_URI,
        Parameter("near", bool, "Also group images that look alike, for groups=.", False),
    ),
    inputs=(parts.DATASET,),
    outputs=(
        Artifact(
            "duplicates",
            "Dataset",
            "duplicates.parquet, a list for convert_images(exclude=).",
            file="duplicates.parquet",
        ),
        parts.name_page("duplicates", "Duplicates"),
        parts.name_metrics("duplicates"),
    ),
    results=(
        Parameter("duplicates_uri", str, "Where the list is."),
        Parameter("surplus", int, "Images to leave out."),
    ),
    command=Command(
        "duplicates",
        "List images that a dataset contains twice, by bytes and by pixels.",
        (
            parts.DATASET_FLAG,
            flag(
                "--output",
                dest="duplicates",
                metavar="FILE",
                default="duplicates.parquet",
                help="Parquet file for the list (default: duplicates.parquet)",
            ),
            flag(
                "--near",
                action="store_true",
                default=False,
                help="List images that look alike, too; all of them are kept",
            ),
            parts.OVERWRITE_FLAG,
        ),
        page="guides/duplicates",
    ),
)
