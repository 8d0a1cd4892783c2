"""The configuration of Flink: what a job survives, and what the guide says of it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from .conftest import FOLDER

yaml = pytest.importorskip("yaml")
GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "convert-on-a-cluster.md"


@pytest.fixture
def flink() -> dict:
    return yaml.safe_load((FOLDER / "components/flink/config.yaml").read_text())


def test_a_lost_machine_does_not_end_a_job(flink):
    strategy = flink["restart-strategy"]
    assert strategy["type"] == "failure-rate"
    # The job manager misses a machine after two heartbeats, in milliseconds; a loss fails so often.
    failures = 1 + 2 * flink["heartbeat"]["interval"] / 1_000 / 5
    assert strategy["failure-rate"]["delay"] == "5 s"
    assert strategy["failure-rate"]["max-failures-per-interval"] > 2 * failures


def test_the_guide_has_the_same_values(flink):
    blocks = re.findall(r"```yaml\n(.*?)```", GUIDE.read_text(), re.DOTALL)
    (shown,) = [block for block in map(yaml.safe_load, blocks) if "restart-strategy" in block]
    assert shown.items() <= flink.items()


def test_flink_gets_the_memory_that_its_containers_have(flink, pods):
    limits = {
        container["name"]: container["resources"]["limits"]["memory"]
        for pod in pods
        for container in pod.spec["containers"]
    }
    for name in ("jobmanager", "taskmanager"):
        size = flink[name]["memory"]["process"]["size"]
        assert limits[name] in (size.replace("m", "Mi"), f"{int(size[:-1]) // 1024}Gi")


def test_flink_gets_what_java_17_hides_and_room_for_the_classes_of_many_jobs(flink):
    options = flink["env"]["java"]["opts"]["all"].split()
    assert "--add-opens=java.base/java.lang=ALL-UNNAMED" in options
    assert all(re.fullmatch(r"--add-(exports|opens)=\S+/\S+=ALL-UNNAMED", each) for each in options)
    assert flink["taskmanager"]["memory"]["jvm-metaspace"]["size"] == "768m"
