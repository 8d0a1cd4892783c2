"""The options of the place where a conversion or a compiled pipeline runs."""

from __future__ import annotations

from dataclasses import dataclass, field

from darkroom.errors import UsageError
from darkroom.options.fields import check_fields, describe, document, option

KUBEFLOW, VERTEX = TARGETS = ("kubeflow", "vertex")
# Vertex mounts every bucket that the service account may read.
VERTEX_BUCKETS = "/gcs"
FLINK, SPARK, PRISM, DATAFLOW = ENGINE_NAMES = ("flink", "spark", "prism", "dataflow")
IMAGE, POOL, COMMAND = WORKERS = ("image", "pool", "command")


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
        metadata=describe("URL of Kubeflow Pipelines.", group="cluster", metavar="URL")
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
        metadata=describe("Google Cloud project, for Vertex.", group="cluster", metavar="NAME")
    )
    region: str = field(
        metadata=describe(
            "Google Cloud region, for Vertex, as in europe-west4.", group="cluster", metavar="NAME"
        )
    )

    def __post_init__(self) -> None:
        """Checks the values.

        Raises:
            UsageError: A value is wrong.
        """
        check_fields(self)


@document
@dataclass(frozen=True, kw_only=True)
class EngineFields:
    """Which engine runs the job that writes a dataset, and where it is."""

    engine: str | None = option(
        None,
        "Engine that converts and computes features; darkroom finds the options of Beam for it.",
        group="cluster",
        choices=ENGINE_NAMES,
        shown="in this process",
    )
    engine_url: str | None = option(
        None,
        "Address of the engine, as http://jobmanager:8081 or spark://master:7077.",
        group="cluster",
        metavar="URL",
    )
    engine_workers: str | None = option(
        None,
        "How darkroom runs on the machines of the engine: image=NAME, pool=HOST:PORT or "
        "command=PATH.",
        group="cluster",
        metavar="KIND=VALUE",
        shown="this process, if the engine is on this machine",
        more="A container image, a worker pool of Beam beside each task manager, or a program that "
        "starts a worker.",
    )


@document
@dataclass(frozen=True, kw_only=True)
class EngineOptions(EngineFields):
    """Which engine runs the job that writes a dataset, and where it is; checked when created."""

    def __post_init__(self) -> None:
        """Checks the options.

        Raises:
            UsageError: A value is wrong, or needs an engine.
        """
        check_fields(self)
        if self.engine is None and (self.engine_url or self.engine_workers):
            name = "engine_url" if self.engine_url else "engine_workers"
            raise UsageError(f"{name} needs an engine.", f"Give engine: {', '.join(ENGINE_NAMES)}.")
        if "@" in (self.engine_url or ""):
            raise UsageError(
                "engine_url contains a user name or a password.", "It is shown; leave them out."
            )
        kind, equals, value = (self.engine_workers or "image=x").partition("=")
        if kind not in WORKERS or not equals or not value:
            raise UsageError(
                f"engine_workers is {self.engine_workers!r}, expected KIND=VALUE.",
                "Give image=NAME, pool=HOST:PORT or command=PATH.",
            )

    @property
    def workers(self) -> tuple[str, str] | None:
        """Kind and value of `engine_workers`."""
        kind, _, value = (self.engine_workers or "").partition("=")
        return (kind, value) if kind else None
