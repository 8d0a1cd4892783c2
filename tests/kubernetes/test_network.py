"""Network policies allow exactly what is needed: the tests list all flows among the pods."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

FOLDER = Path(__file__).parents[2] / "kubernetes"
TASK = {"pipelines.kubeflow.org/v2_component": "true"}


class Peer(NamedTuple):
    """A pod with what policies look at."""

    name: str
    namespace: str
    labels: dict[str, str]


def _matches(selector: dict[str, Any], labels: dict[str, str]) -> bool:
    expressions = selector.get("matchExpressions", [])
    assert {each["operator"] for each in expressions} <= {"In"}
    return selector.get("matchLabels", {}).items() <= labels.items() and all(
        labels.get(each["key"]) in each["values"] for each in expressions
    )


def _is_peer(rule: dict[str, Any], peer: Peer) -> bool:
    """Whether an entry of `from` or `to` in a policy of the namespace darkroom matches this pod."""
    if "ipBlock" in rule:
        return False
    namespace = {"kubernetes.io/metadata.name": peer.namespace}
    if not _matches(rule.get("namespaceSelector", {}), namespace):
        return False
    if "namespaceSelector" not in rule and peer.namespace != "darkroom":
        return False
    return _matches(rule.get("podSelector", {}), peer.labels)


def _list_specs(policies: list, side: str, pod: Peer) -> list[dict[str, Any]]:
    """The policies that select a pod for one side."""
    return [
        policy["spec"]
        for policy in policies
        if side.capitalize() in policy["spec"]["policyTypes"]
        and _matches(policy["spec"]["podSelector"], pod.labels)
    ]


def _passes(policies: list, side: str, pod: Peer, other: Peer, port: int) -> bool:
    """Whether a pod may send (egress) to, or receive (ingress) from, another one."""
    where = {"egress": "to", "ingress": "from"}[side]
    specs = _list_specs(policies, side, pod) if pod.namespace == "darkroom" else []
    if not specs:
        return True  # what no policy selects is open
    for spec in specs:
        for rule in spec.get(side, []):
            ports = [each["port"] for each in rule.get("ports", [])]
            peers = rule.get(where)
            if (not ports or port in ports) and (
                peers is None or any(_is_peer(each, other) for each in peers)
            ):
                return True
    return False


@pytest.fixture(scope="session")
def every_policy(objects) -> list[dict[str, Any]]:
    return [each for each in objects if each["kind"] == "NetworkPolicy"]


@pytest.fixture(scope="session")
def policies(every_policy) -> list[dict[str, Any]]:
    """All but the one for tasks, which is only for namespaces that something else closes."""
    return [each for each in every_policy if each["metadata"]["name"] != "darkroom-tasks"]


def test_our_own_pods_are_closed_and_no_other_one(policies, pods):
    (deny,) = [each for each in policies if each["metadata"]["name"] == "darkroom-default-deny"]
    assert deny["spec"] == {
        "podSelector": {"matchLabels": {"app.kubernetes.io/instance": "darkroom"}},
        "policyTypes": ["Ingress", "Egress"],
    }
    ours = [Peer(str(pod), "darkroom", pod.labels) for pod in pods]
    others = [
        Peer("task of a pipeline", "darkroom", TASK),
        Peer("notebook", "darkroom", {"notebook-name": "mine"}),
        Peer("no labels", "darkroom", {}),
    ]
    for side in ("ingress", "egress"):
        assert all(_list_specs(policies, side, pod) for pod in ours)
        assert not any(_list_specs(policies, side, pod) for pod in others)


def test_which_pods_may_talk_to_each_other(policies, pods):
    peers = {pod.labels["app.kubernetes.io/name"]: pod.labels for pod in pods}
    ports = {
        (pod.labels["app.kubernetes.io/name"], port["containerPort"])
        for pod in pods
        for container in pod.spec["containers"]
        for port in container.get("ports", [])
    }
    everyone = [Peer(name, "darkroom", labels) for name, labels in peers.items()]
    servers = {peer.name: peer for peer in everyone}
    everyone += [
        Peer("task", "darkroom", TASK),
        Peer("task of Kubeflow", "kubeflow", TASK),
        Peer("client", "darkroom", {"uses-model": "true"}),
        Peer("stranger", "darkroom", {}),
        Peer("stranger elsewhere", "default", {"app.kubernetes.io/name": "darkroom-training"}),
    ]
    flows = {
        f"{source.name} -> {server}:{port}"
        for source in everyone
        for server, port in ports
        if _passes(policies, "egress", source, servers[server], port)
        and _passes(policies, "ingress", servers[server], source, port)
    }
    assert flows == {
        # tf.data service
        "darkroom-dispatcher -> darkroom-input:5051",
        "darkroom-input -> darkroom-dispatcher:5050",
        "darkroom-training -> darkroom-dispatcher:5050",
        "darkroom-training -> darkroom-input:5051",
        # training
        "darkroom-training -> darkroom-training:2222",
        # serving
        "client -> darkroom-serving:8080",
    }


def test_which_pods_may_reach_kubeflow_and_dns(every_policy, pods):
    outside = {
        "api": (Peer("api", "kubeflow", {"app": "ml-pipeline"}), (8887, 8888)),
        "metadata": (
            Peer("metadata", "kubeflow", {"component": "metadata-grpc-server"}),
            (8080,),
        ),
        "dns": (Peer("dns", "kube-system", {"k8s-app": "kube-dns"}), (53,)),
    }
    inside = {pod.labels["app.kubernetes.io/name"]: pod.labels for pod in pods}
    peers = [Peer(name, "darkroom", labels) for name, labels in inside.items()]
    peers.append(Peer("task", "darkroom", TASK))
    flows = {
        f"{source.name} -> {name}:{port}"
        for source in peers
        for name, (target, ports) in outside.items()
        for port in ports
        if _passes(every_policy, "egress", source, target, port)
    }
    assert flows - {f"{peer.name} -> dns:53" for peer in peers} == {
        "darkroom-submit -> api:8888",
        "task -> api:8887",
        "task -> api:8888",
        "task -> metadata:8080",
    }
    assert len(flows) == 4 + len(peers)


def test_only_pods_that_use_the_store_reach_it(pods):
    users = {str(pod) for pod in pods if pod.labels.get("uses-store") == "true"}
    assert users == {
        "Job/darkroom-submit",
        "Job/darkroom-convert",
        "InferenceService/darkroom",
    }


@pytest.mark.parametrize("overlay", ["gke", "s3"])
def test_access_to_a_public_store_excludes_private_networks(overlay):
    policies = yaml.safe_load_all((FOLDER / "overlays" / overlay / "store.yaml").read_text())
    (store,) = [each for each in policies if each["metadata"]["name"] == "darkroom-store"]
    assert store["spec"]["podSelector"]["matchLabels"]["uses-store"] == "true"
    rule = store["spec"]["egress"][0]
    assert [each["port"] for each in rule["ports"]] == [443]
    (peer,) = rule["to"]
    private = {"10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "169.254.0.0/16"}
    assert (peer["ipBlock"]["cidr"], set(peer["ipBlock"]["except"])) == ("0.0.0.0/0", private)


def test_pods_on_eks_get_credentials_from_the_agent_of_pod_identity(every_policy):
    [store] = yaml.safe_load_all((FOLDER / "overlays/s3/store.yaml").read_text())
    [tasks] = [each for each in every_policy if each["metadata"]["name"] == "darkroom-tasks"]
    agent = {"ipBlock": {"cidr": "169.254.170.23/32"}}
    for policy in (store, tasks):
        [rule] = [each for each in policy["spec"]["egress"] if agent in each.get("to", [])]
        assert rule["ports"] == [{"protocol": "TCP", "port": 80}]


@pytest.mark.parametrize(
    ("app", "port", "passes"),
    [
        ("minio", 9000, True),
        ("seaweedfs", 8333, True),
        ("minio", 9001, False),
        ("mysql", 9000, False),
    ],
)
def test_access_to_the_store_of_kubeflow_pipelines(every_policy, app, port, passes):
    policies = [*every_policy]
    policies += yaml.safe_load_all((FOLDER / "overlays/kfp-store/store.yaml").read_text())
    store, ours = (
        Peer("store", "kubeflow", {"app": app}),
        {"app.kubernetes.io/instance": "darkroom"},
    )
    for labels in ({**ours, "uses-store": "true"}, TASK):
        user = Peer("user", "darkroom", labels)
        assert _passes(policies, "egress", user, store, port) is passes
    assert not _passes(policies, "egress", Peer("other", "darkroom", ours), store, port)
