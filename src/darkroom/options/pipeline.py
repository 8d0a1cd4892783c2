"""The options of a pipeline besides those of its stages."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from darkroom.errors import UsageError
from darkroom.options.fields import describe_option, document, option
from darkroom.options.source import DATA_HELP

# Arguments of Beam for TFX. Without an image named it would build a source package of itself for
# every component that uses Beam; the in-process runner never looks at the name.
LOCAL_BEAM_ARGS = ("--runner=FnApiRunner", "--sdk_container_image=local")
# An argument of the entrypoint: no property of the pipeline is a run-time parameter.
OWN_PIPELINE = "--own-pipeline"
# States of files, which caches compare. `darkroom submit` takes those that nobody gave.
FINGERPRINTS = ("source_fingerprint", "model_fingerprint")
# Options that change between runs: the fields of the form of a new run in Kubeflow's UI.
RUN_PARAMETERS = (
    "data",
    "seed",
    "max_rejects",
    "model",
    "image_size",
    "batch_size",
    "epochs",
    "learning_rate",
    "min_accuracy",
    "push_to",
)
VERTEX_REGISTRY = "vertex://"
_IN_VERTEX = re.compile(rf"{VERTEX_REGISTRY}[\w.:-]+/[\w-]+/?")


def check_registry(registry: str | None = None) -> None:
    """Checks the address of a model registry; None is none, or not known yet.

    Raises:
        UsageError: There is no such kind of registry.
    """
    from darkroom.storage.uris import find_host

    if registry is None or _IN_VERTEX.fullmatch(registry):
        return
    if "?" in registry or "#" in registry or not find_host(registry):
        raise UsageError(
            f"registry is {registry!r}, expected the address of a model registry.",
            "Give http://HOST or https://HOST for Kubeflow's, without a password, and "
            "vertex://PROJECT/REGION for Vertex's.",
        )


@document
@dataclass(frozen=True, kw_only=True)
class ClusterFields:
    """The options of the cluster that runs any pipeline."""

    root: str = option(
        "",
        "Folder for metadata, artifacts, log and models.",
        group="run",
        metavar="DIR",
        shown="on Kubeflow the administrator's; elsewhere it must be given",
    )
    cache: bool = option(
        True, "Reuse the results of earlier runs where nothing has changed.", group="run"
    )
    beam_args: tuple[str, ...] = option(
        LOCAL_BEAM_ARGS,
        "Arguments of Beam, instead of those for a local run.",
        group="cluster",
        metavar="ARGUMENT",
        flag="--beam-arg",
    )
    image: str = option(
        "",
        "Container image of the tasks, best given by its digest.",
        group="cluster",
        flag=None,
    )
    kfp: str | None = option(
        None,
        "Version of Kubeflow Pipelines for which a file is compiled, as in 2.17.",
        group="cluster",
        flag=None,
        shown="any from 2.5 on",
        more="A feature that this version lacks is an error or a warning.",
    )
    env: Mapping[str, str] = option(
        {}, "Environment variables of the containers.", group="cluster", flag=None
    )
    secret_env: Mapping[str, str] = option(
        {},
        "Environment variables from Secrets of Kubernetes, as SECRET/KEY by variable.",
        group="cluster",
        flag=None,
    )
    image_pull_secrets: tuple[str, ...] = option(
        (),
        "Secrets of Kubernetes with which the image is pulled from a private registry.",
        group="cluster",
        metavar="NAME",
        flag=None,
    )
    volumes: Mapping[str, str] = option(
        {},
        "Persistent volume claims of Kubernetes, by the folder where they are mounted.",
        group="cluster",
        flag=None,
    )
    vertex: Mapping[str, Any] = option(
        {},
        "Arguments of Google's client for a run on Vertex, by their names.",
        group="cluster",
        flag=None,
        more="Those of `aiplatform.PipelineJob` and of its `submit`, as labels and network; and "
        "network_attachment, for which the client has none.",
    )


@document
@dataclass(frozen=True, kw_only=True)
class PipelineFields(ClusterFields):
    """The options of a pipeline besides those of its stages."""

    data: str = field(
        metadata=describe_option(DATA_HELP, group="data", metavar="PATH", runtime=True)
    )
    name: str = option(
        "darkroom",
        "Name of the pipeline: lower-case letters, digits and dashes.",
        group="run",
        flag=None,
    )
    schema: str | None = option(
        None,
        "TFDV schema to check the data against, as .pbtxt.",
        group="checks",
        metavar="FILE",
        shown="inferred from the training split",
    )
    min_accuracy: float = option(
        0.0,
        "Accuracy that a model needs to pass its evaluation.",
        group="model",
        least=0,
        most=1,
        metavar="0-1",
        runtime=True,
        more="Of several labels the mean average precision, of numbers R².",
    )
    min_recall: float = option(
        0.0,
        "Recall that a model needs in each class to pass its evaluation.",
        group="model",
        least=0,
        most=1,
        metavar="0-1",
        runtime=True,
        more="A class without records has none; neither have numbers.",
    )
    max_accuracy_drop: float | None = option(
        None,
        "How much lower the accuracy may be than that of the last model that passed.",
        group="model",
        least=0,
        most=1,
        metavar="0-1",
        shown="any",
        more="Both are measured on the eval split of this run. A model with other labels is not "
        "compared.",
    )
    max_recall_drop: float | None = option(
        None,
        "The same for the recall of each class.",
        group="model",
        least=0,
        most=1,
        metavar="0-1",
        shown="any",
    )
    baseline_model: str | None = option(
        None,
        "Model to compare with instead: a SavedModel, or a folder of pushed ones.",
        group="model",
        metavar="DIR",
        shown="the last one that passed; on Kubeflow the newest one in push_to",
        runtime=True,
        more="Of pushed ones the newest counts. Kubeflow cannot look for the last one itself.",
    )
    slice_columns: tuple[str, ...] = option(
        (),
        "Column of the source for whose values the model is also measured.",
        group="model",
        metavar="NAME",
        flag="--slice-column",
        more="The classes always are. The page of the model has the numbers.",
    )
    push_to: str | None = option(
        None,
        "Folder for pushed models.",
        group="model",
        metavar="DIR",
        shown="ROOT/pushed",
        runtime=True,
        more="A compiled pipeline pushes only into its artifact unless a folder is given.",
    )
    registry: str | None = option(
        None,
        "Model registry for pushed models, as https://HOST or vertex://PROJECT/REGION.",
        group="model",
        metavar="URL",
        more="Kubeflow's or Vertex's. A version names the dataset, the scores, the page and the "
        "run.",
    )
    model_name: str | None = option(
        None,
        "Name of the model in the registry.",
        group="model",
        metavar="NAME",
        shown="that of the pipeline",
    )
    checkpoint_dir: str | None = option(
        None,
        "Folder for checkpoints, so that a killed training resumes.",
        group="training",
        flag=None,
        shown="the model-run artifact",
        runtime=True,
    )
    source_fingerprint: str | None = option(
        None,
        "State of the source, which caches compare.",
        group="data",
        flag=None,
        shown="taken by each run",
        runtime=True,
        more="`darkroom.manifest.fingerprint` takes it. A given text is used as it is.",
    )
    parameters: tuple[str, ...] = option(
        RUN_PARAMETERS,
        "Options that a run of the compiled file may change, as data,epochs.",
        group="cluster",
        metavar="NAME,...",
        flag=None,
        shown=",".join(RUN_PARAMETERS),
        more="The form of a new run in a service's UI has a field for each, and for a fingerprint "
        "that is compiled in.",
    )
    model_fingerprint: str = option(
        "",
        "State of the files of the model, which caches compare.",
        group="model",
        flag=None,
        shown="taken by each run",
        runtime=True,
        more="`darkroom.pipelines.model_state` takes it.",
    )
