"""Parts of several steps: what they take and make, and flags of their commands."""

from __future__ import annotations

from darkroom.steps.command import flag
from darkroom.steps.step import Artifact, Parameter

DATASET = Artifact(
    "dataset",
    "Dataset",
    "The dataset that convert_images made; or give dataset_uri.",
    optional=True,
)
MODEL = Artifact("model", "Model", "The model that train_classifier made.")
RESULTS = Artifact(
    "results",
    "Artifact",
    "Results of a detector as a file of JSON, as pycocotools takes it; a folder with it in "
    "results.json, and labels.txt if classes are its lines; or a folder of label files of "
    "ultralytics with scores.",
)
DETECTOR_ANNOTATIONS = Artifact(
    "annotations",
    "Artifact",
    "The JSON of COCO that the detector had, by whose ids the results name images and classes; or "
    "labels.txt, whose lines are classes. Without it, they are the ids of the list that was "
    "converted, or else images have the names of their files, and class n is the nth label.",
    optional=True,
)
FAIL_PARAMETER = Parameter(
    "fail",
    bool,
    "Whether the task fails when it does not pass. KFP keeps no artifact of a failed task.",
    default=True,
)
PASSED = Parameter("passed", bool, "Whether it passed, for dsl.If.")
SCORES = (
    Parameter(
        "score",
        float,
        "Accuracy, mean average precision, or mean R² of numbers. Of the split that was named, or "
        "of test, or without one of eval.",
    ),
    Parameter("accuracy", float, "The accuracy; -1 unless images have one label."),
)

REPORT_HELP = "Folder for report.html, report.md and report.json (default: no report is written)"
DATASET_FLAG = flag("dataset", metavar="DIR", help="A dataset; gs:// and s3:// work")
RESULTS_FLAG = flag(
    "--results",
    group="data",
    metavar="FILE",
    help="Results of a detector: COCO's JSON, a folder with it in results.json, or one of label "
    "files of ultralytics with scores; never pickles",
)
ANNOTATIONS_FLAG = flag(
    "--annotations",
    group="data",
    metavar="FILE",
    action="once",
    help="The JSON of COCO that the detector had, whose ids of images and classes the results "
    "have, or labels.txt, whose lines are classes (default: ids of the list that was converted, or "
    "names of files and the nth label)",
)
OVERWRITE_FLAG = flag(
    "--overwrite", action="store_true", default=False, help="Replace a file that exists"
)


def name_uri(name: str) -> Parameter:
    """Returns the parameter that names a dataset in the place of an artifact."""
    return Parameter(
        f"{name}_uri",
        str,
        "Where the dataset is, instead of the artifact. Nothing is then copied before the task "
        "starts. With # and its fingerprint at the end, another dataset there is an error.",
        "",
    )


DATASET_URI = name_uri("dataset")


# A UI shows the name of an artifact alone, so it says whose page it is.
def name_page(what: str, title: str = "", file: str = "") -> Artifact:
    """Returns an output for a page; with a title it shows the result of the step."""
    return Artifact(f"{what}_page", "HTML", "A page for people.", file=file, title=title)


def name_metrics(what: str) -> Artifact:
    """Returns an output for numbers."""
    return Artifact(f"{what}_metrics", "Metrics", "Numbers by name.")
