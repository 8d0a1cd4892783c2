"""The manifests fit together. They are read as plain YAML, without kubectl."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections import Counter
from pathlib import Path

import pytest
import yaml

from darkroom import __version__
from darkroom.cli.parser import build_parser
from darkroom.training.devices.environment import Cluster, read_cluster

from .conftest import list_choices

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "kubernetes"
NUM_PODS = 8


def _list_files(folder: Path) -> set[Path]:
    """The kustomization of a folder, and all files that it includes, directly or not."""
    kustomization = folder / "kustomization.yaml"
    content = yaml.safe_load(kustomization.read_text())
    names = [*content.get("resources", []), *content.get("components", [])]
    names += [f"../../components/{name}" for name in list_choices(kustomization.read_text())]
    names += [each["path"] for each in content.get("patches", []) if "path" in each]
    for each in content.get("configMapGenerator", []):
        names += each.get("files", [])
    paths = {(folder / name).resolve() for name in names}
    inner = [_list_files(path) for path in paths if path.is_dir()]
    return {kustomization, *(path for path in paths if not path.is_dir())}.union(*inner)


def test_every_file_belongs_to_an_overlay_and_every_name_is_a_file():
    overlays = [path.parent for path in FOLDER.glob("overlays/*/kustomization.yaml")]
    assert [path.name for path in sorted(overlays)] == ["gke", "kfp-store", "s3"]
    named = set().union(*map(_list_files, overlays))
    assert named == {path for path in FOLDER.rglob("*") if path.is_file()}


def test_every_job_has_a_deadline_and_is_deleted_a_week_after_its_end(objects):
    jobs = {each["metadata"]["name"]: each["spec"] for each in objects if each["kind"] == "Job"}
    assert {name: each["activeDeadlineSeconds"] for name, each in jobs.items()} == {
        "darkroom-submit": 2 * 3600,
        "darkroom-convert": 48 * 3600,
        "darkroom-training": 168 * 3600,
    }
    assert {each["ttlSecondsAfterFinished"] for each in jobs.values()} == {7 * 24 * 3600}


def test_a_drain_takes_one_server_at_a_time_and_is_never_stopped(objects, pods):
    budgets = [each for each in objects if each["kind"] == "PodDisruptionBudget"]
    assert {each["spec"]["maxUnavailable"] for each in budgets} == {1}
    names = [_count_matches(each["spec"]["selector"]["matchLabels"], pods) for each in budgets]
    assert [list(map(str, each)) for each in names] == [
        ["StatefulSet/darkroom-input"],
        ["InferenceService/darkroom"],
    ]


# Pods


def _find_faults(pod) -> list[str]:
    """Returns what the profile `restricted` and our own rules reject."""
    security = pod.spec["securityContext"]
    wanted = {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}
    faults = [key for key, value in wanted.items() if security.get(key) != value]
    faults += [key for key in ("hostNetwork", "hostPID", "hostIPC") if pod.spec.get(key)]
    if pod.spec["automountServiceAccountToken"] is not False:
        faults.append("automountServiceAccountToken")
    for container in pod.spec["containers"]:
        own = container["securityContext"]
        expected = {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }
        faults += [key for key, value in expected.items() if own.get(key) != value]
        user = own.get("runAsUser", security["runAsUser"])
        if user != 65532:
            faults.append(f"runAsUser {user}")
        mounts = {each["mountPath"]: each["name"] for each in container["volumeMounts"]}
        volumes = {each["name"]: each for each in pod.spec["volumes"]}
        if "sizeLimit" not in volumes[mounts["/tmp"]]["emptyDir"]:
            faults.append("/tmp")
        if set(container["resources"]["requests"]) != {"cpu", "memory"}:
            faults.append("requests")
        if "memory" not in container["resources"]["limits"]:
            faults.append("limits")
    return faults


def test_all_pods_are_restricted_and_have_resources(pods):
    assert len(pods) == NUM_PODS
    assert {str(pod): found for pod in pods if (found := _find_faults(pod))} == {}


def test_servers_have_probes(pods):
    served = [pod for pod in pods if pod.is_served]
    assert len(served) == 3
    for pod in served:
        for container in pod.spec["containers"]:
            probes = [container[f"{name}Probe"] for name in ("startup", "readiness", "liveness")]
            ports = {port.get("name"): port["containerPort"] for port in container["ports"]}
            for probe in probes:
                port = (probe.get("tcpSocket") or probe["httpGet"])["port"]
                assert port in ports or port in ports.values(), (str(pod), probe)


def test_only_the_submitting_job_has_a_token_and_not_one_for_kubernetes(objects, pods):
    accounts = [each for each in objects if each["kind"] == "ServiceAccount"]
    assert [each["automountServiceAccountToken"] for each in accounts] == [False] * len(accounts)
    tokens = {
        str(pod): source["serviceAccountToken"]["audience"]
        for pod in pods
        for volume in pod.spec["volumes"]
        for source in volume.get("projected", {}).get("sources", [])
    }
    assert tokens == {"Job/darkroom-submit": "pipelines.kubeflow.org"}


def test_everything_that_a_pod_names_exists(objects, pods):
    made = {(each["kind"], each["metadata"]["name"]) for each in objects}
    for kustomization in FOLDER.rglob("kustomization.yaml"):
        generators = yaml.safe_load(kustomization.read_text()).get("configMapGenerator", [])
        made |= {("ConfigMap", each["name"]) for each in generators}
    named = set()
    for pod in pods:
        named.add(("ServiceAccount", pod.spec["serviceAccountName"]))
        volumes = {each["name"]: each for each in pod.spec["volumes"]}
        mounted = {
            mount["name"] for each in pod.spec["containers"] for mount in each["volumeMounts"]
        }
        claims = {"journal"} if pod.name == "darkroom-dispatcher" else set()
        assert mounted == set(volumes) | claims, str(pod)
        for volume in volumes.values():
            if claim := volume.get("persistentVolumeClaim"):
                named.add(("PersistentVolumeClaim", claim["claimName"]))
            if config := volume.get("configMap"):
                named.add(("ConfigMap", config["name"]))
        for container in pod.spec["containers"]:
            for source in container.get("envFrom", []):
                if "secretRef" in source:
                    assert source["secretRef"] == {"name": "darkroom-store", "optional": True}
                else:
                    named.add(("ConfigMap", source["configMapRef"]["name"]))
    assert named <= made
    assert {name for kind, name in named if kind == "ConfigMap"} == {
        "darkroom",
        "darkroom-pipeline",
    }


# Images


def test_images_are_ours_by_one_name_or_have_a_version(pods):
    images = Counter(each["image"] for pod in pods for each in pod.spec["containers"])
    assert images == {
        "darkroom": 6,
        "registry.example.com/my-training:1": 1,
        "tensorflow/serving": 1,
    }
    tags = {}
    for path in FOLDER.rglob("kustomization.yaml"):
        for each in yaml.safe_load(path.read_text()).get("images", []):
            tags[path.parent.name] = each["name"], each["newTag"]
    assert tags == {
        "wiring": ("darkroom", __version__),
        "serving": ("tensorflow/serving", "2.20.0"),
    }


# Services


def _count_matches(selector: dict[str, str], pods) -> list:
    return [pod for pod in pods if selector.items() <= pod.labels.items()]


def test_every_service_selects_ports_of_one_workload(objects, pods):
    plain = [pod for pod in pods if pod.kind != "TrainJob"]
    services = [each for each in objects if each["kind"] == "Service"]
    assert len(services) == 3
    for service in services:
        (pod,) = _count_matches(service["spec"]["selector"], plain)
        ports = [port for each in pod.spec["containers"] for port in each["ports"]]
        numbers = {port["name"]: port["containerPort"] for port in ports}
        for port in service["spec"]["ports"]:
            assert numbers[port["targetPort"]] == port["port"], service["metadata"]["name"]


def test_selectors_select_their_own_pods(objects):
    for each in objects:
        if each["kind"] in ("Deployment", "StatefulSet"):
            labels = each["spec"]["template"]["metadata"]["labels"]
            assert each["spec"]["selector"]["matchLabels"].items() <= labels.items()
            assert (
                each["spec"].get("serviceName", each["metadata"]["name"])
                == (each["metadata"]["name"])
            )


def test_every_address_of_ours_is_a_service_with_its_port(objects, pods):
    ports = {
        (each["metadata"]["name"], port["port"])
        for each in objects
        if each["kind"] == "Service"
        for port in each["spec"]["ports"]
    }
    named = set()
    for pod in pods:
        for container in pod.spec["containers"]:
            command, environment = pod.expand(container)
            for text in [*command, *environment.values()]:
                found = re.findall(r"(?:^|[/=.\" ])(darkroom-[a-z-]+):(\d+)", text)
                named |= {(host, int(port)) for host, port in found}
    assert named <= ports
    assert {host for host, _ in named} == {
        "darkroom-dispatcher",
        "darkroom-training",
    }


# Commands


def _find_command(pod, container) -> list[str]:
    """The command of a container, or the one that its shell ends with."""
    command, _ = pod.expand(container)
    if command[:2] != ["sh", "-ec"]:
        return command
    start, last = command[2].rstrip().rpartition("\n")[::2]
    assert last == 'exec python -m darkroom.cli "$@"'
    assert "exec" not in start
    return ["python", "-m", "darkroom.cli", *command[4:]]


def _list_commands(pods) -> dict[str, list[str]]:
    """The arguments of darkroom in each container that runs it."""
    commands = {}
    for pod in pods:
        for container in pod.spec["containers"]:
            if container["image"] == "darkroom" and container["name"] != "beam-workers":
                command = _find_command(pod, container)
                assert command[:3] == ["python", "-m", "darkroom.cli"]
                assert "$(" not in " ".join(command)
                commands[str(pod)] = command[3:]
    return commands


def test_the_parser_accepts_every_command_of_ours(pods):
    commands = _list_commands(pods)
    del commands["Job/darkroom-submit"]
    parsed = {name: build_parser().parse_args(command) for name, command in commands.items()}
    assert parsed["Job/darkroom-convert"].output_dir == "/data/records"
    assert parsed["StatefulSet/darkroom-dispatcher"].host == "darkroom-dispatcher"
    assert parsed["StatefulSet/darkroom-input"].dispatcher == "grpc://darkroom-dispatcher:5050"
    assert parsed["StatefulSet/darkroom-input"].host == "darkroom-input-1.darkroom-input"
    assert parsed["Job/darkroom-training"].strategy == "multi_worker"
    assert parsed["Job/darkroom-training"].data == ["/data/training/.data"]
    assert commands["Job/darkroom-training"] == commands["TrainJob/training"]


def test_all_processes_and_starts_of_a_training_read_the_version_of_the_first(pods, tmp_path):
    shells = [
        container["command"][2]
        for pod in pods
        for container in pod.spec["containers"]
        if container.get("command", [""])[0] == "sh"
    ]
    assert len(shells) == 2
    assert len(set(shells)) == 1
    (tmp_path / "python").write_text('#!/bin/sh\nreadlink -f "$3" >> "$LOG"\n')
    (tmp_path / "python").chmod(0o755)
    environment = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "LOG": str(tmp_path / "log")}
    command = ["sh", "-ec", shells[0].replace("/data/", f"{tmp_path}/"), "darkroom"]
    link = tmp_path / "records"
    for version in ("none yet", "1", "2", "3"):
        link.unlink(missing_ok=True)
        if version != "none yet":
            (tmp_path / version).mkdir()
            link.symlink_to(version)
        subprocess.run([*command, f"{tmp_path}/training/.data"], env=environment, check=True)
    found = (tmp_path / "log").read_text().splitlines()
    assert found[1:] == [str(tmp_path / "1")] * 3


def test_the_parser_accepts_the_command_that_submits(pods):
    command = _list_commands(pods)["Job/darkroom-submit"]
    parsed = build_parser().parse_args(command)
    assert parsed.host == "http://ml-pipeline.kubeflow:8888"
    assert parsed.target == "kubeflow"
    given = {name: parsed.set[name] for name in ("image", "root", "push_to")}
    assert given == {
        "image": "darkroom",
        "root": "gs://my-bucket/pipelines",
        "push_to": "gs://my-bucket/pushed",
    }


@pytest.mark.parametrize(
    ("name", "host"),
    [
        ("darkroom-training", "darkroom-training-{}.darkroom-training"),
        ("training", "training-node-0-{}.training"),
    ],
)
def test_each_training_process_finds_itself_and_the_others(
    name, host, objects, pods, monkeypatch: pytest.MonkeyPatch
):
    """The names are those that Kubernetes gives to pods of an indexed Job, and Trainer to nodes."""
    (job,) = [
        each
        for each in objects
        if each["metadata"]["name"] == name and each["kind"] in ("Job", "TrainJob")
    ]
    spec = job["spec"]
    number = spec["completions"] if job["kind"] == "Job" else spec["trainer"]["numNodes"]
    assert spec.get("parallelism", number) == number
    (pod,) = [pod for pod in pods if pod.name == name and pod.kind == job["kind"]]
    (container,) = pod.spec["containers"]
    for index in range(number):
        _, environment = pod.expand(container, WORKER=str(index))
        monkeypatch.setenv("TF_CONFIG", environment["TF_CONFIG"])
        assert read_cluster() == Cluster(index, number)
        assert json.loads(environment["TF_CONFIG"])["cluster"] == {
            "worker": [f"{host.format(other)}:2222" for other in range(number)]
        }


def test_a_pytorch_training_starts_the_example_by_torchrun_and_has_shared_memory(pods):
    (pod,) = [pod for pod in pods if pod.name == "pytorch"]
    (container,) = pod.spec["containers"]
    command, _ = pod.expand(container)
    assert command == ["torchrun", "train_torch.py", "/data/records", "/data/pytorch"]
    assert (ROOT / "examples" / command[1]).is_file()
    mounts = {each["mountPath"]: each["name"] for each in container["volumeMounts"]}
    (memory,) = [each for each in pod.spec["volumes"] if each["name"] == mounts["/dev/shm"]]
    assert memory["emptyDir"]["medium"] == "Memory"


def test_the_manager_of_a_patch_has_a_domain_as_the_webhook_of_trainer_wants(objects):
    (job,) = [each for each in objects if each["metadata"]["name"] == "pytorch"]
    (patch,) = job["spec"]["runtimePatches"]
    assert re.fullmatch(r"[a-z0-9-]+(\.[a-z0-9-]+)+/[\w.-]+", patch["manager"])


def test_the_batch_size_can_be_divided_by_the_processes(objects, pods):
    (job,) = [each for each in objects if each["metadata"]["name"] == "training"]
    for pod in pods:
        if str(pod) == "TrainJob/training":
            command = _find_command(pod, pod.spec["containers"][0])
            batch_size = build_parser().parse_args(command[3:]).batch_size
            assert batch_size % job["spec"]["trainer"]["numNodes"] == 0
