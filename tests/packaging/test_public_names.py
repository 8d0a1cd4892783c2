"""The package as `help`, `dir`, `hasattr` and `import *` see it, with and without the extras."""

from __future__ import annotations

import importlib.util
import inspect
import json
import subprocess
import sys

import pytest

import darkroom
import darkroom.components
from darkroom.conversion.dataframe import TensorFlowAccessor
from darkroom.errors import (
    DarkroomError,
    MissingExtraError,
    MissingNameError,
    convert_error,
    describe_install,
)

CORE = {
    *("ConversionResult", "DarkroomError", "Duplicates", "Evaluation", "ExportResult"),
    *("ValidationResult", "VerificationResult", "__version__", "convert", "evaluate", "export"),
    *("find_duplicates", "inspect", "load", "validate", "verify"),
    *("ConversionResult", "DarkroomError", "Duplicates", "Evaluation"),
    *("ValidationResult", "VerificationResult", "__version__", "convert", "evaluate"),
    *("Predictions", "find_duplicates", "inspect", "load", "predict", "validate"),
    *("TrainingResult", "train", "verify"),
}
ARTIFACTS = {"ImageManifest", "ModelPage", "RecordIndex", "Rejects", "ValidationReport"}
COMPONENTS = {
    *("ImageStatisticsGen", "ImageToTFRecord", "ImageValidator", "ImportSchemaGen", "ManifestGen"),
    *("Evaluator", "ModelReport", "Pusher", "Trainer", "ValidationGate", "ValidationOptions"),
}
HAS_TFX = importlib.util.find_spec("tfx") is not None
# As on a machine without the extras, even if they are installed here.
WITHOUT_EXTRAS = """
import sys
class NoExtras:
    def find_spec(self, name, path, target=None):
        if name.partition(".")[0] in ("tensorflow", "keras", "tfx", "ml_metadata"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, NoExtras())
"""


def run(script: str) -> str:
    """Runs a script without the extras in a new interpreter; returns what it prints."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", WITHOUT_EXTRAS + script],
        capture_output=True,
        text=True,
        env={"PAGER": "cat"},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_dir_lists_the_public_names_of_this_installation_and_nothing_else():
    assert set(dir(darkroom)) == set(darkroom.__all__) == CORE | (ARTIFACTS if HAS_TFX else set())
    names = ARTIFACTS | COMPONENTS if HAS_TFX else set()
    assert set(dir(darkroom.components)) == set(darkroom.components.__all__) == names


@pytest.mark.skipif(not HAS_TFX, reason="needs the extra [tfx]")
@pytest.mark.tfx
def test_with_tfx_every_name_is_what_it_says():
    found = dict(inspect.getmembers(darkroom))
    assert {name: found[name].TYPE_NAME for name in ARTIFACTS} == {
        name: f"darkroom.{name}" for name in ARTIFACTS
    }
    components = dict(inspect.getmembers(darkroom.components))
    assert {name: components[name].__name__ for name in COMPONENTS} == {
        name: name for name in COMPONENTS
    }


def test_without_extras_dir_and_getmembers_agree():
    script = """
import inspect, json, darkroom, darkroom.components
members = inspect.getmembers(darkroom)
print(json.dumps([dir(darkroom), [name for name, _ in members]]))
print(json.dumps([getattr(found, "__module__", "") for _, found in members]))
print(dir(darkroom.components), inspect.getmembers(darkroom.components))
"""
    names, modules, components = run(script).splitlines()
    assert json.loads(names) == [sorted(CORE), sorted(CORE)]
    assert "darkroom.input.loading" in json.loads(modules)
    assert components == "[] []"


def test_without_extras_a_star_imports_what_is_installed():
    script = """
import json
before = set(globals())
from darkroom import *
from darkroom.components import *
print(json.dumps(sorted(set(globals()) - before - {"before"})))
print(convert.__module__, load.__module__, __version__)
"""
    names, homes = run(script).splitlines()
    assert set(json.loads(names)) == CORE
    assert homes == f"darkroom.conversion.convert darkroom.input.loading {darkroom.__version__}"


def test_without_extras_help_shows_functions_with_their_arguments():
    text = run("import darkroom; help(darkroom); help('darkroom.components')")
    assert "load(" in text
    assert "image_size: 'tuple[int, int] | int | None'" in text
    assert "Converts images and their labels into TFRecords." in text
    assert "Opens a converted dataset, or the images that a list or a folder names" in text
    assert "ImageManifest" not in text
    assert "problem in" not in text  # what pydoc says when it cannot import


def test_without_extras_and_pandas_the_types_of_arguments_can_be_looked_up():
    script = """
import sys, typing
sys.modules["pandas"] = None
import darkroom
from darkroom.conversion.dataframe import TensorFlowAccessor
hints = typing.get_type_hints(darkroom.convert)
print(hints["source"], len(hints))
functions = (darkroom.convert, darkroom.find_duplicates, darkroom.inspect, darkroom.verify)
functions = (*functions, darkroom.validate)
for function in (*functions, TensorFlowAccessor.to_tfrecord, TensorFlowAccessor.to_tfr):
    print(function.__name__, typing.get_type_hints(function)["return"].__name__)
"""
    source, *returned = run(script).splitlines()
    parameters = inspect.signature(darkroom.convert).parameters
    types = "str | os.PathLike[str] | darkroom.manifest.sources.dataframe.DataFrame"
    assert source == f"{types} {len(parameters) + 1}"
    assert returned == [
        "convert ConversionResult",
        "find_duplicates Duplicates",
        "inspect Inspection",
        "verify VerificationResult",
        "validate ValidationResult",
        "to_tfrecord ConversionResult",
        "to_tfr ConversionResult",
    ]


LOOK_UP = """
import importlib, inspect, sys, typing
from contextlib import suppress
looked_up = 0
for package in ("", ".input", ".training", ".options", ".components"):
    module = importlib.import_module(f"darkroom{package}")
    for found in (getattr(module, name) for name in module.__all__ if name != "__version__"):
        functions = [found]
        if inspect.isclass(found):
            own = [inspect.getattr_static(found, name) for name in vars(found)]
            functions += [each for each in own if inspect.isfunction(each)]
            functions += [each.fget for each in own if isinstance(each, property)]
            functions += [each.__func__ for each in own if isinstance(each, classmethod)]
        for each in functions:
            typing.get_type_hints(each)
            looked_up += 1
print(looked_up)
"""


def test_without_extras_and_pandas_all_types_can_be_looked_up():
    assert int(run(f"import sys\nsys.modules['pandas'] = None\n{LOOK_UP}")) > 50


@pytest.mark.skipif(not HAS_TFX, reason="needs the extra [tfx]")
@pytest.mark.tfx
def test_with_tfx_all_types_can_be_looked_up(warm_python, tmp_path):
    script = tmp_path / "look_up.py"
    script.write_text(LOOK_UP)
    assert int(warm_python.run(script).stdout) > 70


def test_without_tensorflow_its_names_are_not_in_a_star_import():
    script = """
import darkroom.input, darkroom.training
from darkroom.input import *
from darkroom.training import *
print(dir(darkroom.input), dir(darkroom.training), load.__module__)
"""
    assert run(script) == "['load'] [] darkroom.input.loading\n"


def test_a_notebook_completes_the_options_of_a_dataframes_method():
    own, other = map(inspect.signature, (TensorFlowAccessor.to_tfrecord, darkroom.convert))
    # Of both the first parameter is the frame.
    assert [(each.name, each.kind, each.default) for each in own.parameters.values()][1:] == [
        (each.name, each.kind, each.default) for each in other.parameters.values()
    ][1:]
    shown = inspect.getdoc(TensorFlowAccessor.to_tfrecord)
    assert all(f"\n    {name}: " in shown for name in [*own.parameters][1:])


def test_without_extras_a_name_that_needs_one_is_not_there_and_says_why():
    script = """
import darkroom, darkroom.components
print(hasattr(darkroom, "ImageManifest"), hasattr(darkroom.components, "ManifestGen"))
print(getattr(darkroom, "Rejects", None), hasattr(darkroom, "load"))
for package, name in ((darkroom, "ImageManifest"), (darkroom.components, "ManifestGen")):
    try:
        getattr(package, name)
    except AttributeError as error:
        print(type(error).__name__, error.exit_code, error)
"""
    first, second, *errors = run(script).splitlines()
    assert (first, second) == ("False False", "None True")
    assert len(errors) == 2
    for error in errors:
        assert error.startswith("MissingNameError 3 The module ")
        assert "needs the extra 'tfx', which is not installed." in error


@pytest.mark.parametrize(
    "statement",
    ["from darkroom import ImageManifest", "from darkroom.components import ManifestGen"],
)
def test_without_extras_the_import_of_such_a_name_says_which_extra_is_missing(statement):
    script = f"""
from darkroom.errors import MissingExtraError
try:
    {statement}
except MissingExtraError as error:
    print(error)
"""
    assert "needs the extra 'tfx', which is not installed." in run(script)


def test_without_tensorflow_a_model_cannot_be_asked(tmp_path):
    (tmp_path / "saved_model.pb").touch()
    (tmp_path / "a.png").touch()
    script = f"""
import darkroom
for ask in (darkroom.evaluate, darkroom.predict, darkroom.train):
    try:
        ask({str(tmp_path)!r}, {str(tmp_path / "a.png")!r})
    except darkroom.DarkroomError as error:
        print(error.code, error.message)
"""
    line = "missing-extra The module tensorflow needs the extra 'tf', which is not installed.\n"
    assert run(script) == 3 * line


def test_without_tensorflow_load_says_so_when_it_is_called():
    script = """
import darkroom
from darkroom import load
try:
    load("records", image_size=(8, 8))
except darkroom.DarkroomError as error:
    print(type(error).__name__, error)
"""
    assert run(script).startswith(
        "MissingExtraError The module tensorflow needs the extra 'tf', which is not installed."
    )


def test_an_unknown_name_is_an_ordinary_attribute_error():
    for package in (darkroom, darkroom.components):
        with pytest.raises(AttributeError, match="has no attribute 'convrt'") as caught:
            _ = package.convrt
        assert type(caught.value) is AttributeError


def test_a_missing_public_name_raises_our_error():
    error = MissingNameError("The module tfx needs the extra 'tfx'.", "Install it.")
    assert isinstance(error, DarkroomError)
    assert convert_error(error) is error
    assert (error.exit_code, error.code) == (MissingExtraError.exit_code, MissingExtraError.code)


@pytest.mark.parametrize(
    ("extra", "python", "pip", "words"),
    [
        ("tfx", (3, 10), True, "TFX exists for Python 3.10 and 3.11"),
        ("tfx", (3, 12), False, "this is Python 3.12"),
        ("tfx", (3, 13), False, "make setup gets one of them"),
        ("tf", (3, 13), True, "make setup"),
        ("gcp", (3, 10), True, "make setup"),
    ],
)
def test_the_hint_for_a_missing_extra_fits_this_python(extra, python, pip, words):
    hint = describe_install(extra, python)
    assert (f"pip install 'darkroom-data[{extra}]'" in hint) == pip
    assert words in hint
    assert ("TFX" in hint) == (extra == "tfx")
