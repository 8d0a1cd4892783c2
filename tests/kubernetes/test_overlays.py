"""kubectl renders every overlay, and two releases of Kubernetes accept it, strictly."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from darkroom import __version__
from darkroom.pipelines.config import make_config

from .conftest import CHOSEN, FOLDER, render, render_with_choices

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

kubernetes_validate = pytest.importorskip("kubernetes_validate", reason="needs the extra [dev]")

OVERLAYS = ("gke", "kfp-store", "s3")
RELEASES = ("1.33", "1.37")
# Checked in tests/kubernetes/test_models.py.
OF_OPERATORS = {"InferenceService", "ServingRuntime", "TrainJob", "TrainingRuntime"}

pytestmark = [
    pytest.mark.heavy,
    pytest.mark.skipif(not shutil.which("kubectl"), reason="needs kubectl"),
]


@pytest.fixture(scope="module")
def plain() -> dict[str, list[dict[str, Any]]]:
    """What each overlay has when nobody has chosen more."""
    return {overlay: list(yaml.safe_load_all(render(overlay))) for overlay in OVERLAYS}


@pytest.fixture(scope="module")
def rendered(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[dict[str, Any]]]:
    """What each overlay has with the components that need more than Kubernetes."""
    folder = tmp_path_factory.mktemp("chosen")
    texts = {
        overlay: render_with_choices(overlay, chosen, folder / overlay)
        for overlay, chosen in CHOSEN.items()
    }
    return {overlay: list(yaml.safe_load_all(text)) for overlay, text in texts.items()}


def _find(objects, kind: str, name: str) -> dict[str, Any]:
    (found,) = [
        each for each in objects if (each["kind"], each["metadata"]["name"]) == (kind, name)
    ]
    return found


@pytest.mark.parametrize("release", RELEASES)
def test_kubernetes_accepts_every_object(rendered, release):
    different = {
        json.dumps(each, sort_keys=True): each for objects in rendered.values() for each in objects
    }
    checked = [each for each in different.values() if each["kind"] not in OF_OPERATORS]
    for each in checked:
        kubernetes_validate.validate(each, release, strict=True)
    assert len(checked) > 40


def test_a_cluster_without_operators_takes_every_overlay_as_it_is(plain):
    for objects in plain.values():
        groups = {each["apiVersion"].rpartition("/")[0] for each in objects}
        assert groups == {
            "",
            "apps",
            "batch",
            "networking.k8s.io",
            "policy",
            "rbac.authorization.k8s.io",
        }
        assert not OF_OPERATORS & {each["kind"] for each in objects}
        jobs = {each["metadata"]["name"] for each in objects if each["kind"] == "Job"}
        assert jobs == {"darkroom-submit", "darkroom-convert", "darkroom-training"}


def _list_labels(value: Any) -> list[dict[str, str]]:
    """Returns the labels of all pods that an object describes, at any depth."""
    if isinstance(value, list):
        return [found for each in value for found in _list_labels(each)]
    if not isinstance(value, dict):
        return []
    inner = [found for each in value.values() for found in _list_labels(each)]
    template, predictor = value.get("template"), value.get("predictor")
    if isinstance(template, dict) and "containers" in template.get("spec", {}):
        inner.append(template["metadata"]["labels"])
    return [*inner, predictor["labels"]] if isinstance(predictor, dict) else inner


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_policies_select_our_own_pods_and_no_other_one_of_the_namespace(rendered, overlay):
    ours = "app.kubernetes.io/instance"
    labels = [found for each in rendered[overlay] for found in _list_labels(each)]
    assert len(labels) == (6 if overlay == "s3" else 7)
    assert {each[ours] for each in labels} == {"darkroom"}
    policies = [each for each in rendered[overlay] if each["kind"] == "NetworkPolicy"]
    for policy in policies:
        selected = policy["spec"]["podSelector"].get("matchLabels", {})
        name = selected.get("app.kubernetes.io/name", "")
        assert selected.get(ours) == "darkroom" or name.startswith("darkroom-"), policy


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_all_is_in_one_namespace_for_restricted_pods_and_no_job_starts_by_itself(rendered, overlay):
    objects = rendered[overlay]
    labels = _find(objects, "Namespace", "darkroom")["metadata"]["labels"]
    assert labels["pod-security.kubernetes.io/enforce"] == "restricted"
    assert labels["app.kubernetes.io/part-of"] == "kubeflow-profile"
    inside = [each for each in objects if each["kind"] != "Namespace"]
    assert {each["metadata"]["namespace"] for each in inside} == {"darkroom"}
    jobs = [each for each in objects if each["kind"] in ("Job", "TrainJob")]
    assert [each["spec"]["suspend"] for each in jobs] == [True] * (
        4 if overlay == "kfp-store" else 3
    )
    (binding,) = [each for each in objects if each["kind"] == "RoleBinding"]
    account = {"kind": "ServiceAccount", "name": "darkroom-submit", "namespace": "darkroom"}
    assert binding["subjects"] == [account]


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_images_and_locations_are_named_once(rendered, overlay):
    objects = rendered[overlay]
    text = json.dumps(objects)
    images = set(re.findall(r'"image": "([^"]+)"', text))
    ours = f"registry.example.com/darkroom:{__version__}"
    assert {each for each in images if "darkroom" in each} == {ours}
    job = _find(objects, "Job", "darkroom-submit")
    (container,) = job["spec"]["template"]["spec"]["containers"]
    assert {"name": "IMAGE", "value": ours} in container["env"]
    settings = _find(objects, "ConfigMap", "darkroom")["data"]
    service = _find(objects, "InferenceService", "darkroom")
    assert service["spec"]["predictor"]["model"]["storageUri"] == settings["PUSH_TO"]
    assert {"DATA", "ROOT", "KFP_HOST"} <= set(settings)


@pytest.mark.parametrize(
    ("overlay", "key", "value"),
    [
        ("gke", "iam.gke.io/gcp-service-account", "{}@my-project.iam.gserviceaccount.com"),
        ("s3", "eks.amazonaws.com/role-arn", "arn:aws:iam::111122223333:role/{}"),
    ],
)
def test_pods_that_use_the_store_have_an_identity_and_no_key(rendered, overlay, key, value):
    accounts = [each for each in rendered[overlay] if each["kind"] == "ServiceAccount"]
    found = {each["metadata"]["name"]: each["metadata"].get("annotations") for each in accounts}
    users = ("darkroom-serving", "darkroom-submit", "darkroom-worker")
    assert found == {name: {key: value.format(name)} for name in users}
    assert not any("secrets" in each for each in accounts)


@pytest.mark.parametrize(
    ("overlay", "secrets"),
    [
        ("gke", {}),
        (
            "kfp-store",
            {
                "AWS_ACCESS_KEY_ID": "mlpipeline-minio-artifact/accesskey",
                "AWS_SECRET_ACCESS_KEY": "mlpipeline-minio-artifact/secretkey",
            },
        ),
        ("s3", {}),
    ],
)
def test_pipeline_tasks_use_the_same_store_as_the_other_pods(rendered, overlay, secrets):
    objects = rendered[overlay]
    settings = _find(objects, "ConfigMap", "darkroom")["data"]
    text = _find(objects, "ConfigMap", "darkroom-pipeline")["data"]["pipeline.toml"]
    values = tomllib.loads(text)
    assert values.pop("secret_env", {}) == secrets
    aws = {key: value for key, value in settings.items() if key.startswith("AWS_")}
    assert values.pop("env", {}) == aws
    places = {"data": settings["DATA"], "root": settings["ROOT"], "push_to": settings["PUSH_TO"]}
    assert make_config({**values, **places}, "kubeflow").name == "darkroom"


def test_users_of_a_shared_kubeflow_may_read_and_write_where_the_overlay_does(rendered):
    settings = _find(rendered["kfp-store"], "ConfigMap", "darkroom")["data"]
    # What the policy of a profile's keys names: pipelines-profile-controller/sync.py of 2.15 on.
    allowed = "s3://mlpipeline/shared/"
    assert settings["DATA"].startswith(allowed)
    assert settings["PUSH_TO"].startswith(allowed)
    assert settings["ROOT"] == ""


def test_overlays_have_no_secrets(rendered):
    for objects in rendered.values():
        assert "Secret" not in {each["kind"] for each in objects}
        settings = _find(objects, "ConfigMap", "darkroom")["data"]
        assert not re.search("SECRET|ACCESS_KEY|TOKEN|PASSWORD", " ".join(settings))


def test_the_nightly_update_runs_in_the_pod_of_the_conversion(rendered):
    nightly = _find(rendered["gke"], "CronJob", "darkroom-nightly")["spec"]
    assert nightly["concurrencyPolicy"] == "Forbid"
    pod = nightly["jobTemplate"]["spec"]["template"]
    job = _find(rendered["gke"], "Job", "darkroom-convert")["spec"]["template"]
    (container,) = pod["spec"]["containers"]
    (converter,) = job["spec"]["containers"]
    # The same Secret as of pipelines, which need not be there.
    secret = {"name": "webhook", "key": "url", "optional": True}
    webhook = {"name": "DARKROOM_WEBHOOK", "valueFrom": {"secretKeyRef": secret}}
    own = {"command": ["sh", "-ec"], "args": container["args"], "env": [webhook]}
    same = {**converter, **own}
    assert pod == {**job, "spec": {**job["spec"], "containers": [same]}}


def _list_resources(value: Any) -> Iterator[dict[str, dict[str, str]]]:
    """Yields the resources of all containers that an object describes, at any depth."""
    if isinstance(value, dict) and "memory" in value.get("requests", {}):
        yield value
    elif isinstance(value, dict | list):
        for each in value.values() if isinstance(value, dict) else value:
            yield from _list_resources(each)


def test_containers_have_a_limit_of_cores_only_where_that_is_chosen(rendered):
    """And it is not less than what they request, which Kubernetes would refuse."""
    found = {overlay: list(_list_resources(rendered[overlay])) for overlay in OVERLAYS}
    assert {name: len(each) for name, each in found.items()} == {"gke": 7, "kfp-store": 7, "s3": 6}
    for name, every in found.items():
        limits = {each["limits"].get("cpu") for each in every}
        assert limits == ({None} if name == "s3" else {"4"})
        assert {each["requests"]["cpu"] for each in every} <= {"250m", "500m", "1", "4"}


def test_every_account_pulls_from_a_private_registry_where_that_is_chosen(rendered):
    secrets = {
        overlay: [
            each.get("imagePullSecrets") for each in objects if each["kind"] == "ServiceAccount"
        ]
        for overlay, objects in rendered.items()
    }
    assert secrets == {
        "gke": [[{"name": "darkroom-registry"}]] * 3,
        "kfp-store": [None] * 3,
        "s3": [None] * 3,
    }


DOCKER = """#!/bin/sh
[ "$1 $2 $3 $4 $5" = "buildx imagetools inspect --format {{.Manifest.Digest}}" ] || exit 9
echo "sha256:$(printf %s "$6" | sha256sum | cut -c 1-64)"
"""


def test_tags_are_pinned_and_pinned_again(tmp_path, monkeypatch: pytest.MonkeyPatch):
    docker = tmp_path / "bin" / "docker"
    docker.parent.mkdir()
    docker.write_text(DOCKER)
    docker.chmod(0o755)
    monkeypatch.setenv("PATH", str(docker.parent), prepend=os.pathsep)
    folder = tmp_path / "kubernetes"
    render_with_choices("gke", ["serving"], folder)
    command = [sys.executable, FOLDER.parent / "tools" / "pin_images.py", folder]
    texts = []
    for _ in range(2):
        subprocess.run(command, check=True)
        texts.append(render("gke", folder))
    names = [f"registry.example.com/darkroom:{__version__}", "tensorflow/serving:2.20.0"]
    assert set(re.findall(r"image: (.*)", texts[0])) == {
        f"{name}@sha256:{hashlib.sha256(name.encode()).hexdigest()}" for name in names
    }
    assert texts[0] == texts[1]


def test_the_train_job_is_only_in_the_overlay_with_kubeflow(rendered):
    kinds = {name: {each["kind"] for each in objects} for name, objects in rendered.items()}
    assert {name for name, found in kinds.items() if "TrainJob" in found} == {"kfp-store"}
    for name in ("gke", "s3"):
        training = _find(rendered[name], "Job", "darkroom-training")
        assert training["spec"]["completionMode"] == "Indexed"
