"""The resources of each task in a cluster: machines, accelerators, retries, and its nodes."""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from darkroom.errors import UsageError
from darkroom.options.checks import check_count, is_number
from darkroom.options.targets import VERTEX
from darkroom.runtime.json_values import build_value

# Kubernetes requests a kind of device, and the node decides the model; Vertex names the model.
_NVIDIA_ON_KUBERNETES = "nvidia.com/gpu"
_ON_VERTEX: Mapping[str, str] = {
    "T4": "NVIDIA_TESLA_T4",
    "V100": "NVIDIA_TESLA_V100",
    "P100": "NVIDIA_TESLA_P100",
    "P4": "NVIDIA_TESLA_P4",
    "L4": "NVIDIA_L4",
    "A100": "NVIDIA_TESLA_A100",
    "A100-80GB": "NVIDIA_A100_80GB",
    "H100": "NVIDIA_H100_80GB",
    "H200": "NVIDIA_H200_141GB",
}
_KUBERNETES_RESOURCE = re.compile(r"[a-z0-9]([a-z0-9.-]*[a-z0-9])?/[A-Za-z0-9][A-Za-z0-9_.-]*")
# The gate gives the same verdict each time, so it is retried only if its own table says so.
_GATE = "ValidationGate"
# Options that Vertex does not have.
KUBERNETES_ONLY = (
    "timeout_seconds",
    "runs_as_root",
    "pod_labels",
    "pod_annotations",
    "node_selector",
    "tolerations",
)
# Kubeflow and Kubernetes keep these whole numbers in 32 bits.
_MOST = (1 << 31) - 1
# Kubeflow and Argo find the pods of a run by reserved labels; those of a task would win, and
# the run would wait for it forever.
_TAKEN_PREFIXES = ("pipelines.kubeflow.org/", "workflows.argoproj.io/")
_TOLERATION_KEYS = ("effect", "key", "operator", "value")
# The key of `resources` for values that the table of a component leaves open.
DEFAULT = "default"


@dataclass(frozen=True, kw_only=True)
class Resources:
    """The resources of a component's tasks in a cluster.

    Each value that is None is taken from the table `default`. A request of `default`
    does not count where the component's table has the limit.

    Attributes:
        cpu: Cores; the target's default when nothing says it.
        memory_gb: Memory in GB (10^9 bytes); the target's default when nothing says it.
        cpu_request: Cores that a node must have free; else `cpu`.
        memory_gb_request: Memory that a node must have free; else `memory_gb`.
        accelerator: Model, as in `T4` or `L4`, or the target's own name: `NVIDIA_L4` on Vertex,
            `amd.com/gpu` on Kubernetes; else none.
        num_accelerators: Number of accelerators of a task; else 1.
        retries: How often a failed task is tried again; else 0.
        timeout_seconds: After this time Kubernetes ends a task that still runs; Kubernetes only.
        runs_as_root: Whether the task's user may be root, as custom images need it;
            Kubernetes only.
        pod_labels: Labels of the task's pod, as a queue reads them; Kubernetes only.
        pod_annotations: Annotations of the task's pod; Kubernetes only.
        node_selector: Labels of the nodes that may run the task; Kubernetes only.
        tolerations: Taints that the task tolerates, as tables with `key`, `operator`, `value` and
            `effect`; Kubernetes only.
    """

    cpu: float | None = None
    memory_gb: float | None = None
    cpu_request: float | None = None
    memory_gb_request: float | None = None
    accelerator: str | None = None
    num_accelerators: int | None = None
    retries: int | None = None
    timeout_seconds: int | None = None
    runs_as_root: bool | None = None
    pod_labels: Mapping[str, str] | None = None
    pod_annotations: Mapping[str, str] | None = None
    node_selector: Mapping[str, str] | None = None
    tolerations: tuple[Mapping[str, str], ...] | None = None

    def __post_init__(self) -> None:
        """Checks the values.

        Raises:
            UsageError: A value has the wrong type, or is out of range.
        """
        for key in (*(self.pod_labels or {}), *(self.pod_annotations or {})):
            if key.lower().startswith(_TAKEN_PREFIXES):
                raise UsageError(
                    f"The pod has the key {key!r}, and Kubeflow sets those of that prefix itself.",
                    "Use a key with another prefix, or without one.",
                )
        for toleration in self.tolerations or ():
            if set(toleration) - {*_TOLERATION_KEYS}:
                raise UsageError(
                    f"A toleration is {toleration!r}.",
                    f"Give a table of texts with some of {', '.join(_TOLERATION_KEYS)}.",
                )
        for name in ("cpu", "memory_gb", "cpu_request", "memory_gb_request"):
            value = getattr(self, name)
            if value is not None and not (is_number(value) and 0 < value < math.inf):
                unit = " of GB, without a unit" if name.startswith("memory") else ""
                raise UsageError(f"{name} is {value!r}, expected a number{unit} above 0.")
        for name, least in {"num_accelerators": 1, "retries": 0, "timeout_seconds": 1}.items():
            value = getattr(self, name)
            if value is not None:
                check_count(name, value, least, _MOST)
        for name in ("cpu", "memory_gb"):
            limit, request = getattr(self, name), getattr(self, f"{name}_request")
            if None not in (limit, request) and request > limit:
                raise UsageError(
                    f"{name}_request is {request:g}, which is more than {name}, {limit:g}.",
                    f"{name} is the limit: a task that needs more is stopped.",
                )


def parse_resources(given: Mapping[str, Any]) -> dict[str, Resources]:
    """Returns the resources by component, from tables of values or from `Resources`.

    Raises:
        UsageError: A table has an unknown key or a wrong value.
    """
    if not isinstance(given, Mapping):
        raise UsageError("resources is not a table.", "Write [resources.COMPONENT].")
    parsed: dict[str, Resources] = {}
    for component, values in given.items():
        if isinstance(values, Resources):
            parsed[component] = values
            continue
        try:
            parsed |= build_value({component: values}, dict[str, Resources])
        except UsageError as error:
            raise UsageError(f"resources.{component}: {error.message}", error.hint) from error
        except ValueError as error:
            names = ", ".join(each.name for each in dataclasses.fields(Resources))
            hint = f"Numbers have no unit, as in memory_gb = 4. A table takes {names}."
            raise UsageError(f"resources{error}.", hint) from error
    for component, table in parsed.items():
        try:
            found = find_resources(parsed, component)
        except UsageError as error:
            where = f"resources.{component}, with resources.{DEFAULT}"
            raise UsageError(f"{where}: {error.message}", error.hint) from error
        # A number of accelerators is one of something.
        users = list(parsed.values()) if component == DEFAULT else [found]
        if table.num_accelerators is not None and not any(each.accelerator for each in users):
            raise UsageError(
                f"resources.{component} has num_accelerators without accelerator.",
                'Name the kind of accelerator, as in accelerator = "T4".',
            )
    return parsed


def find_resources(given: Mapping[str, Resources], component: str) -> Resources:
    """Returns the resources of a component: each value of its own table, else of `default`'s.

    Raises:
        UsageError: The two do not fit together, as a limit and a request above it.
    """
    shared = vars(given.get(DEFAULT, Resources()))
    if component == _GATE:
        shared = {**shared, "retries": None}
    own = {k: v for k, v in vars(given.get(component, Resources())).items() if v is not None}
    # A request that is meant for small tasks would put a large one on a small node.
    limits = own.keys() & {"cpu", "memory_gb"} if component != DEFAULT else ()
    return Resources(**{**shared, **{f"{limit}_request": None for limit in limits}, **own})


def check_components(given: Mapping[str, Resources], components: list[str]) -> None:
    """Checks that resources are given only to components of the pipeline.

    Raises:
        UsageError: The pipeline has no component of a name.
    """
    if unknown := sorted(set(given) - {DEFAULT, *components}):
        raise UsageError(
            f"resources names {unknown[0]!r}, which is not a component of the pipeline.",
            f"Components: {', '.join(sorted(components))}; or {DEFAULT!r} for all.",
        )


def spell_accelerator(name: str, target: str) -> str:
    """Returns the target's name of an accelerator.

    Raises:
        UsageError: The target does not offer that accelerator.
    """
    if target == VERTEX:
        if name in _ON_VERTEX or name in _ON_VERTEX.values():
            return _ON_VERTEX.get(name, name)
    elif name in _ON_VERTEX or name in _ON_VERTEX.values():
        return _NVIDIA_ON_KUBERNETES
    elif _KUBERNETES_RESOURCE.fullmatch(name):
        return name
    own = "NVIDIA_L4" if target == VERTEX else "amd.com/gpu"
    raise UsageError(
        f"{target} has no accelerator {name!r}.",
        f"Give one of {', '.join(_ON_VERTEX)}, or the target's own name, as in {own}.",
    )
