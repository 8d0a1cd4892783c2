"""The options of a cluster for a pipeline: darkroom's, or a user's own."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from darkroom.errors import UsageError
from darkroom.options.checks import check_known
from darkroom.options.fields import check_fields, document, list_options, option
from darkroom.options.pipeline import ClusterFields
from darkroom.pipelines.resources import Resources, parse_resources

_NAME = re.compile(r"[a-z][a-z0-9-]{0,62}")


@document
@dataclass(frozen=True, kw_only=True)
class ClusterConfig(ClusterFields):
    """The options of a cluster for a pipeline: its folders, and the resources of its tasks."""

    resources: Mapping[str, Resources] = option(
        {},
        "Resources of each component in a cluster, by component or `default`.",
        group="cluster",
        flag=None,
        more="`darkroom.pipelines.resources.Resources` lists the keys.",
    )

    def __post_init__(self) -> None:
        """Checks the values that do not depend on the target.

        Raises:
            UsageError: A value is wrong.
        """
        check_fields(self)
        if not isinstance(self.vertex, Mapping):
            raise UsageError("vertex is not a table.", "Write [vertex], and NAME = VALUE below it.")
        object.__setattr__(self, "resources", parse_resources(self.resources))


def check_name(name: str) -> None:
    """Checks the name of a pipeline, which becomes part of names of Kubernetes.

    Raises:
        UsageError: It is not such a name.
    """
    if not _NAME.fullmatch(name):
        raise UsageError(
            f"The pipeline's name is {name!r}.",
            "Use lower case letters, digits and dashes, a letter first.",
        )


def make_cluster_config(values: Mapping[str, Any]) -> ClusterConfig:
    """Returns the configuration of values by name.

    Raises:
        UsageError: A name is not an option for a user's own pipeline, or a value is wrong.
    """
    names = [each.name for each in list_options(ClusterConfig)]
    check_known(values, names, "Your own pipeline has no option")
    try:
        return ClusterConfig(**values)
    except (TypeError, AttributeError) as error:
        raise UsageError(f"The configuration has a value of the wrong type: {error}.") from error
