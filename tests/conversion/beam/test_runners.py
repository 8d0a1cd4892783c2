import logging

import pytest
from apache_beam.options.pipeline_options import (
    DebugOptions,
    DirectOptions,
    GoogleCloudOptions,
    SetupOptions,
    StandardOptions,
    WorkerOptions,
)

from darkroom.conversion.beam.options import build_options
from darkroom.errors import UsageError
from darkroom.options.runners import DATAFLOW_RUNNER, LOCAL_RUNNER, parse_runner


@pytest.mark.parametrize(
    ("name", "runner"),
    [
        (None, LOCAL_RUNNER),
        ("DirectRunner", LOCAL_RUNNER),
        ("FNAPIRUNNER", LOCAL_RUNNER),
        ("DataflowRunner", DATAFLOW_RUNNER),
        ("DataFlowRunner", DATAFLOW_RUNNER),
        ("dataflowrunner", DATAFLOW_RUNNER),
        ("flinkrunner", "FlinkRunner"),
        ("SPARKRUNNER", "SparkRunner"),
        ("PortableRunner", "PortableRunner"),
        ("prismRunner", "PrismRunner"),
    ],
)
def test_runners_are_known_in_any_letter_case(name, runner):
    assert parse_runner(name) == runner


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("PrismRuner", "Did you mean PrismRunner?"),
        ("dataflow", "Did you mean DataflowRunner?"),
        (5, "Known: DataflowRunner, FlinkRunner, FnApiRunner, "),
    ],
)
def test_an_unknown_runner_is_an_error(name, hint):
    with pytest.raises(UsageError, match=f"Unknown runner {name!r}") as caught:
        parse_runner(name)
    assert caught.value.hint.startswith(hint)


def test_options_have_the_types_of_beam():
    options = build_options(
        LOCAL_RUNNER,
        {
            "job_name": "a b",
            "num_workers": 7,
            "experiments": ["x", "y"],
            "direct_num_workers": 2,
            "save_main_session": True,
            "labels": None,
        },
    )
    assert options.view_as(StandardOptions).runner == "FnApiRunner"
    assert options.view_as(GoogleCloudOptions).job_name == "a b"
    assert options.view_as(WorkerOptions).num_workers == 7
    assert options.view_as(DebugOptions).experiments == ["x", "y"]
    assert options.view_as(DirectOptions).direct_num_workers == 2
    assert options.view_as(SetupOptions).save_main_session is True
    assert options.view_as(GoogleCloudOptions).labels is None


@pytest.mark.parametrize("name", ["machine_type", "worker_machine_type"])
def test_an_option_is_known_by_all_its_names(name):
    options = build_options(DATAFLOW_RUNNER, {name: "n2-standard-4"})
    assert options.view_as(WorkerOptions).machine_type == "n2-standard-4"


@pytest.mark.parametrize(
    "given", [{"use_public_ips": False}, {"no_use_public_ips": True}, {"use_public_ips": True}]
)
def test_an_option_can_be_switched_off(given):
    options = build_options(DATAFLOW_RUNNER, {**given, "streaming": False})
    assert options.view_as(WorkerOptions).use_public_ips is given.get("use_public_ips", False)
    assert options.view_as(StandardOptions).streaming is False


def test_an_unknown_option_is_an_error_with_a_suggestion():
    with pytest.raises(UsageError, match=r"Beam has no option 'num_worker'.*num_workers"):
        build_options(LOCAL_RUNNER, {"num_worker": 7})
    with pytest.raises(UsageError, match=r"no option 'zzzzzz'.*documentation"):
        build_options(LOCAL_RUNNER, {"zzzzzz": 7})


def test_a_value_of_another_type_is_rejected(capsys):
    with pytest.raises(UsageError, match="num_workers: invalid int value: 'many'"):
        build_options(LOCAL_RUNNER, {"num_workers": "many"})
    assert capsys.readouterr().err == ""


def test_the_arguments_of_the_process_are_not_read(monkeypatch):
    monkeypatch.setattr("sys.argv", ["darkroom", "--num_workers=9"])
    assert build_options(LOCAL_RUNNER, {}).view_as(WorkerOptions).num_workers is None


@pytest.mark.parametrize(
    ("runner", "options"),
    [
        ("FlinkRunner", {"flink_master": "flink-jobmanager:8081", "parallelism": "32"}),
        ("SparkRunner", {"spark_master_url": "spark://spark-master:7077"}),
    ],
)
def test_clusters_take_the_options_that_the_page_on_scaling_names(runner, options):
    worker = {"environment_type": "DOCKER", "environment_config": "my-registry/darkroom:1"}
    found = build_options(runner, {**options, **worker}).get_all_options(drop_default=True)
    typed = {n: int(v) if v.isdigit() else v for n, v in options.items()}
    assert found == {"runner": runner, **typed, **worker}


def test_credentials_are_not_options():
    with pytest.raises(UsageError, match="'s3_secret_access_key' is not used") as caught:
        build_options(LOCAL_RUNNER, {"s3_secret_access_key": "hunter2"})
    assert "hunter2" not in str(caught.value)


def test_options_leave_the_log_of_the_process_alone(monkeypatch):
    monkeypatch.setattr(logging.getLogger(), "handlers", [])
    build_options("FlinkRunner", {"parallelism": 2})
    assert logging.getLogger().handlers == []


@pytest.mark.parametrize("runner", ["FlinkRunner", "SparkRunner", "PortableRunner", "PrismRunner"])
def test_a_job_server_gets_more_options(runner):
    options = build_options(runner, {"number_of_execution_retries": 3})
    found = options.get_all_options(retain_unknown_options=True)
    assert found["number_of_execution_retries"] == "3"
    with pytest.raises(UsageError, match=r"no option 'paralelism'.*parallelism"):
        build_options(runner, {"paralelism": 2})
