"""What Kubernetes would refuse in a table of resources is an error where it is compiled."""

from __future__ import annotations

from typing import Any

import pytest

from darkroom.errors import UsageError
from darkroom.pipelines.compilation.resources import parse_resources


def _parse(**values: Any) -> None:
    parse_resources({"Trainer": values})


@pytest.mark.parametrize("table", ["pod_labels", "pod_annotations", "node_selector"])
@pytest.mark.parametrize(
    "key",
    [
        "bad label!",
        "",
        "-a",
        "a.",
        "a" * 64,
        "/a",
        "a/",
        "a/b/c",
        "example..com/a",
        "ä",
        "a\n",
        f"{'a' * 254}/b",
    ],
)
def test_a_key_that_is_not_one(table: str, key: str):
    with pytest.raises(UsageError) as caught:
        _parse(**{table: {"team": "a", key: "x"}})
    assert caught.value.message.startswith(f"resources.Trainer: {table} has the key {key!r:.300}")
    assert "PREFIX/NAME" in caught.value.hint


@pytest.mark.parametrize("table", ["pod_labels", "node_selector"])
@pytest.mark.parametrize("value", ["x y", "a" * 64, "_a", "a-", "a/b", "é"])
def test_a_value_that_is_not_one(table: str, value: str):
    with pytest.raises(UsageError) as caught:
        _parse(**{table: {"example.com/team": value}})
    place = f"resources.Trainer: {table}.example.com/team"
    assert caught.value.message == f"{place} has a value that Kubernetes does not take for a label."
    _parse(pod_annotations={"example.com/team": value})


@pytest.mark.parametrize(
    ("toleration", "message"),
    [
        ({"key": "a", "operator": "Is"}, "tolerations: operator is 'Is'."),
        ({"key": "a", "operator": "exists"}, "tolerations: operator is 'exists'."),
        ({"key": "a", "effect": "NoRun"}, "tolerations: effect is 'NoRun'."),
        ({"key": "a b"}, "tolerations: key is 'a b', which is not one."),
        ({"key": "a", "value": "x y"}, "tolerations: Kubernetes does not take the value."),
        ({"key": "a", "operator": "Exists", "value": "x"}, "tolerations: a value is given beside"),
        ({"effect": "NoSchedule"}, "tolerations: a key is missing."),
        ({"key": "a", "seconds": "5"}, "A toleration is {'key': 'a', 'seconds': '5'}."),
    ],
)
def test_a_toleration_that_is_not_one(toleration: dict[str, str], message: str):
    with pytest.raises(UsageError) as caught:
        _parse(tolerations=[{"key": "good", "operator": "Exists"}, toleration])
    assert caught.value.message.startswith(f"resources.Trainer: {message}")


def test_only_an_annotation_may_have_a_prefix_with_capital_letters():
    _parse(pod_annotations={"Example.com/a": "x"})
    for table in ("pod_labels", "node_selector"):
        with pytest.raises(UsageError, match=f"{table} has the key 'Example.com/a'"):
            _parse(**{table: {"Example.com/a": "x"}})


def test_what_kubernetes_takes():
    labels = {
        "kueue.x-k8s.io/queue-name": "photos",
        "team": "",
        "A_b.c-D": "v1.2_3-x",
        f"{'a' * 63}.b/{'c' * 63}": "d" * 63,
    }
    _parse(pod_labels=labels, node_selector=labels, pod_annotations={**labels, "a": "any {text}!"})
    _parse(
        tolerations=[
            {"operator": "Exists"},
            {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoExecute"},
            {"key": "pool", "value": "gpu", "effect": "PreferNoSchedule"},
            {"key": "pool", "operator": "Equal", "value": "", "effect": "NoSchedule"},
        ]
    )


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
