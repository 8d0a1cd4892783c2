"""Checks the nodes of a user's own pipeline: whether a service can run and may cache them.

The facts about Kubeflow Pipelines come from reading its backend: its compiler knows no resolvers,
it reads no `lifecycle` of a container, and Argo checks the names of tasks.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from tfx.components import FileBasedExampleGen, InfraValidator, Pusher
from tfx.components.example_gen.component import QueryBasedExampleGen
from tfx.components.schema_gen.import_schema_gen.component import ImportSchemaGen
from tfx.dsl.components.base import base_driver
from tfx.dsl.components.base.base_node import BaseNode
from tfx.dsl.components.common.importer import Importer
from tfx.dsl.components.common.resolver import Resolver
from tfx.dsl.placeholder.placeholder import Placeholder
from tfx.orchestration.data_types import RuntimeParameter
from tfx.orchestration.kubeflow.v2 import compiler_utils
from tfx.orchestration.pipeline import Pipeline
from tfx.types.artifact import Artifact
from tfx.utils import import_utils

from darkroom.components.executor_io import find_class_path
from darkroom.components.manifest_gen.component import ManifestGen
from darkroom.components.pusher.component import Pusher as OurPusher
from darkroom.components.pusher.executor import read_destination
from darkroom.components.state_driver import TAKEN_BY_EACH_RUN, StateDriver
from darkroom.errors import UsageError
from darkroom.options.compiled.containers import (
    check_place,
    check_replaced,
    explain_idle_accelerator,
)
from darkroom.options.compiled.credentials import check_credentials
from darkroom.options.targets import KUBEFLOW
from darkroom.pipelines.config import ClusterConfig
from darkroom.pipelines.resources import find_resources, spell_accelerator

# Of tasks, as Argo has them.
_TASK_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]{0,127}")
# The argument that names a function in the image, for components of TFX that take a file.
_FUNCTIONS = {"Trainer": "run_fn", "Transform": "preprocessing_fn", "Tuner": "tuner_fn"}
_EXAMPLE_GENS = (FileBasedExampleGen, QueryBasedExampleGen)
# Nodes that read a path, the property that names it, and the stores that they can open.
_PATHS: tuple[tuple[type[BaseNode], str, tuple[str, ...]], ...] = (
    (ManifestGen, "source", ("gs", "s3")),
    (ManifestGen, "base", ("gs", "s3")),
    (ImportSchemaGen, "schema_file", ("gs",)),
    (FileBasedExampleGen, "input_base", ("gs",)),
)
# Of Kubeflow, where neither a pipeline nor an administrator names one.
_DEFAULT_ROOT = "minio://mlpipeline/v2/artifacts"
_ENDPOINT = "AWS_ENDPOINT_URL"
# Services replace their drivers.
_WITH_DRIVERS = (*_EXAMPLE_GENS, Importer, Resolver)


def check_nodes(pipeline: Pipeline, target: str, volumes: Iterable[str]) -> None:
    """Checks that a service can run the nodes of a pipeline, and that nothing in them is secret.

    Args:
        pipeline: Any pipeline of TFX.
        target: `kubeflow` or `vertex`.
        volumes: Folders that are mounted in the containers, on Kubeflow.

    Raises:
        UsageError: It cannot run a node; the message names the node.
    """
    for node in pipeline.components:
        _check_kind(node, target)
        if target == KUBEFLOW and not _TASK_NAME.fullmatch(node.id):
            raise UsageError(
                f"The node {node.id} has a name that Kubeflow does not take for a task.",
                "Use letters, digits and dashes: .with_id('NAME').",
            )
        # TFX makes a package of the file while it compiles, and copies it into the pipeline root.
        # Tasks get it from there by TensorFlow, which opens gs:// and not minio:// or s3://.
        properties = node.exec_properties
        is_packaged = "@" in str(properties.get("module_path") or "")
        if target == KUBEFLOW and (properties.get("module_file") or is_packaged):
            kinds = (each.__name__ for each in type(node).__mro__)
            name = next((_FUNCTIONS[each] for each in kinds if each in _FUNCTIONS), "function")
            raise UsageError(
                f"{node.id} has a module_file. TFX would copy its code into the pipeline root, "
                "from where the tasks of Kubeflow cannot install it.",
                f"Put the code into the image, and name it, as in {name}='PACKAGE.MODULE.{name}'.",
            )
        for name, value in properties.items():
            place = f"{node.id}.{name}"
            if isinstance(value, Placeholder):
                raise UsageError(
                    f"{place} is the value of an output, which TFX compiles wrongly.",
                    "Pass the artifact as an input, and let the executor read it.",
                )
            given: Any = value.default if isinstance(value, RuntimeParameter) else value
            check_credentials({place: given})
            check_replaced({place: given}, target)
        _check_paths(node, target, volumes)
        executor = getattr(node.executor_spec, "executor_class", None)
        # TFX refuses what cannot be imported, and finds this: it is compiled by that program.
        if executor is not None and executor.__module__ == "__main__":
            raise UsageError(
                f"The executor of {node.id} is in the program that was started (__main__), where "
                "no task finds it.",
                "Put the component into a module that the image has, and import it.",
            )
        for way, channels in (("input", node.inputs), ("output", node.outputs)):
            for key, channel in channels.items():
                _check_type(channel.type, f"The {way} {key} of {node.id}")


def is_cached(node: BaseNode) -> bool:
    """Tells whether a service may take a node's results from its cache.

    The cache sees properties and artifacts, and no driver runs before it looks into its cache. So
    a node that reads a path or a database must not be cached, nor one that has effects
    elsewhere.
    """
    driver = node.driver_class
    if issubclass(driver, StateDriver):
        return bool(node.exec_properties[driver.STATE.key] != TAKEN_BY_EACH_RUN)
    is_plain = driver is base_driver.BaseDriver
    return is_plain and not isinstance(node, (*_EXAMPLE_GENS, ImportSchemaGen, Pusher))


def list_node_warnings(pipeline: Pipeline, config: ClusterConfig, target: str) -> Iterator[str]:
    """Yields warnings about parts that will not work as they seem."""
    for node in pipeline.components:
        driver = node.driver_class
        is_known = issubclass(driver, StateDriver) or isinstance(node, _WITH_DRIVERS)
        if driver is not base_driver.BaseDriver and not is_known:
            yield (
                f"{node.id} has its own driver, {driver.__name__}, and {target} runs no "
                "drivers. The node runs each time."
            )
        if isinstance(node, Importer) and not node.exec_properties["reimport"]:
            yield (
                f"{node.id} takes the files of its URI for unchanged, so readers of them may come "
                "from the cache. Importer(reimport=True) imports them in each run."
            )
        if isinstance(node, Importer) and target == KUBEFLOW:
            yield from _find_other_bucket(node, config)
        # A message of any type; TFX takes only the one that has these. The configuration has the
        # last word, and its own warning.
        accelerator = getattr(getattr(node, "platform_config", None), "accelerator", None)
        name = getattr(accelerator, "type", "")
        if name and not find_resources(config.resources, node.id).accelerator:
            place, spelled = f"{node.id}.platform_config", spell_accelerator(name, target)
            if idle := explain_idle_accelerator(
                place, name, spelled, find_node_image(node, config)
            ):
                yield idle


def find_node_image(node: BaseNode, config: ClusterConfig) -> str:
    """Returns the container image of a node; a container component names one."""
    return str(getattr(node.executor_spec, "image", config.image))


def _find_other_bucket(node: Importer, config: ClusterConfig) -> Iterator[str]:
    """Yields a warning where an artifact is in a bucket that Kubeflow may fail to open.

    Its launcher opens the root's bucket as the administrator has set it up, and every other one as
    Amazon's, with the environment of the task: `launcher_v2.go`.
    """
    uri = node.exec_properties["artifact_uri"]
    if not isinstance(uri, str) or not uri.startswith(("minio://", "s3://")):
        return
    scheme, _, bucket, *_ = uri.split("/")
    if [scheme, "", bucket] == (config.root or _DEFAULT_ROOT).split("/")[:3]:
        return
    names = {*config.env, *config.secret_env}
    is_amazons = scheme == "s3:" and not any(name.startswith(_ENDPOINT) for name in names)
    if not (is_amazons and names & {"AWS_REGION", "AWS_DEFAULT_REGION"}):
        yield (
            f"{node.id} names {uri!r}, which is in another bucket than the root. Kubeflow opens "
            "that one as Amazon's, by AWS_REGION and the keys in the environment of the tasks. "
            "Elsewhere it fails, so copy the files into the bucket of the root."
        )


def _check_kind(node: BaseNode, target: str) -> None:
    """Checks that TFX can compile nodes of this class, and that the service can run them.

    Raises:
        UsageError: One of them cannot; the hint says what to do instead.
    """
    kind = type(node).__name__
    if isinstance(node, Pipeline):
        raise UsageError(
            f"{node.id} is a nested pipeline, which TFX cannot compile.",
            "Give its components to the outer pipeline.",
        )
    if isinstance(node, InfraValidator):
        raise UsageError(
            f"{node.id} is an InfraValidator, which TFX cannot compile for {target}.",
            "Leave it out. Evaluator loads the exported model, too, and calls its signature.",
        )
    if target != KUBEFLOW:
        return
    if isinstance(node, Resolver):
        raise UsageError(
            f"Kubeflow cannot run the node {node.id}: it runs no {kind}.",
            "Give a fixed artifact by an Importer with its URI; for a model to compare with, give "
            "darkroom's Evaluator the folder as baseline; or compile for vertex.",
        )
    if isinstance(node, FileBasedExampleGen):
        raise UsageError(
            f"Kubeflow cannot run the node {node.id}: it runs no driver of a {kind}, which finds "
            "the files.",
            "For images, use darkroom's ManifestGen and ImageToTFRecord; for records that are "
            "there, an Importer of Examples with their URI; or compile for vertex.",
        )


def _check_paths(node: BaseNode, target: str, volumes: Iterable[str]) -> None:
    """Checks the paths of nodes that are known to read or write there."""
    for kind, name, schemes in _PATHS:
        if isinstance(node, kind) and isinstance(path := node.exec_properties.get(name), str):
            check_place(f"{node.id}.{name}", path, schemes, target, volumes)
    stores: tuple[str, ...]
    if isinstance(node, Importer):
        uri = node.exec_properties["artifact_uri"]
        if isinstance(uri, str):  # the service opens it, without the volumes of the tasks
            stores = ("gs", "s3", "minio") if target == KUBEFLOW else ("gs",)
            check_place(f"{node.id}.artifact_uri", uri, stores, target, ())
    if isinstance(node, Pusher):
        given = node.exec_properties.get("push_destination")
        if isinstance(given, str) and (folder := read_destination(given)):
            stores = ("gs", "s3") if isinstance(node, OurPusher) else ("gs",)
            check_place(f"{node.id}.push_destination", folder, stores, target, volumes)


def _check_type(kind: type[Artifact], place: str) -> None:
    """Checks that a task can import the class of an artifact by the name of its type."""
    package, _, title = f"{kind.TYPE_NAME}".rpartition(".")
    is_simple = compiler_utils.get_artifact_title(kind) in compiler_utils.TITLE_TO_CLASS_PATH
    if is_simple or not package:
        return  # TFX knows its own, and refuses a name without a package
    if kind.PROPERTIES:
        raise UsageError(
            f"{place} has the artifact type {kind.TYPE_NAME!r}, which declares PROPERTIES; TFX "
            "cannot compile them.",
            "Leave PROPERTIES out: the executor can set custom properties.",
        )
    path = find_class_path({"schemaTitle": kind.TYPE_NAME})
    if path is None or import_utils.import_class_by_path(path) is not kind:
        raise UsageError(
            f"{place} has the artifact type {kind.TYPE_NAME!r}, but {package} has no "
            f"class {title}.",
            f"Tasks find the class by this name: import it in the package {package}.",
        )
