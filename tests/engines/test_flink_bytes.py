"""A Flink cluster writes the bytes of a run on one machine, whatever starts its workers."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from ..kubernetes.conftest import make_pods, read_objects
from .cluster import Cluster
from .conftest import check_equal, convert, use_pools, use_processes
from .network import find_obstacle
from .pictures import write_jpegs

pytestmark = pytest.mark.flink


def test_workers_that_flink_starts(jpegs, on_flink, cluster: Cluster, tmp_path: Path):
    source, local = jpegs
    check_equal(tmp_path / "out", local, convert(source, tmp_path / "out", *on_flink))
    (job,) = cluster.list_jobs()[-1:]
    assert job["state"] == "FINISHED"


def _read_command(name: str, address: str) -> tuple[list[str], list[str]]:
    """Command and arguments of a container of kubernetes/components/flink."""
    for pod in make_pods(read_objects("components/flink/flink.yaml")):
        for container in pod.spec["containers"]:
            if container["name"] == name:
                arguments, _ = pod.expand({"args": container["args"]}, POD_IP=address)
                return container.get("command", []), arguments
    raise AssertionError(name)


@pytest.mark.skipif(bool(find_obstacle()), reason=find_obstacle())
def test_a_pool_of_workers_beside_each_task_manager(jpegs, cluster: Cluster, tmp_path: Path):
    """Everything is started by the commands of the manifest; only names are addresses here."""
    source, local = jpegs
    machine = cluster.machines[1]
    _, arguments = _read_command("job-server", machine.address)
    arguments = [each.replace("darkroom-flink-jobmanager", machine.address) for each in arguments]
    command, more = _read_command("beam-workers", machine.address)
    assert command[0] == "python"
    for number in (1, 2):
        cluster.start_pool(number, [*command[1:], *more])
    cluster.start_job_server(arguments, 8099)
    done = convert(source, tmp_path / "out", *use_pools(f"{machine.address}:8099"))
    check_equal(tmp_path / "out", local, done)
    for number in (1, 2):
        assert "Starting worker with command" in cluster.read_log(f"pool {number}")


@pytest.fixture
def store(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, str]]:
    """A store with a bucket `photos` that all machines reach: the environment of its clients."""
    server = pytest.importorskip("moto.server").ThreadedMotoServer("0.0.0.0", 0, verbose=False)
    server.start()
    address = f"{cluster.machines[0].address}:{server.get_host_and_port()[1]}"
    environment = {
        "AWS_ENDPOINT_URL": f"http://{address}",
        "AWS_ACCESS_KEY_ID": "testing",
        "AWS_SECRET_ACCESS_KEY": "secret-of-the-test",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_EC2_METADATA_DISABLED": "true",
    }
    connection = http.client.HTTPConnection(address)
    connection.request("PUT", "/photos", headers={"Host": "s3.amazonaws.com"})
    assert connection.getresponse().status == 200
    connection.close()
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    yield environment
    server.stop()


def test_images_and_records_in_a_store(cluster: Cluster, store, make_worker, tmp_path: Path):
    import boto3

    bucket = boto3.resource("s3").Bucket("photos")
    folder = write_jpegs(tmp_path / "images", 240).parent
    for path in folder.rglob("*.*"):
        bucket.upload_file(str(path), f"in/{path.relative_to(folder)}")
    options = use_processes(cluster, make_worker(store))
    assert convert("s3://photos/in/images.csv", "s3://photos/local").returncode == 0
    done = convert("s3://photos/in/images.csv", "s3://photos/out", *options)
    assert done.returncode == 0, done.stderr

    def read(output: str) -> dict[str, bytes]:
        named = json.loads(bucket.Object(f"{output}/dataset.json").get()["Body"].read())
        prefix = f"{output}/{named['dataset']}/"
        found = bucket.objects.filter(Prefix=prefix)
        return {each.key.removeprefix(prefix): each.get()["Body"].read() for each in found}

    written = read("out")
    assert json.loads(written["dataset.json"])
    assert written == read("local")
