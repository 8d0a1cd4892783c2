"""Where a compiled pipeline runs, and as what."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from darkroom.options.fields import describe, document, option

KUBEFLOW, VERTEX = TARGETS = ("kubeflow", "vertex")


@document
@dataclass(frozen=True, kw_only=True)
class SubmissionFields:
    """What every service is told about a run."""

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


@document
@dataclass(frozen=True, kw_only=True)
class KubeflowFields(SubmissionFields):
    """Where and as what Kubeflow Pipelines runs a pipeline."""

    host: str = field(
        metadata=describe("URL of Kubeflow Pipelines.", group="cluster", metavar="URL")
    )
    namespace: str | None = option(
        None,
        "Namespace of the user, where Kubeflow has several.",
        group="cluster",
        metavar="NAME",
        shown="kfp's own setting",
    )
    experiment: str = option(
        "Default",
        "Experiment of Kubeflow; created if there is none of that name.",
        group="cluster",
        metavar="NAME",
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
    """Where and as what Vertex AI Pipelines runs a pipeline."""

    project: str = field(
        metadata=describe("Google Cloud project, for Vertex.", group="cluster", metavar="NAME")
    )
    region: str = field(
        metadata=describe(
            "Google Cloud region, for Vertex, as in europe-west4.", group="cluster", metavar="NAME"
        )
    )
    network: str | None = option(
        None, "Full name of a network to peer with, for Vertex.", group="cluster", metavar="NAME"
    )
    labels: Mapping[str, str] = option(
        {},
        "Labels of the run, for Vertex.",
        group="cluster",
        metavar="NAME=VALUE",
        flag="--label",
        more="They are for bills and filters.",
    )
