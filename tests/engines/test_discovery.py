"""An engine by its name and its address: what Beam is told of it."""

from __future__ import annotations

import logging
import re
import signal
from email.message import Message
from pathlib import Path
from urllib.error import HTTPError

import pytest
from apache_beam.runners.portability.job_server import JavaJarJobServer
from apache_beam.version import __version__ as beam_version
from tests.pictures import write_label_folders

from darkroom.cli import main
from darkroom.conversion.beam.runners import build_options, find_options, list_choices
from darkroom.conversion.convert import convert
from darkroom.errors import StorageError, UsageError
from darkroom.options.conversion import ConversionOptions
from darkroom.options.targets import EngineOptions

from ..flink_rest import HERE, FlinkRest, serve_flink

VERSION = list_choices("flink_version")[0]
FLINK_JAR = f"beam-runners-flink-{VERSION}-job-server"
SPARK_JAR = "beam-runners-spark-3-job-server"
ELSEWHERE = "pekko.tcp://flink@192.0.2.7:6122/user/rpc/taskmanager_0"


@pytest.fixture
def flink():
    with serve_flink() as rest:
        rest.version, rest.managers = f"{VERSION}.9", (HERE, HERE.replace("127.0.0.1", "localhost"))
        yield rest


@pytest.fixture(autouse=True)
def jars(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with both job servers, a machine with Java, and nothing that can be loaded."""
    folder = tmp_path / "jars"
    java = tmp_path / "java/bin/java"
    for path in [java, *(folder / f"{name}-{beam_version}.jar" for name in (FLINK_JAR, SPARK_JAR))]:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "java"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("DARKROOM_JARS", str(folder))

    def load(url: str, *_: object) -> str:
        try:
            raise HTTPError(url, 404, "Not Found", Message(), None)
        except HTTPError as error:
            text = f"Unable to fetch remote job server jar at {url}: {error}. If no Internet access"
            raise RuntimeError(f"{text} at runtime, stage the jar at /cache/x.jar")  # noqa: B904

    monkeypatch.setattr(JavaJarJobServer, "local_jar", load)
    return folder


@pytest.fixture(autouse=True)
def process():
    """What a command changes of the process is changed back."""
    logger, numbers = logging.getLogger("apache_beam"), (signal.SIGINT, signal.SIGTERM)
    level, before = logger.level, [signal.getsignal(number) for number in numbers]
    yield
    logger.setLevel(level)
    for number, handler in zip(numbers, before, strict=True):
        signal.signal(number, handler)


def _find(flink: FlinkRest, workers: str | None = None, **given: object) -> dict[str, object]:
    engine = EngineOptions(engine="flink", engine_url=flink.url, engine_workers=workers)
    return find_options(engine, given)


def test_flink_on_this_machine_needs_its_address_alone(flink, jars):
    found = _find(flink)
    assert found == {
        "flink_master": flink.url,
        "flink_version": VERSION,
        "parallelism": 4,
        "environment_type": "LOOPBACK",
        "flink_job_server_jar": str(jars / f"{FLINK_JAR}-{beam_version}.jar"),
    }
    build_options("FlinkRunner", found)


def test_what_is_given_replaces_what_is_found(flink):
    given = {
        "parallelism": 2,
        "flink_version": list_choices("flink_version")[-1],
        "flink_job_server_jar": "mine.jar",
        "environment_type": "EXTERNAL",
        "environment_config": "pool:1",
    }
    assert _find(flink, "command=/x", **given) == {"flink_master": flink.url, **given}
    # A job server that runs needs no jar here.
    assert "flink_job_server_jar" not in _find(flink, job_endpoint="jobs:8099")


def test_more_tasks_than_slots_are_told_before_anything_starts(flink, caplog):
    assert _find(flink, "command=/x", parallelism=64)["parallelism"] == 64
    assert _find(flink, "command=/x", parallelism="4")["parallelism"] == "4"
    # A notebook of an earlier test may end meanwhile, and say so.
    said = [each.message for each in caplog.records if each.name.startswith("darkroom")]
    assert said == [
        f"parallelism is 64, and Flink at {flink.url} has 4 slots: the job waits until there are "
        "as many. Leave parallelism out to take all."
    ]


def test_workers_elsewhere_are_named_by_one_option(flink):
    flink.managers = (ELSEWHERE,)
    for workers, environment, config in (
        ("image=registry:5000/darkroom:1", "DOCKER", "registry:5000/darkroom:1"),
        ("pool=localhost:50000", "EXTERNAL", "localhost:50000"),
        ("command=/opt/boot.sh", "PROCESS", {"command": "/opt/boot.sh"}),
    ):
        found = _find(flink, workers)
        assert (found["environment_type"], found["environment_config"]) == (environment, config)


def test_workers_elsewhere_must_be_named(flink):
    # A job manager on this machine, as in a container, says nothing of its task managers.
    flink.managers = (HERE, ELSEWHERE)
    with pytest.raises(UsageError, match="is not on this machine alone") as stop:
        _find(flink)
    assert all(f"{kind}=" in stop.value.hint for kind in ("image", "pool", "command"))


def test_a_worker_pool_is_not_shared(flink):
    flink.managers = (HERE, HERE)
    with pytest.raises(UsageError, match="several task managers on one machine"):
        _find(flink, "pool=localhost:50000")
    assert _find(flink, "command=/x")["environment_type"] == "PROCESS"


def test_a_version_that_beam_does_not_know_is_told_with_those_it_knows(flink):
    flink.version = "1.5.2"
    with pytest.raises(UsageError, match=r"is 1\.5\.2, for which this version of Beam") as stop:
        _find(flink)
    assert ", ".join(list_choices("flink_version")) in stop.value.hint


def test_a_cluster_without_a_slot_is_told(flink):
    flink.slots = 0
    with pytest.raises(StorageError, match="has no task manager, and so no slot for a job"):
        _find(flink)


def test_the_job_server_is_looked_for_in_three_places(flink, jars, tmp_path, monkeypatch):
    (own,) = jars.glob("*flink*")
    home = tmp_path / f"home/.m2/repository/org/apache/beam/{FLINK_JAR}/{beam_version}" / own.name
    home.parent.mkdir(parents=True)
    own.rename(home)
    assert _find(flink)["flink_job_server_jar"] == str(home)
    home.unlink()
    with pytest.raises(StorageError) as stop:
        _find(flink)
    assert f"job server {FLINK_JAR}, version {beam_version}, is not here" in stop.value.message
    assert stop.value.message.endswith(f"/{own.name}: HTTP Error 404: Not Found.")
    assert "stage the jar" not in str(stop.value)
    for named in (own.name, str(home.parent), "DARKROOM_JARS", "flink_job_server_jar"):
        assert named in stop.value.hint
    monkeypatch.setattr(JavaJarJobServer, "local_jar", lambda url, *_: f"/cache/{Path(url).name}")
    assert _find(flink)["flink_job_server_jar"] == f"/cache/{own.name}"


def test_a_wrong_name_of_the_option_for_the_jar_is_not_passed_on(flink):
    with pytest.raises(UsageError, match="no option 'job_server_jar'") as stop:
        _find(flink, job_server_jar="a.jar")
    assert stop.value.hint == "Did you mean flink_job_server_jar?"


def test_java_is_looked_for_before_a_job_server_is_loaded(flink, jars, tmp_path):
    (tmp_path / "java/bin/java").unlink()
    next(jars.glob("*flink*")).unlink()
    with pytest.raises(StorageError, match="The job server of Flink needs Java"):
        _find(flink)


def _find_other(name: str, url: str | None = None, workers: str | None = None, **given: object):
    return find_options(EngineOptions(engine=name, engine_url=url, engine_workers=workers), given)


def test_spark_has_one_job_server(jars):
    jar = str(jars / f"{SPARK_JAR}-{beam_version}.jar")
    found = _find_other("spark", "spark://192.0.2.7:7077", "image=me/darkroom:1")
    assert found == {
        "spark_master_url": "spark://192.0.2.7:7077",
        "environment_type": "DOCKER",
        "environment_config": "me/darkroom:1",
        "spark_job_server_jar": jar,
        # Java 17 would end the job server.
        "job_server_jvm_properties": ["--add-exports=java.base/sun.nio.ch=ALL-UNNAMED"],
    }
    running = _find_other("spark", "local[4]", job_endpoint="jobs:8099")
    assert "job_server_jvm_properties" not in running
    for url in ("local[4]", "spark://127.0.0.1:7077"):
        assert _find_other("spark", url)["environment_type"] == "LOOPBACK"
    with pytest.raises(UsageError, match=r"Spark at spark://192\.0\.2\.7:7077 is not on"):
        _find_other("spark", "spark://192.0.2.7:7077")


def test_prism_is_a_program_here_or_a_server(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert _find_other("prism") == {}
    (tmp_path / "prism").touch(0o755)
    assert _find_other("prism") == {"prism_location": str(tmp_path / "prism")}
    for url in ("localhost:8073", "http://localhost:8073/"):
        found = _find_other("prism", url)
        assert found == {"job_endpoint": "localhost:8073", "environment_type": "LOOPBACK"}


def test_dataflow_takes_an_image():
    assert _find_other("dataflow") == {}
    assert _find_other("dataflow", None, "image=gcr/x:1", num_workers=3) == {
        "sdk_container_image": "gcr/x:1",
        "num_workers": 3,
    }
    with pytest.raises(UsageError, match=r"engine_url .* is not for Dataflow"):
        _find_other("dataflow", "http://x")
    with pytest.raises(UsageError, match=r"Dataflow takes image=NAME .* only"):
        _find_other("dataflow", None, "pool=x:1")


@pytest.mark.parametrize("name", ["flink", "spark"])
def test_an_engine_on_a_cluster_needs_its_address(name):
    with pytest.raises(UsageError, match=f"The address of {name} is missing: engine_url "):
        _find_other(name)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"engine": "storm"}, "engine is 'storm'"),
        ({"engine_url": "http://x:1"}, "engine_url needs an engine"),
        ({"engine_workers": "image=x"}, "engine_workers needs an engine"),
        ({"engine": "flink", "engine_workers": "me/darkroom:1"}, "expected KIND=VALUE"),
        ({"engine": "flink", "engine_workers": "image="}, "expected KIND=VALUE"),
        ({"engine": "flink", "engine_url": "http://me:secret@x:1"}, "engine_url contains a user"),
    ],
)
def test_options_that_do_not_fit_are_told(values, message):
    with pytest.raises(UsageError, match=re.escape(message)) as stop:
        EngineOptions(**values)
    assert "secret" not in str(stop.value)


def test_an_engine_and_a_runner_cannot_be_used_together(tmp_path):
    write_label_folders(tmp_path / "src", 1)
    with pytest.raises(UsageError, match="engine and runner cannot be used together"):
        convert(
            tmp_path / "src",
            tmp_path / "out",
            runner="PrismRunner",
            options=ConversionOptions(engine="prism"),
        )


@pytest.mark.slow
def test_a_command_converts_on_what_it_finds(flink, tmp_path, capfd):
    write_label_folders(tmp_path / "src", 1)
    place = ["convert", str(tmp_path / "src"), "--output-dir", str(tmp_path / "out")]
    engine = ["--engine", "flink", "--engine-url", flink.url]
    # The embedded job service stands for the job server.
    assert main([*place, *engine, "--beam-option", "job_endpoint=embed"]) == 0
    assert (tmp_path / "out/dataset.json").exists()
