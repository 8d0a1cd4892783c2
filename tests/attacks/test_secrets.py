"""A password between `//` and `@` of a setting is in no output, file or log of a command or task.

Nothing answers: each address has a port where nobody listens, so libraries say where they tried.
"""

from __future__ import annotations

import logging
import pickle
import traceback
from pathlib import Path

import pytest

from darkroom import storage
from darkroom.cli import main
from darkroom.cli.parser import build_parser
from darkroom.errors import StorageError
from darkroom.runtime.streams import open_patiently
from darkroom.steps.known import STEPS
from darkroom.storage import requests
from darkroom.storage.stores import retries

from ..kfp.registries import write_evaluation
from ..kfp.tasks import Artifact, Cluster

pytest.importorskip("boto3", reason="needs the extra [aws]")
pytest.importorskip("google.cloud.storage", reason="needs the extra [gcp]")

USER, SECRET = "kunigunde", "geh%2Feim"
AWAY = f"http://{USER}:{SECRET}@127.0.0.1:1"
# What darkroom, the clients of its stores and those of services read.
VARIABLES = {
    "AWS_ACCESS_KEY_ID": "id",
    "AWS_ENDPOINT_URL": AWAY,
    "AWS_SECRET_ACCESS_KEY": SECRET,
    "DARKROOM_WEBHOOK": f"http://127.0.0.1:1/{SECRET}",
    "HTTPS_PROXY": AWAY,
    "KF_PIPELINES_TOKEN": SECRET,
    "PIP_INDEX_URL": AWAY,
    "STORAGE_EMULATOR_HOST": AWAY,
}
S3, GS = "s3://photos/records", "gs://photos/records"
IN_URL = f"https://{USER}:{SECRET}@127.0.0.1:1/images.csv"
IN_BUCKET = f"gs://{USER}:{SECRET}@photos/images"
LIST = "images.csv"
PIPELINE = ["--target=kubeflow", "--set=image=registry/darkroom:1", "--set=root=s3://photos/root"]
# Each command, with places and addresses as its arguments.
COMMANDS = {
    "compile": [
        [*PIPELINE, "-o=p.yaml", f"--set=data={S3}", f"--set=registry={AWAY}"],
        [*PIPELINE, "-o=p.yaml", f"--set=data={IN_URL}"],
    ],
    "convert": [
        [S3, "--output-dir=out"],
        [GS, "--output-dir=out"],
        [IN_URL, "--output-dir=out"],
        [IN_BUCKET, "--output-dir=out"],
        [LIST, f"--output-dir={S3}"],
        [LIST, f"--output-dir={IN_BUCKET}"],
    ],
    "dataservice": [["worker", "--port=5001", f"--dispatcher=grpc://{USER}:{SECRET}@127.0.0.1:1"]],
    "demo": [["--root=s3://photos/root"]],
    "describe": [["--for=tfds", S3]],
    "diff": [[S3, GS], [GS, S3]],
    "duplicates": [[S3]],
    "embed": [[S3]],
    "evaluate": [[S3, S3]],
    "export": [[S3, S3, "--output-dir=out"]],
    "gallery": [[S3]],
    "inspect": [[S3]],
    "predict": [[S3, S3]],
    "run": [
        [f"--data={S3}", "--root=root"],
        [f"--data={IN_URL}", "--root=root"],
        [f"--data={LIST}", "--root=root", f"--registry={AWAY}"],
    ],
    "submit": [
        [*PIPELINE, f"--host={AWAY}", f"--set=data={S3}"],
        [*PIPELINE, "--host=http://127.0.0.1:1", f"--set=data={GS}"],
    ],
    "train": [[f"--data={S3}", "--checkpoint-dir=out"]],
    "validate": [[S3], [GS]],
    "verify": [[S3]],
}
# Of each task, what it is given. Where it is not a parameter, it is a file of the input.
DATASET = {"dataset_uri": S3}
TASKS = {
    "convert_images": [{"data": S3}, {"data": IN_URL}, {"data": GS, "output_dir": IN_BUCKET}],
    "validate_dataset": [DATASET, {"dataset_uri": IN_BUCKET}],
    "diff_datasets": [{"old_uri": S3, "new_uri": GS}],
    "validation_gate": [{}, {"url": AWAY}],
    "notify": [{"status": {}}, {"status": {}, "url": AWAY}],
    "dataset_statistics": [DATASET],
    "verify_dataset": [DATASET],
    "find_duplicates": [DATASET],
    "inspect_dataset": [DATASET],
    "train_classifier": [DATASET],
    "train_with_function": [{**DATASET, "function": "tests.attacks.test_secrets:count"}],
    "evaluate_classifier": [DATASET],
    "evaluate_detector": [DATASET],
    "predict_images": [{"images": [IN_URL]}],
    "register_model": [
        {"registry": "http://127.0.0.1:1", "model_name": "pets"},
        {"registry": AWAY, "model_name": "pets"},
    ],
}


@pytest.fixture(autouse=True)
def planted(monkeypatch, caplog):
    for name, value in VARIABLES.items():
        monkeypatch.setenv(name, value)
    caplog.set_level(logging.INFO)
    # One attempt is enough to say where it went: the next one would begin after the deadline.
    monkeypatch.setattr(retries, "FIRST_PAUSE_SECONDS", 1e6)
    monkeypatch.setattr(retries, "MAX_PAUSE_SECONDS", 1e6)
    monkeypatch.setattr(requests, "_stores", {})


def find_secrets(folder: Path, printed: str) -> dict[str, str]:
    """Returns what shows the user or the password, by its name."""
    files = {str(each): each for each in folder.rglob("*") if each.is_file()}
    said = {name: each.read_bytes().decode("latin-1") for name, each in files.items()}
    said["printed"] = printed
    secrets = (USER, SECRET, "geh/eim", "geh%252Feim")
    return {name: text for name, text in said.items() if any(each in text for each in secrets)}


CASES = [(name, n) for name, each in COMMANDS.items() for n in range(len(each))]


@pytest.mark.parametrize(("name", "number"), CASES)
def test_no_command_shows_a_password(name, number, tmp_path, monkeypatch, capfd, caplog):
    monkeypatch.chdir(tmp_path)
    Path(LIST).write_text("image_uri,label\nhttps://127.0.0.1:1/a.jpg,cat\n")
    code = main([name, *COMMANDS[name][number]])
    printed = "".join((*capfd.readouterr(), caplog.text))
    assert code == 2 or (code == 3 and "127.0.0.1" in printed), printed
    assert find_secrets(tmp_path, printed) == {}


@pytest.mark.parametrize(
    ("name", "number"), [(name, n) for name, each in TASKS.items() for n in range(len(each))]
)
def test_no_task_shows_a_password(name, number, tmp_path, monkeypatch, capfd, caplog):
    cluster = Cluster(tmp_path / "cluster", monkeypatch, capfd)
    inputs = {}
    for each in STEPS[name].inputs:
        if not each.optional:
            inputs[each.name] = Artifact(f"minio://mlpipeline/run-1/{each.name}")
            write_evaluation(cluster.find(inputs[each.name]))
    done = cluster.run(name, inputs, **TASKS[name][number])
    printed = "\n".join((*done.printed, caplog.text))
    # A registry that is down is a warning.
    assert done.code == 2 or "127.0.0.1" in printed, printed
    assert find_secrets(tmp_path, printed) == {}


def count(**_):
    """What `train_with_function` calls."""
    storage.read_bytes(S3)


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("AWS_ENDPOINT_URL", "http://kunigunde:geh/eim@127.0.0.1:1"),
        ("AWS_ENDPOINT_URL", "kunigunde:geh%2Feim@127.0.0.1:1"),
        ("AWS_ENDPOINT_URL_S3", "http://kunigunde:x@geh%2Feim@127.0.0.1:1"),
        ("HTTP_PROXY", "kunigunde:geh/eim@127.0.0.1:1"),
        ("HTTP_PROXY", "http://kunigunde:geh/eim@127.0.0.1:1"),
        ("STORAGE_EMULATOR_HOST", "http://kunigunde:geh/eim@127.0.0.1:1"),
    ],
)
def test_no_form_of_an_address_is_shown(variable, value, tmp_path, monkeypatch):
    if variable == "HTTP_PROXY":
        monkeypatch.setenv("AWS_ENDPOINT_URL", "http://registry.invalid")
    monkeypatch.setenv(variable, value)
    with pytest.raises(StorageError) as error:
        storage.read_bytes("gs://photos/a" if variable.startswith("STORAGE") else "s3://photos/a")
    assert find_secrets(tmp_path, str(error.value)) == {}


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("at http://ann:geheim@h:1/a, https://ann@h", "at http://***@h:1/a, https://***@h"),
        ("http://ann:p@ss@h/a@b", "http://***@h/a@b"),
        ("'http://ann:p/ss@h'", "'http://***@h'"),
        ('["http://h","a@b"]', '["http://h","a@b"]'),
        ("Failed to parse: 'ann:geh' is not a host", "Failed to parse: *** is not a host"),
        *((each, each) for each in ("s3://b/a@b", "http://h:80/a@b", "ann@h", "file:///a:b/c@d")),
    ],
)
def test_what_is_before_the_host_is_hidden_and_nothing_else(text, shown):
    error = pickle.loads(pickle.dumps(StorageError(text, text)))
    assert (error.message, error.hint) == (shown, shown)
    assert error.to_dict() == {"code": "environment", "message": shown, "hint": shown}


def test_what_a_library_logs_or_raises_is_hidden_where_a_process_prints_it(tmp_path):
    with (tmp_path / "log").open("w") as file:
        log = open_patiently(file.fileno(), "utf-8", "strict")
        logger = logging.Logger("library")
        logger.addHandler(logging.StreamHandler(log))
        logger.error("no way to %s \u00e9", AWAY)
        try:
            raise ValueError(AWAY)
        except ValueError:
            traceback.print_exc(file=log)
        log.flush()
    text = (tmp_path / "log").read_text("utf-8")
    assert text.startswith("no way to http://***@127.0.0.1:1 \u00e9\n")
    assert text.endswith("ValueError: http://***@127.0.0.1:1\n")


def test_every_command_and_every_task_is_tried():
    [known] = [each.choices for each in build_parser()._actions if hasattr(each.choices, "items")]
    assert ({*COMMANDS}, {*TASKS}) == ({*known}, {*STEPS})
