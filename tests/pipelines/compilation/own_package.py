"""A user's package with components and artifact types of its own."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from types import ModuleType

NAME = "photolab"
# TFX reads the types of a function component as they are: no `from __future__ import annotations`.
SOURCE = '''
import json
import os
from typing import List

from tfx.dsl.component.experimental.container_component import create_container_component
from tfx.dsl.components.base.base_component import BaseComponent
from tfx.dsl.components.base.base_driver import BaseDriver
from tfx.dsl.components.base.base_executor import BaseExecutor
from tfx.dsl.components.base.executor_spec import ExecutorClassSpec
from tfx.types.artifact import Artifact, Property, PropertyType
from tfx.types.channel import Channel
from tfx.types.component_spec import ChannelParameter, ComponentSpec
from tfx.v1.dsl import Pipeline
from tfx.v1.dsl.components import OutputArtifact, Parameter, component


class Table(Artifact):
    TYPE_NAME = "photolab.Table"


class Nameless(Artifact):
    TYPE_NAME = "Nameless"


class Elsewhere(Artifact):
    TYPE_NAME = "photolab.NotThere"


class WithProperties(Artifact):
    TYPE_NAME = "photolab.WithProperties"
    PROPERTIES = {"rows": Property(type=PropertyType.INT)}


@component
def MakeTable(
    table: OutputArtifact[Table],
    epochs: Parameter[int],
    data: Parameter[str],
    policies: Parameter[str],
    seed: Parameter[int],
):
    os.makedirs(table.uri, exist_ok=True)
    with open(os.path.join(table.uri, "table.json"), "w") as file:
        json.dump([data, epochs, policies, seed], file)


@component
def KeepValues(table: OutputArtifact[Table], flag: Parameter[bool], sizes: Parameter[List[int]]):
    os.makedirs(table.uri, exist_ok=True)
    with open(os.path.join(table.uri, "table.json"), "w") as file:
        json.dump([flag, sizes], file)


def make_node(kind, node_id="Node", driver=BaseDriver, executor=BaseExecutor):
    """Returns a node with an output of a type."""
    class Spec(ComponentSpec):
        PARAMETERS = {}
        INPUTS = {}
        OUTPUTS = {"made": ChannelParameter(type=kind)}

    class Node(BaseComponent):
        SPEC_CLASS = Spec
        EXECUTOR_SPEC = ExecutorClassSpec(executor)
        DRIVER_CLASS = driver

    return Node(Spec(made=Channel(type=kind))).with_id(node_id)


class Driver(BaseDriver):
    """A driver that a service does not run."""


Shell = create_container_component(
    name="Shell",
    image="alpine:3",
    command=["sh", "-c", "echo"],
    outputs={"table": Table},
)


def make_pipeline(*components, **options):
    return Pipeline(
        pipeline_name="photolab", components=list(components), enable_cache=True, **options
    )
'''


def write_package(folder: Path, name: str = NAME) -> ModuleType:
    """Writes the package into a folder that Python looks into, and imports it.

    Args:
        folder: Where it is written.
        name: Its name. Tests whose packages live at the same time need different ones.
    """
    (folder / name).mkdir()
    (folder / name / "__init__.py").write_text(SOURCE.replace(NAME, name))
    sys.modules.pop(name, None)
    importlib.invalidate_caches()
    return importlib.import_module(name)
