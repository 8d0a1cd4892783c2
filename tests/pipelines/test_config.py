from __future__ import annotations

import argparse
import dataclasses
import math
from datetime import date
from pathlib import Path

import pytest

from darkroom.cli import main
from darkroom.cli.parser import build_parser
from darkroom.errors import DarkroomError, UsageError
from darkroom.options.input import choose_augmentation
from darkroom.options.training import TrainingOptions
from darkroom.pipelines.config import PipelineConfig, make_config, read_config_file

TOML = """
data = "images.csv"
root = "/elsewhere/run"
image_size = [32, 24]
epochs = 3
policies = { leakage = "warn" }
columns = { path = "image", age = "integer" }
source_encoding = "Latin-1"
allowed_roots = ["images"]
verify = true
"""


def test_values_come_from_the_file_and_paths_start_at_its_folder(tmp_path: Path):
    path = tmp_path / "run.toml"
    path.write_text(TOML)
    config = make_config(read_config_file(str(path)))
    assert config.data == f"{tmp_path}/images.csv"
    assert config.root == "/elsewhere/run"
    assert config.image_size == (32, 24)
    assert config.training.epochs == 3
    assert config.validation.policies["leakage"] == "warn"
    assert config.validation.policies["label_conflicts"] == "fail"
    assert config.manifest.schema is not None
    assert config.manifest.schema.image == "path"
    assert config.manifest.allowed_roots == (f"{tmp_path}/images",)
    assert config.manifest.source_encoding == "iso8859-1"
    assert config.training.verify is True
    assert config.push_dir == "/elsewhere/run/pushed"


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ('data = "~/images.csv"', "HOME/images.csv"),
        ('allowed_roots = ["~/images", "gs://b/i", "here", 5]',
         ["HOME/images", "gs://b/i", "HOME/here", 5]),
        ('data = "file:///photos/a.csv"', "file:///photos/a.csv"),
        ('root = "gs://b/r"', "gs://b/r"),
        ('exclude = "/x.csv"', "/x.csv"),
        ('weights = ""', ""),
        ('weights = "imagenet"', "imagenet"),
        ('weights = "w.h5"', "HOME/w.h5"),
        ('feature_cache = "none"', "none"),
        ('feature_cache = "kept"', "HOME/kept"),
        ('record_cache = "memory"', "memory"),
        ('record_cache = "cache"', "HOME/cache"),
    ],
)  # fmt: skip
def test_paths_in_the_file_start_at_its_folder(tmp_path: Path, monkeypatch, line, expected):
    (tmp_path / "run.toml").write_text(line)
    monkeypatch.setenv("HOME", str(tmp_path))
    [value] = read_config_file("~/run.toml").values()
    texts = expected if isinstance(expected, list) else [expected]
    wanted = [t.replace("HOME", str(tmp_path)) if isinstance(t, str) else t for t in texts]
    assert value == (wanted if isinstance(expected, list) else wanted[0])


def test_a_root_that_beam_would_take_for_a_pattern_is_refused(tmp_path, capsys):
    root = "runs/r*"
    with pytest.raises(UsageError, match=r"^root is '.*', expected a name without \*, \? and \["):
        PipelineConfig(data="images.csv", root=root)
    command = ["run", "--data", str(tmp_path), "--root", f"{tmp_path}/{root}"]
    assert main(command) == 2
    assert "--root is " in capsys.readouterr().err
    assert not any(tmp_path.iterdir())


def test_a_pipeline_trains_with_the_defaults_of_the_command_train():
    config = PipelineConfig(data="images.csv", root="/run")
    assert config.training == TrainingOptions(image_size=config.image_size)
    assert choose_augmentation(config.training, "label").augment == "flip"


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"epoch": 3}, "no option 'epoch'. Did you mean epochs"),
        ({"root": None}, "needs root"),
        ({"epochs": 0}, "epochs is 0"),
        ({"record_cache": "gs://bucket/cache"}, "record_cache is 'gs://bucket/cache'"),
        ({"image_size": 32}, "image_size is 32, expected two whole numbers"),
        ({"name": "My Pipeline"}, "name is 'My Pipeline'"),
        ({"columns": {"a": "picture"}}, "'picture'"),
        (
            {"resources": {"Trainer": {"cpus": 2}}},
            "resources.Trainer: 'cpus' is unknown",
        ),
        ({"resources": {"Trainer": {"cpu": 0}}}, "cpu is 0.0, expected a number above 0"),
        ({"resources": {"Trainer": 2}}, "resources.Trainer is 2, expected an object"),
        (
            {"resources": {"Trainer": {"tolerations": ["gpu"]}}},
            "tolerations[0] is 'gpu', expected",
        ),
        ({"volumes": ["photos"]}, "volumes is not a table of texts"),
        ({"vertex": ["network"]}, "vertex is not a table"),
        ({"model": 5}, "model is not text"),
        ({"source_fingerprint": date(1979, 5, 27)}, "source_fingerprint is not text"),
        ({"beam_args": "--runner=DataflowRunner"}, "beam_args is not a list of texts"),
        ({"resources": 2}, "resources is not a table"),
        ({"resources": {"Trainer": {"cpu": math.inf}}}, "cpu is inf, expected a number above 0"),
        ({"resources": {"Trainer": {"accelerator": 5}}}, "accelerator is 5, expected text"),
        (
            {"resources": {"Trainer": {"node_selector": "a"}}},
            "node_selector is 'a', expected an object",
        ),
        (
            {"model": "small_cn"},
            "model is 'small_cn', expected small_cnn, efficientnet-lite0, keras",
        ),
        ({"model": "my.models:"}, "model is 'my.models:', expected small_cnn"),
    ],
)
def test_a_wrong_value_is_named(values: dict[str, object], message: str):
    with pytest.raises(UsageError) as error:
        make_config({"data": "d", "root": "r", **values})
    assert message in str(error.value)


def test_a_missing_label_map_is_an_environment_error(tmp_path: Path):
    with pytest.raises((DarkroomError, OSError), match="labels"):
        make_config({"data": "d", "root": "r", "label_map": str(tmp_path / "labels.txt")})


def test_a_file_that_is_not_toml_is_named(tmp_path: Path):
    path = tmp_path / "run.toml"
    path.write_text("epochs: 3")
    with pytest.raises(UsageError, match=r"run\.toml is not a TOML"):
        read_config_file(str(path))


def test_every_field_has_a_flag_except_tables_and_fields_of_a_cluster():
    [commands] = [
        action
        for action in build_parser()._actions
        if isinstance(action, argparse._SubParsersAction)
    ]
    flags = {action.dest for action in commands.choices["run"]._actions}
    fields = {each.name for each in dataclasses.fields(PipelineConfig)}
    assert fields - flags == {
        "source_fingerprint",
        "model_fingerprint",
        "checkpoint_dir",
        "image_pull_secrets",
        *("name", "image", "kfp", "parameters", "require_digest"),  # they count in a cluster alone
        *("env", "secret_env", "volumes", "resources", "vertex"),  # tables of a file
    }


def test_a_flag_of_submit_is_not_taken_from_the_file(tmp_path: Path, capsys):
    name, flag = "service_account", "--service-account"
    path = tmp_path / "run.toml"
    path.write_text(f'data = "images.csv"\n{name} = "x"\n')
    given = [f"--config={path}", "--target=kubeflow"]
    for command in (
        ["run", *given[:1]],
        ["compile", *given, "-o", str(tmp_path / "a.yaml")],
        ["submit", *given],
        ["submit", *given, "--pipeline=a.yaml"],
    ):
        assert main(command) == 2
        said = capsys.readouterr().err
        assert f"{name} is a flag of `darkroom submit`, not of the file: {flag}." in said
        assert f"Leave it out of {path}." in said
