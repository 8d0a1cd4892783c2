"""The interface of each component, its inputs and outputs, told once.

KFP's components, their YAML files, the page of the reference and the tasks are made from it. Its
options are fields of the options classes, so it loads neither kfp nor TensorFlow.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from darkroom.errors import UsageError
from darkroom.kfp.interface import (
    ARTIFACT_TYPE,
    DATASET_TYPE,
    HTML_TYPE,
    MARKDOWN_TYPE,
    MATRIX_TYPE,
    METRICS_TYPE,
    MODEL_TYPE,
    Artifact,
    Interface,
    Parameter,
    take_options,
)
from darkroom.kfp.webhook import check_url
from darkroom.options.checks import check_choice
from darkroom.options.conversion import (
    ConversionFields,
    EmbedFields,
    RecordOptions,
    UpdateFields,
    UpdateOptions,
)
from darkroom.options.diff import DiffFields, DiffOptions
from darkroom.options.fields import check_fields
from darkroom.options.manifest import ManifestOptions
from darkroom.options.pipeline import PipelineFields, check_registry
from darkroom.options.source import SourceFields
from darkroom.options.training import TrainingFields, TrainingOptions
from darkroom.options.validation import ValidationFields, ValidationOptions
from darkroom.runtime.functions import FUNCTION

LAUNCHER, DIRECT = TRANSFERS = ("launcher", "direct")


def _check_transfer(transfer: str = LAUNCHER) -> None:
    check_choice("transfer", transfer, TRANSFERS)


def _check_bounds(min_accuracy: float = 0.0, min_recall: float = 0.0) -> None:
    check_fields(PipelineFields(data="", min_accuracy=min_accuracy, min_recall=min_recall))


@dataclass(frozen=True, kw_only=True)
class _SomeTrainingOptions(TrainingFields):
    """Options of a training of which not all are known, so each is checked on its own."""

    def __post_init__(self) -> None:
        check_fields(self)


def _check_function(function: str | None = None) -> None:
    # None while only a run knows it.
    if function is not None and not FUNCTION.fullmatch(function):
        raise UsageError(f"function is {function!r}, expected package.module:function.")


def _check_update(update: bool = False, output_dir: str = "") -> None:
    if update and not output_dir:
        raise UsageError(
            "update replaces the dataset in output_dir, and none is given.",
            "Give output_dir, or take unchanged images of another dataset by base.",
        )


_EITHER = Artifact(
    "dataset",
    DATASET_TYPE,
    "The dataset that convert_images made; or give dataset_uri.",
    optional=True,
)


def _name_uri(name: str) -> Parameter:
    return Parameter(
        f"{name}_uri",
        str,
        "Where the dataset is, instead of the artifact. Nothing is then copied before the task "
        "starts. With # and its fingerprint at the end, another dataset there is an error.",
        "",
    )


_URI = _name_uri("dataset")
_FAIL = Parameter(
    "fail",
    bool,
    "Whether the task fails when it does not pass. KFP keeps no artifact of a failed task.",
    default=True,
)
_PASSED = Parameter("passed", bool, "Whether it passed, for dsl.If.")

_SCORES = (
    Parameter(
        "score",
        float,
        "Accuracy, mean average precision, or mean R² of numbers. Of the split that was named, or "
        "of test, or without one of eval.",
    ),
    Parameter("accuracy", float, "The accuracy; -1 unless images have one label."),
)


# A UI shows the name of an artifact alone, so it says whose page it is.
def _name_page(what: str) -> Artifact:
    return Artifact(f"{what}_page", HTML_TYPE, "A page for people.")


def _name_metrics(what: str) -> Artifact:
    return Artifact(f"{what}_metrics", METRICS_TYPE, "Numbers by name.")


_CONVERSION_CHECKS = (ManifestOptions.parse, RecordOptions, ValidationOptions, _check_transfer)
CONVERT_IMAGES = Interface(
    "convert_images",
    "Converts images and their labels into verified TFRecords.",
    (
        *take_options(PipelineFields, only=["data"]),
        *take_options(SourceFields, ConversionFields, UpdateFields, EmbedFields),
        *take_options(ValidationFields, only=["max_rejects"]),
        Parameter(
            "output_dir",
            str,
            "Folder for the dataset in a store or a volume, instead of the artifact. The artifact "
            "then has dataset.json alone, and says where the dataset is.",
            "",
        ),
        Parameter("overwrite", bool, "Whether to replace a dataset in output_dir.", default=False),
        Parameter(
            "transfer",
            str,
            "Who writes the dataset into the store: KFP after the task (launcher), or the task "
            "itself with its own credentials (direct), which needs no room on the node. On "
            f"Vertex always the task. One of {', '.join(TRANSFERS)}.",
            LAUNCHER,
        ),
        Parameter(
            "source_fingerprint",
            str,
            "State of the source, which caches compare: they do not look at the files. "
            "`darkroom.manifest.fingerprint` takes it.",
            "",
            runtime=True,
        ),
    ),
    outputs=(
        Artifact("dataset", DATASET_TYPE, "The dataset. Its metadata has fingerprint and counts."),
        Artifact(
            "previous",
            DATASET_TYPE,
            "What diff_datasets needs of the dataset that was there before an update: no images.",
        ),
        Artifact(
            "rejects", DATASET_TYPE, "The rejected rows, as Parquet and as a list to convert."
        ),
        Artifact("summary", MARKDOWN_TYPE, "Counts, classes and the first rejects."),
    ),
    results=(
        Parameter(
            "dataset_uri",
            str,
            "Where the dataset is. One in output_dir has its fingerprint at the end, after #.",
        ),
        Parameter("rows", int, "Rows of the source."),
        Parameter("written", int, "Records written."),
        Parameter("rejected", int, "Rows rejected."),
        Parameter("fingerprint", str, "Fingerprint of the dataset."),
    ),
    checks=(*_CONVERSION_CHECKS, UpdateOptions, _check_update),
    partial_checks=_CONVERSION_CHECKS,
)
VALIDATE_DATASET = Interface(
    "validate_dataset",
    "Checks a dataset by its index, and says whether it is fit for training.",
    (
        _URI,
        *take_options(ValidationFields),
        Parameter(
            "schema",
            str,
            "A schema of TFDV as text, for an image with TFX. Without one the check anomalies "
            "is off.",
            "",
            optional=True,
        ),
        _FAIL,
    ),
    inputs=(_EITHER,),
    outputs=(
        Artifact(
            "validation_report",
            ARTIFACT_TYPE,
            "The report for programs, for people and as Markdown. Its metadata has the verdict and "
            "counts.",
        ),
        Artifact("validation_page", HTML_TYPE, "The report for people."),
        Artifact(
            "gallery_page",
            HTML_TYPE,
            "Findings and images to look through, and to decide about; without the option gallery "
            "a page that says so.",
        ),
    ),
    results=(_PASSED,),
    checks=(ValidationOptions,),
)
DIFF_DATASETS = Interface(
    "diff_datasets",
    "Compares two datasets by their indexes, and says whether what changed may change.",
    (_name_uri("old"), _name_uri("new"), *take_options(DiffFields), _FAIL),
    inputs=(
        Artifact(
            "old",
            DATASET_TYPE,
            "The output previous of convert_images, or a dataset; or give old_uri. Before the "
            "first update there is none, and the new one passes.",
            optional=True,
        ),
        Artifact(
            "new",
            DATASET_TYPE,
            "The dataset that convert_images made; or give new_uri.",
            optional=True,
        ),
    ),
    outputs=(
        Artifact(
            "diff_report",
            ARTIFACT_TYPE,
            "The report for programs, for people and as Markdown. Its metadata has the verdict.",
        ),
        _name_page("diff"),
        _name_metrics("diff"),
    ),
    results=(_PASSED,),
    checks=(DiffOptions,),
)
_TOLD = (
    Parameter(
        "url",
        str,
        "URL of a webhook that is told; if empty, that in the environment variable "
        "DARKROOM_WEBHOOK of the task.",
        "",
    ),
    Parameter("pipeline", str, "Name of the pipeline, for the webhook.", ""),
    Parameter("run", str, "Name of the run, for the webhook.", ""),
    Parameter("run_id", str, "Id of the run, for the webhook.", ""),
)
VALIDATION_GATE = Interface(
    "validation_gate",
    "Stops a run whose dataset did not pass its checks, and tells a webhook why if it has one. It "
    "has no outputs, so the report is kept.",
    _TOLD,
    inputs=(
        Artifact(
            "report",
            ARTIFACT_TYPE,
            "The report of validate_dataset or diff_datasets with fail=False.",
        ),
    ),
)
NOTIFY = Interface(
    "notify",
    "Tells a webhook how a run ended, as the exit task of dsl.ExitHandler.",
    (
        *_TOLD,
        Parameter(
            "status",
            dict,
            "How the tasks of the handler ended, as the service says.",
            {},
            is_status=True,
        ),
    ),
    checks=(check_url,),
)
DATASET_STATISTICS = Interface(
    "dataset_statistics",
    "Counts records by split and label, and sizes and brightness of images, without reading one.",
    (_URI,),
    inputs=(_EITHER,),
    outputs=(
        Artifact(
            "statistics",
            ARTIFACT_TYPE,
            "The counts as JSON. Where TFDV is installed, its statistics of each split, too.",
        ),
        _name_page("statistics"),
        _name_metrics("statistics"),
    ),
)
VERIFY_DATASET = Interface(
    "verify_dataset",
    "Reads a whole dataset, and compares every byte with its commit.",
    (_URI, _FAIL),
    inputs=(_EITHER,),
    outputs=(_name_page("verification"), _name_metrics("verification")),
    results=(_PASSED, Parameter("fingerprint", str, "Fingerprint of the dataset.")),
)
FIND_DUPLICATES = Interface(
    "find_duplicates",
    "Finds images that are in a dataset more than once.",
    (_URI, Parameter("near", bool, "Also group images that look alike, for groups=.", False)),
    inputs=(_EITHER,),
    outputs=(
        Artifact(
            "duplicates", DATASET_TYPE, "duplicates.parquet, a list for convert_images(exclude=)."
        ),
        _name_page("duplicates"),
        _name_metrics("duplicates"),
    ),
    results=(
        Parameter("duplicates_uri", str, "Where the list is."),
        Parameter("surplus", int, "Images to leave out."),
    ),
)
INSPECT_DATASET = Interface(
    "inspect_dataset",
    "Shows some records of a split, a random sample, with their labels.",
    (
        _URI,
        Parameter("split", str, "Split to show: train, eval or test.", "train"),
        Parameter("num_records", int, "Number of records.", 32),
    ),
    inputs=(_EITHER,),
    outputs=(_name_page("inspection"),),
)
TRAIN_CLASSIFIER = Interface(
    "train_classifier",
    "Trains a model, exports it and evaluates it.",
    (
        _URI,
        *take_options(TrainingFields),
        Parameter(
            "checkpoint_dir",
            str,
            "Folder in a store or a volume where checkpoints outlive the task, so that a killed "
            "training resumes. Each run needs a separate folder.",
            "",
        ),
    ),
    inputs=(_EITHER,),
    outputs=(
        Artifact("trained_model", MODEL_TYPE, "The model as a SavedModel, for servers."),
        Artifact(
            "training_log",
            ARTIFACT_TYPE,
            "History, evaluation, card of the model, the Keras file, and TensorBoard's files.",
        ),
        _name_metrics("training"),
        _name_page("model"),
    ),
    results=_SCORES,
    needs_tensorflow=True,
    checks=(TrainingOptions,),
    partial_checks=(_SomeTrainingOptions,),
)
TRAIN_WITH_FUNCTION = Interface(
    "train_with_function",
    "Calls a training function of yours on the records, with PyTorch, JAX or any other framework.",
    (
        _URI,
        Parameter(
            "function",
            str,
            "As package.module:function. It is called with records, which darkroom.load opens, "
            "with output_dir, an empty folder for its files, and with arguments. It may return "
            "numbers by name.",
        ),
        Parameter("arguments", dict, "More arguments of the function, by name.", {}),
    ),
    inputs=(_EITHER,),
    outputs=(
        Artifact("trained_model", MODEL_TYPE, "The files that the function wrote into output_dir."),
        _name_metrics("training"),
    ),
    own_image=True,
    checks=(_check_function,),
)
EVALUATE_CLASSIFIER = Interface(
    "evaluate_classifier",
    "Evaluates an exported model by the answers that a server would give.",
    (
        _URI,
        Parameter(
            "split",
            str,
            "Split to score: train, eval, test or all. Test, or without one eval, if empty.",
            "",
        ),
        *take_options(PipelineFields, only=["min_accuracy", "min_recall"]),
        _FAIL,
    ),
    inputs=(Artifact("model", MODEL_TYPE, "The model that train_classifier made."), _EITHER),
    outputs=(
        _name_metrics("evaluation"),
        Artifact(
            "confusion_matrix",
            MATRIX_TYPE,
            "The confusion matrix, of at most fifty rows, and of two labels the ROC curve of the "
            "second; empty unless images have one label.",
        ),
        _name_page("evaluation"),
    ),
    results=(_PASSED, *_SCORES),
    needs_tensorflow=True,
    checks=(_check_bounds,),
)
PREDICT_IMAGES = Interface(
    "predict_images",
    "Predicts what new images are labelled with, by an exported model, as a server would answer.",
    (
        Parameter(
            "images",
            list,
            "Images, folders of them, or patterns, in a store or a volume. KFP's cache compares "
            "these texts, not the images.",
        ),
    ),
    inputs=(Artifact("model", MODEL_TYPE, "The model that train_classifier made."),),
    outputs=(
        Artifact(
            "predictions",
            DATASET_TYPE,
            "predictions.jsonl, a list for convert_images and darkroom gallery --predictions.",
        ),
        _name_page("prediction"),
        _name_metrics("prediction"),
    ),
    results=(
        Parameter("predictions_uri", str, "Where the list is."),
        Parameter("predicted", int, "Images in it."),
        Parameter("failed", int, "Images that a conversion would reject; the page names ten."),
    ),
    needs_tensorflow=True,
)
REGISTER_MODEL = Interface(
    "register_model",
    "Registers a model in the model registry of Kubeflow or Vertex, with what it was made from.",
    (
        Parameter(
            "registry", str, "Address of the registry: https://HOST, or vertex://PROJECT/REGION."
        ),
        Parameter("model_name", str, "Name of the model in the registry."),
        Parameter("run", str, "Id of the run, as dsl.PIPELINE_JOB_ID_PLACEHOLDER.", ""),
    ),
    inputs=(
        Artifact("model", MODEL_TYPE, "The model that train_classifier made."),
        Artifact("page", HTML_TYPE, "The page of train_classifier or evaluate_classifier."),
    ),
    results=(Parameter("version", str, "Name of the version; empty if the registry is down."),),
    checks=(check_registry,),
)

INTERFACES: Mapping[str, Interface] = {
    each.name: each
    for each in (
        CONVERT_IMAGES,
        VALIDATE_DATASET,
        DIFF_DATASETS,
        VALIDATION_GATE,
        NOTIFY,
        DATASET_STATISTICS,
        VERIFY_DATASET,
        FIND_DUPLICATES,
        INSPECT_DATASET,
        TRAIN_CLASSIFIER,
        TRAIN_WITH_FUNCTION,
        EVALUATE_CLASSIFIER,
        PREDICT_IMAGES,
        REGISTER_MODEL,
    )
}


def find_interface(name: str) -> Interface:
    """Returns the interface of a component.

    Raises:
        UsageError: There is no such component.
    """
    if name not in INTERFACES:
        raise UsageError(
            f"There is no component {name!r}.", f"There are {', '.join(sorted(INTERFACES))}."
        )
    return INTERFACES[name]
