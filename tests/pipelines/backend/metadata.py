"""ML Metadata's own store, filled as Kubeflow's driver and launcher fill it.

After `metadata/client.go` of kubeflow/pipelines, backend/src/v2. The store is the C++ library in
the wheel of ml-metadata, in memory. So its types, its numbers and its refusals are the real ones.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import yaml
from google.protobuf import json_format
from ml_metadata.metadata_store import metadata_store
from ml_metadata.proto import metadata_store_pb2 as mlmd

from .driver import as_protojson

PIPELINE, RUN = "system.Pipeline", "system.PipelineRun"
DAG, CONTAINER = "system.DAGExecution", "system.ContainerExecution"
NAMESPACE = "kubeflow"


class MetadataStore:
    """What Kubeflow keeps of runs: executions, artifacts, and which made or read which.

    Attributes:
        client: The store itself.
    """

    def __init__(self) -> None:
        config = mlmd.ConnectionConfig()
        config.fake_database.SetInParent()
        self.client = metadata_store.MetadataStore(config)

    def start_run(
        self, pipeline: str, run: str, root: str, session: str, inputs: Mapping[str, Any]
    ) -> int:
        """Records a run, as the driver of its root does; returns the id of its execution.

        Args:
            pipeline: Name of the pipeline.
            run: Id of the run.
            root: Root of the run.
            session: How its store is reached.
            inputs: Its parameters.
        """
        properties = {
            "namespace": NAMESPACE,
            "resource_name": "run-resource",
            "pipeline_root": root,
            "store_session_info": session,
        }
        parent = self._find_context(PIPELINE, pipeline, {})
        child = self._find_context(RUN, run, properties)
        self.client.put_parent_contexts(
            [mlmd.ParentContext(child_id=child.id, parent_id=parent.id)]
        )
        execution = self._make_execution(DAG, {"display_name": "", "task_name": ""}, inputs)
        execution.name = f"run/{run}"
        return self._put(execution, [], [parent, child])

    def start_task(
        self, dag: int, task: str, given: Mapping[str, Any], cached: Mapping[str, str]
    ) -> int:
        """Records that a task starts, as its driver does; returns the id of its execution.

        Args:
            dag: Id of the run's execution.
            task: Name of the task.
            given: Its inputs, in the form of ExecutorInput.
            cached: Its fingerprint, and the id of the execution in the cache, where there are such.
        """
        properties = {
            **dict.fromkeys(("pod_name", "pod_uid", "namespace", "image"), ""),
            "display_name": task,
            "task_name": task,
            "parent_dag_id": dag,
            **cached,
        }
        execution = self._make_execution(CONTAINER, properties, given.get("parameterValues", {}))
        events = [
            _make_event(key, int(artifact["name"]), mlmd.Event.INPUT)
            for key, each in given.get("artifacts", {}).items()
            for artifact in each["artifacts"]
        ]
        return self._put(execution, events, self.client.get_contexts_by_execution(dag))

    def start_attempt(self, execution_id: int, pod: str) -> None:
        """Records the pod of an attempt, as the launcher does before the task's own process."""
        [execution] = self.client.get_executions_by_id([execution_id])
        values = {"pod_name": pod, "pod_uid": f"uid-of-{pod}", "namespace": NAMESPACE}
        _set_properties(execution, values)
        execution.last_known_state = mlmd.Execution.RUNNING
        self.client.put_execution(execution, [], [])

    def record_artifact(self, key: str, artifact: Mapping[str, Any], session: str) -> int:
        """Records an artifact that was uploaded; returns its id.

        Args:
            key: Name of the output.
            artifact: The artifact, in the form of ExecutorInput.
            session: How its store is reached.
        """
        kind = mlmd.ArtifactType(name=_find_title(artifact["type"]))
        recorded = mlmd.Artifact(uri=artifact["uri"], state=mlmd.Artifact.LIVE)
        recorded.type_id = self.client.put_artifact_type(kind)
        defaults = {"display_name": key, "store_session_info": session}
        _set_properties(recorded, {**defaults, **artifact.get("metadata", {})})
        [artifact_id] = self.client.put_artifacts([recorded])
        return int(artifact_id)

    def publish(
        self,
        execution_id: int,
        state: mlmd.Execution.State,
        artifacts: Mapping[str, int],
        parameters: Mapping[str, Any] | None = None,
    ) -> None:
        """Records how an attempt ended.

        Args:
            execution_id: Id of the task's execution.
            state: Its state.
            artifacts: Ids of its outputs by name.
            parameters: Its output parameters; None where it failed.
        """
        [execution] = self.client.get_executions_by_id([execution_id])
        execution.last_known_state = state
        if parameters is not None:
            _set_struct(execution.custom_properties["outputs"], parameters)
        made = [_make_event(key, each, mlmd.Event.OUTPUT) for key, each in artifacts.items()]
        self._put(execution, made, self.client.get_contexts_by_execution(execution_id))

    def find_outputs(self, execution_id: int) -> dict[str, int]:
        """Returns the ids of the artifacts that a task made by name, each time the newest."""
        events = self.client.get_events_by_execution_ids([execution_id])
        return {
            event.path.steps[0].key: event.artifact_id
            for event in events
            if event.type == mlmd.Event.OUTPUT
        }

    def read_parameters(self, execution_id: int) -> dict[str, Any]:
        """Returns the output parameters that a task had."""
        [execution] = self.client.get_executions_by_id([execution_id])
        found: dict[str, Any] = as_protojson(read_properties(execution)["outputs"])
        return found

    def read_artifact(self, artifact_id: int) -> dict[str, Any]:
        """Returns an artifact in the form of ExecutorInput, as the driver hands it to a task."""
        [artifact] = self.client.get_artifacts_by_id([artifact_id])
        return {
            "name": str(artifact_id),
            # The driver does not ask for the type: `OutputArtifact` in `client.go`.
            "type": {"instanceSchema": ""},
            "uri": artifact.uri,
            "metadata": as_protojson(read_properties(artifact)),
        }

    def _find_context(self, kind: str, name: str, properties: Mapping[str, Any]) -> mlmd.Context:
        found = self.client.get_context_by_type_and_name(kind, name)
        if found is None:
            context = mlmd.Context(name=name)
            context.type_id = self.client.put_context_type(mlmd.ContextType(name=kind))
            _set_properties(context, properties)
            self.client.put_contexts([context])
            found = self.client.get_context_by_type_and_name(kind, name)
        return found

    def _make_execution(
        self, kind: str, properties: Mapping[str, Any], inputs: Mapping[str, Any]
    ) -> mlmd.Execution:
        execution = mlmd.Execution(last_known_state=mlmd.Execution.RUNNING)
        execution.type_id = self.client.put_execution_type(mlmd.ExecutionType(name=kind))
        _set_properties(execution, properties)
        _set_struct(execution.custom_properties["inputs"], inputs)
        return execution

    def _put(self, execution: mlmd.Execution, events: list, contexts: list) -> int:
        pairs = [(None, event) for event in events]
        return int(self.client.put_execution(execution, pairs, contexts)[0])


def read_properties(node: mlmd.Artifact | mlmd.Execution | mlmd.Context) -> dict[str, Any]:
    """Returns the custom properties of an artifact, an execution or a context as values."""
    return {
        key: json_format.MessageToDict(value.struct_value)
        if value.HasField("struct_value")
        else getattr(value, value.WhichOneof("value"))
        for key, value in node.custom_properties.items()
    }


def _set_properties(node: Any, values: Mapping[str, Any]) -> None:
    for key, value in values.items():
        target = node.custom_properties[key]
        if isinstance(value, str):
            target.string_value = value
        elif isinstance(value, Mapping):
            _set_struct(target, {"struct": value})
        elif isinstance(value, list):
            _set_struct(target, {"list": value})
        elif key == "parent_dag_id" or isinstance(value, bool):
            target.int_value = int(value)
        else:
            assert value is not None, "unknown/unsupported value type NullValue"
            target.double_value = value


def _set_struct(target: mlmd.Value, values: Mapping[str, Any]) -> None:
    json_format.ParseDict(dict(values), target.struct_value)
    target.struct_value.SetInParent()


def _make_event(key: str, artifact_id: int, kind: mlmd.Event.Type) -> mlmd.Event:
    path = mlmd.Event.Path(steps=[mlmd.Event.Path.Step(key=key)])
    return mlmd.Event(artifact_id=artifact_id, type=kind, path=path)


def _find_title(kind: Mapping[str, str]) -> str:
    if title := kind.get("schemaTitle"):
        return title
    return str(yaml.safe_load(kind["instanceSchema"])["title"])
