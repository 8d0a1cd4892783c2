"""The fields of options classes, and what is made from them."""

from __future__ import annotations

import dataclasses
import inspect
import json
import re
import shlex
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from darkroom.cli.parser import build_parser
from darkroom.conversion.convert import convert
from darkroom.errors import UsageError
from darkroom.options.checks import as_size
from darkroom.options.conversion import (
    ConversionFields,
    ConversionOptions,
    RecordOptions,
    parse_shard_counts,
)
from darkroom.options.fields import (
    FIXED,
    FREE,
    GROUPS,
    check_fields,
    document,
    list_options,
    merge_options,
    option,
)
from darkroom.options.image import ImageFields, ImageOptions
from darkroom.options.input import InputOptions, ReadingFields
from darkroom.options.manifest import ManifestOptions
from darkroom.options.pipeline import PipelineFields
from darkroom.options.source import SourceFields
from darkroom.options.targets import KubeflowFields, SubmissionFields, VertexOptions
from darkroom.options.training import TrainingFields, TrainingOptions
from darkroom.options.validation import ValidationFields, ValidationOptions
from darkroom.pipelines.config import PipelineConfig

from ..signatures import find_differences

ROOT = Path(__file__).parents[2]
CLASSES = [
    *(SourceFields, ImageFields, ImageOptions, ConversionFields, RecordOptions, ConversionOptions),
    *(ValidationFields, ValidationOptions, ReadingFields, InputOptions, TrainingFields),
    *(TrainingOptions, PipelineFields, PipelineConfig),
    *(SubmissionFields, KubeflowFields, VertexOptions),
]


@pytest.mark.parametrize("options", CLASSES)
def test_every_field_is_an_option_with_a_sentence_of_help(options: type):
    found = list_options(options)
    assert {each.name for each in found} == {each.name for each in dataclasses.fields(options)}
    for each in found:
        assert re.fullmatch(r"[^\n]+\.", each.option.help), each.name
        assert each.option.group in GROUPS
        assert f"\n    {each.name}: {each.option.help}" in (inspect.getdoc(options) or "")


def test_an_option_has_one_help_text_and_one_type_in_all_classes():
    texts: dict[str, set[tuple[str, str]]] = {}
    for options in CLASSES:
        for each in list_options(options):
            texts.setdefault(each.name, set()).add((each.type, each.option.help))
    assert {name: found for name, found in texts.items() if len(found) > 1} == {}


def test_an_option_that_does_not_say_so_is_fixed_when_a_training_resumes():
    assert option("value", "Help.", group="model").metadata["option"].resume == FIXED
    free = [each.name for each in list_options(TrainingOptions) if each.option.resume == FREE]
    assert {"epochs", "verify"} <= set(free)
    assert {"model", "balance", "seed", "augment"}.isdisjoint(free)


@pytest.mark.parametrize("options", [SourceFields, ConversionFields, ValidationFields])
def test_the_options_of_a_stage_are_options_of_the_pipeline(options: type):
    config = {each.name: each for each in dataclasses.fields(PipelineConfig)}
    for each in dataclasses.fields(options):
        assert config[each.name].default == each.default


def test_the_signature_of_convert_has_the_fields():
    names = ["columns", "label_map", "split_ratios", "seed", "exclude", "num_shards"]
    assert find_differences(convert, ConversionOptions, names=names) == []
    (max_rejects,) = [e for e in list_options(ValidationFields) if e.name == "max_rejects"]
    parameter = inspect.signature(convert).parameters["max_rejects"]
    # None is the default, or what an earlier run allowed.
    assert (parameter.annotation, parameter.default) == (f"{max_rejects.type} | None", None)


def test_a_function_with_options_shows_them():
    names = [each.name for each in dataclasses.fields(SourceFields)]
    assert [*inspect.signature(ManifestOptions.parse).parameters] == names
    text = inspect.getdoc(ManifestOptions.parse) or ""
    assert all(f"\n    {name}: " in text.partition("Raises:")[0] for name in names)
    with pytest.raises(TypeError, match="'sed'"):
        ManifestOptions.parse(sed=1)


def test_options_of_a_source_are_checked_by_their_fields():
    with pytest.raises(UsageError, match="voc_origin is 7, expected a whole number from 0 to 1"):
        ManifestOptions.parse(voc_origin=7)
    with pytest.raises(UsageError, match="folds is 1, expected a whole number from 2 to 100"):
        ManifestOptions.parse(folds=1)


@pytest.mark.crosses
def test_the_signature_of_load_has_the_fields():
    from darkroom.input.loading import load

    names = ["image_size", "batch_size", "augment"]
    assert find_differences(load, InputOptions, names=names) == []


def test_numbers_of_numpy_become_those_of_python():
    given = InputOptions(
        np.array([16, 9])[::-1], batch_size=np.int64(4), shard=(np.int8(0), 2), repeat=np.int16(3)
    )
    assert given == InputOptions((9, 16), batch_size=4, shard=(0, 2), repeat=3)
    assert {type(each) for each in (*given.image_size, given.batch_size)} == {int}
    made = merge_options(ConversionOptions, None, {"seed": np.int64(7), "num_shards": np.int64(2)})
    assert json.loads(made.manifest.to_json())["seed"] == 7
    assert made.records.shard_counts == dict.fromkeys(("train", "eval", "test"), 2)
    assert type(TrainingOptions(learning_rate=np.float32(0.5)).learning_rate) is float
    assert (as_size(np.int64(5)), as_size((3, 4))) == ((5, 5), (3, 4))


def test_an_argument_by_name_replaces_the_option():
    options = InputOptions((8, 8), batch_size=4, repeat=None)
    made = merge_options(InputOptions, options, {"batch_size": 2, "augment": None})
    assert made == InputOptions((8, 8), batch_size=2, repeat=None)
    assert merge_options(ValidationOptions, None, {}) == ValidationOptions()
    with pytest.raises(UsageError, match=r"options is \{'seed': 1\}, expected ConversionOptions"):
        merge_options(ConversionOptions, {"seed": 1}, {})


def test_the_options_of_a_conversion_check_themselves():
    given = {"label_map": ["b", "a"], "exclude": Path("x.txt"), "num_shards": 3}
    options = ConversionOptions(**given)
    assert options.manifest.labels == ("b", "a")
    assert options.records.num_shards == {"train": 3, "eval": 3, "test": 3}
    for wrong in ({"seed": "x"}, {"encoding": "x"}, {"wait": "no"}):
        with pytest.raises(UsageError):
            ConversionOptions(**wrong)


def test_a_signature_that_differs_is_found():
    @dataclass(kw_only=True)
    class Fields:
        seed: int = option(0, "Seed.", group="data")
        epochs: int = option(10, "Passes.", group="data")
        model: str = option("a", "Model.", group="data")

    def function(seed: float = 0, epochs: int = 11) -> None:
        """Does nothing.

        Args:
            seed: Seed.
            epochs: Rounds.
        """

    assert find_differences(function, Fields) == [
        "seed is float",
        "epochs has the default 11",
        "epochs is described in other words",
        "model is missing",
    ]


def test_the_signature_of_the_configuration_is_known_to_type_checkers():
    parameters = inspect.signature(PipelineConfig).parameters
    assert parameters["epochs"].annotation == "int"
    assert all(each.kind is each.KEYWORD_ONLY for each in parameters.values())
    required = [name for name, each in parameters.items() if each.default is each.empty]
    assert required == ["data"]


@document
@dataclass(frozen=True, kw_only=True)
class Sample:
    """Options of a test."""

    count: int = option(1, "A count.", group="data", least=1, most=9)
    share: float = option(0.5, "A share.", group="data", least=0, most=1)
    kind: str = option("a", "A kind.", group="data", choices=("a", "b"))
    text: str | None = option(None, "A text.", group="data")
    texts: tuple[str, ...] = option((), "Texts.", group="data")
    table: Mapping[str, str] = option({}, "A table.", group="model", more="It may be empty.")
    flag: bool = option(True, "A flag.", group="data")

    def __post_init__(self) -> None:
        check_fields(self)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"count": 0}, "count is 0, expected a whole number from 1 to 9."),
        (
            {"count": 10**4500},
            "count is a number of more than 40 digits, expected a whole number from 1 to 9.",
        ),
        ({"count": True}, "count is True, expected a whole number from 1 to 9."),
        ({"share": 2}, "share is 2, expected a number from 0 to 1."),
        ({"share": float("nan")}, "share is nan, expected a number from 0 to 1."),
        ({"share": "x"}, "share is not a number. Write it without quotes."),
        ({"kind": "c"}, "kind is 'c', expected one of a, b."),
        ({"text": 5}, "text is not text. Write it in quotes."),
        ({"texts": "a"}, 'texts is not a list of texts. Write it as in ["a", "b"].'),
        ({"flag": 1}, "flag is not true or false. Write it without quotes."),
    ],
)
def test_limits_choices_and_types_are_checked(values: dict[str, Any], message: str):
    with pytest.raises(UsageError) as error:
        Sample(**values)
    assert str(error.value) == message


def test_lists_become_tuples_and_none_is_taken_where_it_is_allowed():
    assert Sample(texts=["a", "b"], text=None).texts == ("a", "b")


def test_the_docstring_lists_the_options():
    assert inspect.cleandoc(Sample.__doc__ or "").splitlines()[:4] == [
        "Options of a test.",
        "",
        "Attributes:",
        "    count: A count.",
    ]
    assert "    table: A table. It may be empty." in inspect.cleandoc(Sample.__doc__ or "")


def _help(command: str, capsys: pytest.CaptureFixture[str]) -> str:
    with pytest.raises(SystemExit) as stop:
        build_parser().parse_args([command, "--help"])
    assert stop.value.code == 0
    return capsys.readouterr().out


@pytest.mark.parametrize(
    ("command", "groups"),
    [
        ("convert", ["data", "conversion", "checks", "cluster"]),
        ("validate", ["data", "checks"]),
        ("train", ["data", "model", "training"]),
        ("run", list(GROUPS)),
        ("compile", ["run", "cluster"]),
        ("submit", ["run", "cluster"]),
    ],
)
def test_help_is_grouped_shows_defaults_and_ends_with_two_examples(
    command: str, groups: list[str], capsys: pytest.CaptureFixture[str]
):
    text = _help(command, capsys)
    assert re.findall(r"^(\w+):$", text, re.M) == ["options", *groups, "examples"]
    flat = " ".join(text.split())
    for words in ("(default: 90)", "(default: 80/10/10)"):
        assert (words in flat) == (command in ("convert", "run"))
    assert "(default: small_cnn)" in flat or command not in ("train", "run")
    examples = text.partition("examples:\n")[2].strip().splitlines()
    assert len(examples) == 2
    for example in examples:
        program, *arguments = shlex.split(example)
        assert program == "darkroom"
        assert build_parser().parse_args(arguments).command == command


def test_tables_and_lists_of_the_command_line_are_those_of_a_file():
    arguments = build_parser().parse_args(
        [
            *("run", "--policy=leakage=warn", "--policy=rejects=off"),
            *("--allowed-root=a", "--allowed-root=b", "--no-cache"),
            *("--image-size=32x24", "--num-shards=4", "--columns={}"),
        ]
    )
    given = {name: getattr(arguments, name) for name in ("policies", "allowed_roots")}
    assert given == {
        "policies": {"leakage": "warn", "rejects": "off"},
        "allowed_roots": ["a", "b"],
    }
    assert (arguments.cache, arguments.image_size, arguments.num_shards) == (False, (32, 24), 4)
    assert arguments.columns == "{}"
    assert not hasattr(arguments, "epochs")


@pytest.mark.parametrize("command", [[], ["run"]])
def test_help_loads_nothing_that_takes_time(command: list[str]):
    script = (
        "import sys; from darkroom.cli import main; code = main(sys.argv[1:]);"
        "print(*sys.modules, file=sys.stderr); sys.exit(code)"
    )
    done = subprocess.run(
        [sys.executable, "-S", "-c", script, *command, "--help"],
        capture_output=True,
        text=True,
        timeout=60,
        env={"PYTHONPATH": _find_package()},
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("usage: darkroom")
    loaded = set(done.stderr.split())
    foreign = {name.partition(".")[0] for name in loaded} - sys.stdlib_module_names
    assert foreign <= {"darkroom", "__main__"}
    slow = {"asyncio", "concurrent", "http", "multiprocessing", "sqlite3", "ssl", "tempfile"}
    assert loaded.isdisjoint({*slow, "darkroom.storage", "darkroom.pipelines.config"})


def _find_package() -> str:
    import darkroom

    return str(Path(darkroom.__file__).parents[1])


def test_splits_may_have_the_names_that_sources_give_them():
    assert parse_shard_counts({"TRAIN": 8, "val": 2}) == {"train": 8, "eval": 2}
    options = ValidationOptions(required_splits=("training", "validation", "eval"))
    assert options.required_splits == ("train", "eval")
