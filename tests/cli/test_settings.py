"""`--set NAME=VALUE` of the commands that compile."""

from __future__ import annotations

import pytest

from darkroom.cli import main
from darkroom.cli.parser import build_parser
from darkroom.cli.shared.flags import PIPELINE_CLASSES, read_options
from darkroom.errors import UsageError
from darkroom.options.fields import OptionField, list_options

COMPILE = ["compile", "--target=kubeflow", "-o", "p.yaml"]
FIELDS = [each for each in list_options(*PIPELINE_CLASSES) if each.flag]


def parse(*settings: str) -> dict[str, object]:
    arguments = build_parser().parse_args([*COMPILE, *(f"--set={each}" for each in settings)])
    options = read_options(arguments)
    return {name: options[name] for name in options if name not in ("target", "output")}


def make_text(field: OptionField) -> str:
    if field.option.choices:
        return field.option.choices[-1]
    by_kind = {"int": "3", "float": "0.5", "tuple[int, int]": "32x48", "Mapping[str, str]": "a=b"}
    return by_kind.get(field.kind, "3" if field.kind.startswith("int") else "x,y")


def test_a_value_is_what_its_flag_would_make_of_it():
    given, settings = [], []
    for field in FIELDS:
        text = make_text(field)
        if field.kind == "bool":
            given.append(f"--no-{field.flag[2:]}" if field.default else field.flag)
            settings.append(f"{field.name}={str(not field.default).lower()}")
        elif field.kind == "Mapping[str, str]" and field.option.metavar != "JSON":
            given.append(f"{field.flag}={text}")
            settings.append(f"{field.name}.{text}")
        else:
            given.append(f"{field.flag}={text}")
            settings.append(f"{field.name}={text}")
    by_flag = vars(build_parser().parse_args(["run", *given]))
    by_name = parse(*settings)
    assert by_name.keys() == {field.name for field in FIELDS}
    for name, value in by_name.items():
        flag = by_flag[name]
        assert (tuple(flag) if isinstance(flag, list) else flag) == value, name


def test_lists_and_tables_are_given_one_by_one():
    assert parse(
        "beam_args=--runner=x",
        "beam_args=--a=b",
        "parameters=data",
        "parameters=epochs,seed",
        "env.A=b=c",
        "env.B=",
        "volumes./mnt/photos.v1=photos",
        "source_fingerprint=s",
        "epochs=1",
        "epochs=2",
    ) == {
        "beam_args": ("--runner=x", "--a=b"),
        "parameters": ("data", "epochs", "seed"),
        "env": {"A": "b=c", "B": ""},
        "volumes": {"/mnt/photos.v1": "photos"},
        "source_fingerprint": "s",
        "epochs": 2,
    }
    assert parse() == {}
    given = ["run", "--accept=one_class", "--accept=first_line,number_order"]
    accepted = build_parser().parse_args(given).accept
    given = ["describe", "records", "--for=tfds", "--for=dali,croissant"]
    assert build_parser().parse_args(given).readers == ["tfds", "dali", "croissant"]
    assert tuple(accepted) == ("one_class", "first_line", "number_order")


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("epochs", "expected NAME=VALUE, got 'epochs'"),
        ("epochs=many", "--set epochs: expected a whole number, got 'many'"),
        ("cache=no", "--set cache: expected true or false, got 'no'"),
        ("policies=leakage=warn", "--set policies: expected policies.KEY=VALUE"),
        ("epochs.x=1", "--set epochs: expected epochs=VALUE"),
        ("batch-size=4", "--set has no option 'batch-size'. Did you mean batch_size? "),
        ("resources.Trainer.cpu=4", "as [resources.Trainer], belong in the file of --config"),
        ("vertex.network=x", "--set has no option 'vertex'. docs/reference/options.md"),
    ],
)
def test_a_name_or_a_value_that_is_none(setting: str, message: str):
    with pytest.raises(UsageError) as error:
        parse(setting)
    assert message in str(error.value)


def test_a_credential_is_not_shown(capsys):
    token = "ghp_" + "a1B2" * 9
    assert main([*COMPILE, "--set", token]) == 2
    assert token not in capsys.readouterr().err
    assert main([*COMPILE, f"--set=env.TOKEN={token}"]) == 2
    assert token not in capsys.readouterr().err
    assert main(["submit", "--target", "kubeflow", "--token", token]) == 2
    said = capsys.readouterr().err
    assert "A wrong argument looks like a credential: GitHub token." in said
    assert token not in said
