"""The options of the place where a conversion or a compiled pipeline runs."""

from __future__ import annotations

from dataclasses import dataclass, field

from darkroom.options.fields import check_fields, describe_option, document, option

KUBEFLOW, VERTEX = TARGETS = ("kubeflow", "vertex")
# Vertex mounts every bucket that the service account may read.
VERTEX_BUCKETS = "/gcs"


@document
@dataclass(frozen=True, kw_only=True)
class CompiledFields:
    """The options of a compiled pipeline that have a flag."""

    require_digest: bool = option(
        False,
        "Refuse a container image that is not named by its digest.",
        group="cluster",
        more="With a compiled file, `darkroom submit` looks at the images in it.",
    )


@document
@dataclass(frozen=True, kw_only=True)
class SubmissionFields:
    """The options of a run on every service."""

    run_name: str | None = option(
        None, "Name of the run.", group="cluster", metavar="NAME", shown="from pipeline and time"
    )
    service_account: str | None = option(
        None,
        "Account under which the tasks run.",
        group="cluster",
        metavar="NAME",
        shown="the service's own",
    )
    experiment: str | None = option(
        None,
        "Experiment of the run; created if it does not exist.",
        group="cluster",
        metavar="NAME",
        shown="on Kubeflow Default, on Vertex none",
    )


@document
@dataclass(frozen=True, kw_only=True)
class KubeflowFields(SubmissionFields):
    """The options of a run on Kubeflow Pipelines."""

    host: str = field(
        metadata=describe_option("URL of Kubeflow Pipelines.", group="cluster", metavar="URL")
    )
    namespace: str | None = option(
        None,
        "Namespace of the user, where Kubeflow has several.",
        group="cluster",
        metavar="NAME",
        shown="kfp's own setting",
    )
    ca_file: str | None = option(
        None,
        "PEM file of the authority that signed Kubeflow's certificate.",
        group="cluster",
        metavar="FILE",
    )


@document
@dataclass(frozen=True, kw_only=True)
class VertexOptions(SubmissionFields):
    """The options of a run on Vertex AI Pipelines."""

    project: str = field(
        metadata=describe_option(
            "Google Cloud project, for Vertex.", group="cluster", metavar="NAME"
        )
    )
    region: str = field(
        metadata=describe_option(
            "Google Cloud region, for Vertex, as in europe-west4.", group="cluster", metavar="NAME"
        )
    )

    def __post_init__(self) -> None:
        """Checks the values.

        Raises:
            UsageError: A value is wrong.
        """
        check_fields(self)
