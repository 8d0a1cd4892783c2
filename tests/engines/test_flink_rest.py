"""Questions to Flink's REST interface, and what it may answer."""

from __future__ import annotations

import socket
import threading

import pytest

from darkroom.engines.flink import (
    FlinkCluster,
    cancel_job,
    check_url,
    find_address,
    find_job,
    format_url,
    read_cluster,
)
from darkroom.errors import StorageError, UsageError

from ..flink_rest import JOB, serve_flink

OTHER = "f" * 32


@pytest.fixture
def flink():
    with serve_flink() as rest:
        yield rest


@pytest.mark.parametrize("address", ["jm:8081", "http://jm:8081", " http://jm:8081/ "])
def test_an_address_needs_no_scheme(address):
    assert format_url(address) == "http://jm:8081"


def test_a_cluster_says_what_it_has(flink):
    flink.managers = ("pekko.tcp://flink@172.18.0.3:34567/user/rpc/x", "akka.tcp://flink@[::1]:3/y")
    assert read_cluster(flink.url) == FlinkCluster("1.19.3", 4, ("172.18.0.3", "::1"))
    flink.managers = ("nonsense", "x://[broken")
    assert read_cluster(flink.url).task_managers == ("", "")


def test_the_newest_job_of_a_name_is_found(flink):
    assert find_job(flink.url, "mine") is None
    running = {JOB: ["nightly-mine", "RUNNING"], OTHER: ["his", "RUNNING"]}
    flink.jobs = {"a" * 32: ["mine", "FAILED"], **running}
    job = find_job(flink.url, "mine")
    assert (job.id, job.state, job.has_ended) == (JOB, "RUNNING", False)
    assert job.stop == f"curl -X PATCH {flink.url}/jobs/{JOB}"
    assert find_job(flink.url, "other") is None


def test_a_job_is_cancelled_and_its_end_awaited(flink):
    flink.jobs = {JOB: ["mine", "RUNNING"], OTHER: ["his", "RUNNING"]}
    flink.states = ["RUNNING", "CANCELLING", "CANCELED"]
    job = cancel_job(flink.url, JOB)
    assert (job.id, job.state, job.has_ended) == (JOB, "CANCELED", True)
    assert [each for each in flink.asked if "PATCH" in each] == [f"PATCH /jobs/{JOB}"]
    assert flink.jobs[OTHER] == ["his", "RUNNING"]


def test_a_job_that_does_not_end_is_not_waited_for_long(flink):
    flink.jobs, flink.states = {JOB: ["mine", "RUNNING"]}, ["CANCELLING"]
    assert cancel_job(flink.url, JOB, seconds=0).state == "CANCELLING"


def test_a_job_that_ended_by_itself_is_told(flink):
    flink.jobs, flink.states = {JOB: ["mine", "FINISHED"]}, []
    assert cancel_job(flink.url, JOB).state == "FINISHED"


def test_a_job_that_flink_does_not_cancel_is_an_error(flink):
    flink.jobs, flink.states = {JOB: ["mine", "RUNNING"]}, []
    with pytest.raises(StorageError, match=f"answered 500 to PATCH /jobs/{JOB}"):
        cancel_job(flink.url, JOB)
    with pytest.raises(StorageError, match=f"answered 404 to GET /jobs/{OTHER}"):
        cancel_job(flink.url, OTHER)


@pytest.mark.parametrize("job_id", ["../jars", f"{JOB}?mode=stop"])
def test_only_an_id_becomes_part_of_an_address(flink, job_id):
    with pytest.raises(StorageError, match="is not the id of a job"):
        cancel_job(flink.url, job_id)
    assert flink.asked == []


WRONG = ["<html>", "[]", "{}", '{"jobs": 1, "slots-total": "4"}']
JOBS = [
    '{"jobs": [{"name": "mine", "jid": "; rm -rf /", "state": "RUNNING"}]}',
    '{"jobs": [{"name": "mine", "jid": "' + JOB + '", "state": "\\u001b[2J"}]}',
]


@pytest.mark.parametrize("text", WRONG + JOBS)
def test_an_answer_that_is_not_flinks_is_an_error(flink, text):
    flink.answers = {"/overview": (200, text), "/jobs/overview": (200, text)}
    with pytest.raises(StorageError, match="is not the REST interface of Flink") as stop:
        read_cluster(flink.url)
    assert "http://jobmanager:8081" in stop.value.hint
    with pytest.raises(StorageError, match="is not the REST interface of Flink"):
        find_job(flink.url, "mine")


@pytest.mark.parametrize("url", ["10.0.0.1:8081x", "http://flink:70000", "http://:8081"])
def test_an_address_that_is_none_says_so(url):
    with pytest.raises(UsageError, match="is not an address of Flink") as stop:
        check_url(url)
    assert "http://jobmanager:8081" in stop.value.hint


def test_a_server_that_is_not_one_of_http_is_an_error():
    with socket.create_server(("127.0.0.1", 0)) as server:
        url = f"http://127.0.0.1:{server.getsockname()[1]}"

        def serve() -> None:
            connection, _ = server.accept()
            connection.recv(1000)
            connection.sendall(b"\x15\x03\x01\x00\x02\x02\x16")
            connection.close()

        threading.Thread(target=serve, daemon=True).start()
        with pytest.raises(StorageError, match="is not the REST interface of Flink"):
            read_cluster(url)


def test_a_flink_that_does_not_answer_is_named(monkeypatch):
    # Proxies are for the way out, not for the cluster.
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        url = f"127.0.0.1:{server.getsockname()[1]}"
        said = f"cannot be reached at http://{url}: Connection refused"
        with pytest.raises(StorageError, match=said) as stop:
            read_cluster(url)
    assert stop.value.exit_code == 3


@pytest.mark.parametrize("master", [None, "[auto]"])
def test_a_master_inside_the_job_server_has_no_address(master):
    assert find_address({"flink_master": master}) == ""
    assert find_address({"flink_master": "jobs:8081"}) == "http://jobs:8081"
