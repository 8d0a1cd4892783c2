"""What Kubernetes would refuse in a table of resources is an error where it is compiled."""

from __future__ import annotations

from typing import Any

import pytest

from darkroom.errors import UsageError
from darkroom.pipelines.cluster_config import make_cluster_config
from darkroom.pipelines.compilation.checks import check_cluster
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


@pytest.mark.parametrize("table", ["pod_labels", "pod_annotations"])
@pytest.mark.parametrize(
    "key", ["pipelines.kubeflow.org/v2_component", "workflows.argoproj.io/workflow"]
)
def test_a_key_that_kubeflow_sets_itself(table: str, key: str):
    with pytest.raises(UsageError) as caught:
        _parse(**{table: {key: "x"}})
    message = f"resources.Trainer: {table} has the key {key!r}, and Kubeflow sets those of "
    assert caught.value.message.startswith(message)
    # It chooses nodes, and is not of the pod.
    _parse(node_selector={key: "x"})


def test_an_annotation_of_kubeflows_in_capital_letters():
    with pytest.raises(UsageError, match=r"sets those of pipelines\.kubeflow\.org"):
        _parse(pod_annotations={"Pipelines.Kubeflow.org/a": "x"})


@pytest.mark.parametrize(
    ("name", "least"), [("retries", 0), ("timeout_seconds", 1), ("num_accelerators", 1)]
)
def test_a_number_that_kubeflow_cannot_keep(name: str, least: int):
    _parse(accelerator="T4", **{name: 2**31 - 1})
    for value in (2**31, 3_000_000_000, 10**20, 10**5000, least - 1, 1.0, True, "1"):
        with pytest.raises(UsageError, match=f"{name} is .*, expected a whole number from {least}"):
            _parse(accelerator="T4", **{name: value})


SECRETS = ["Bad Name", "", "a_b", "-a", "a.", "A", "a/b", "a" * 254, "a\n"]


@pytest.mark.parametrize("secret", SECRETS)
def test_a_name_that_no_secret_has(secret: str):
    for options, place in (
        ({"image_pull_secrets": ["good", secret]}, "image_pull_secrets[1] is not a name of a Sec"),
        ({"secret_env": {"A": f"{secret}/key"}}, "secret_env.A "),
    ):
        with pytest.raises(UsageError) as caught:
            check_cluster(make_cluster_config({"image": "darkroom:1", **options}), "kubeflow")
        assert caught.value.message.startswith(place)
        # It may be the secret itself.
        assert len(secret) < 3 or secret not in str(caught.value)


@pytest.mark.parametrize("key", ["k ey", "", "..", ".", "..a", "a/b", "a" * 254, "é"])
def test_a_key_that_no_secret_has(key: str):
    config = make_cluster_config({"image": "darkroom:1", "secret_env": {"A": f"store/{key}"}})
    with pytest.raises(UsageError, match=r"^secret_env\.A does not name a key of a Secret"):
        check_cluster(config, "kubeflow")


def test_names_that_a_secret_may_have():
    options = {
        "image": "darkroom:1",
        "image_pull_secrets": ["a", "registry.key-1", "a" * 253],
        "secret_env": {"A": "store-keys/accesskey", "B": "store.keys/.My_key-1", "C": "s/a..b"},
    }
    check_cluster(make_cluster_config(options), "kubeflow")
