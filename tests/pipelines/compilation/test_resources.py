"""What a table of resources must not have."""

from __future__ import annotations

from typing import Any

import pytest

from darkroom.errors import UsageError
from darkroom.pipelines.resources import parse_resources


def _parse(**values: Any) -> None:
    parse_resources({"Trainer": values})


def test_a_key_of_a_toleration_that_kubernetes_does_not_know():
    with pytest.raises(UsageError, match=r"A toleration is .*'seconds': '5'"):
        _parse(tolerations=[{"key": "good", "operator": "Exists"}, {"key": "a", "seconds": "5"}])


def test_a_number_of_nothing_is_an_error():
    message = "has num_accelerators without accelerator"
    with pytest.raises(UsageError, match=f"resources.Trainer {message}"):
        _parse(num_accelerators=2)
    with pytest.raises(UsageError, match=f"resources.Trainer {message}"):
        parse_resources({"default": {"cpu": 2}, "Trainer": {"num_accelerators": 1}})
    with pytest.raises(UsageError, match=f"resources.default {message}"):
        parse_resources({"default": {"num_accelerators": 2}, "Trainer": {"cpu": 2}})


def test_a_number_may_be_in_another_table_than_its_accelerator():
    parse_resources({"default": {"accelerator": "T4"}, "Trainer": {"num_accelerators": 2}})
    parse_resources({"default": {"num_accelerators": 2}, "Trainer": {"accelerator": "T4"}})


@pytest.mark.parametrize(
    ("table", "key"),
    [
        ("pod_labels", "pipelines.kubeflow.org/v2_component"),
        ("pod_annotations", "workflows.argoproj.io/workflow"),
    ],
)
def test_a_key_that_kubeflow_sets_itself(table: str, key: str):
    with pytest.raises(UsageError) as caught:
        _parse(**{table: {key: "x"}})
    message = f"resources.Trainer: The pod has the key {key!r}, and Kubeflow sets those of "
    assert caught.value.message.startswith(message)
    # It chooses nodes, and is not of the pod.
    _parse(node_selector={key: "x"})


def test_an_annotation_of_kubeflows_in_capital_letters():
    with pytest.raises(UsageError, match="Kubeflow sets those of that prefix"):
        _parse(pod_annotations={"Pipelines.Kubeflow.org/a": "x"})


@pytest.mark.parametrize(
    ("name", "least"), [("retries", 0), ("timeout_seconds", 1), ("num_accelerators", 1)]
)
def test_a_number_that_kubeflow_cannot_keep(name: str, least: int):
    _parse(accelerator="T4", **{name: 2**31 - 1})
    for value in (2**31, least - 1, 1.0, True):
        with pytest.raises(UsageError, match=f"{name} is .*, expected a whole number"):
            _parse(accelerator="T4", **{name: value})
