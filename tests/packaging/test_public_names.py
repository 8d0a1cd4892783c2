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
import darkroom.pipelines
from darkroom.conversion.dataframe import TensorFlowAccessor
from darkroom.errors import (
    DarkroomError,
    MissingExtraError,
    MissingNameError,
    convert_error,
    describe_install,
)

CORE = {
    *(
        "ConversionResult",
        "DarkroomError",
        "Description",
        "Duplicates",
        "Embedding",
        "Evaluation",
        "ExportResult",
    ),
    *("Predictions", "TrainingResult", "ValidationResult", "VerificationResult", "__version__"),
    *(
        "convert",
        "describe",
        "diff",
        "embed",
        "evaluate",
        "export",
        "find_duplicates",
        "inspect",
        "load",
        "predict",
        "train",
    ),
    *("validate", "verify"),
}
ARTIFACTS = {"ImageManifest", "ModelPage", "RecordIndex", "Rejects", "ValidationReport"}
COMPONENTS = {
    *("ImageStatisticsGen", "ImageToTFRecord", "ImageValidator", "ImportSchemaGen", "ManifestGen"),
    *(
        "DatasetDiff",
        "Evaluator",
        "ModelRegistrar",
        "ModelReport",
        "Pusher",
        "Trainer",
        "ValidationGate",
        "ValidationOptions",
    ),
}
HAS_TFX = importlib.util.find_spec("tfx") is not None
# As on a machine without the extras, even if they are installed here.
WITHOUT_EXTRAS = """
import sys
class NoExtras:
    def find_spec(self, name, path, target=None):
        if name.partition(".")[0] in ("tensorflow", "keras", "tfx", "ml_metadata", "apache_beam"):
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
    names = ["ClusterConfig", "LocalRunner", "compile_pipeline"]
    assert dir(darkroom.pipelines) == darkroom.pipelines.__all__ == names


def test_without_extras_dir_getmembers_and_a_star_agree():
    script = """
import json
before = set(globals())
from darkroom import *
from darkroom.components import *
from darkroom.training import *
print(json.dumps(sorted(set(globals()) - before - {"before"})))
print(convert.__module__, load.__module__, __version__)
import inspect, darkroom, darkroom.components, darkroom.input, darkroom.training
print(json.dumps([dir(darkroom), [name for name, _ in inspect.getmembers(darkroom)]]))
print(dir(darkroom.components), inspect.getmembers(darkroom.components))
print(dir(darkroom.input), dir(darkroom.training))
"""
    names, homes, members, components, parts = run(script).splitlines()
    assert set(json.loads(names)) == CORE
    assert homes == f"darkroom.conversion.convert darkroom.input.loading {darkroom.__version__}"
    assert json.loads(members) == [sorted(CORE), sorted(CORE)]
    assert (components, parts) == ("[] []", "['load'] []")


def test_without_extras_help_shows_functions_with_their_arguments():
    text = run("import darkroom; help(darkroom); help('darkroom.components')")
    assert "load(" in text
    # Python 3.14 leaves the quotes out.
    assert "image_size: tuple[int, int] | int | None" in text.replace("'", "")
    assert "Converts images and their labels into TFRecords." in text
    assert "Opens a converted dataset, or the images that a list or a folder names" in text
    assert "ImageManifest" not in text
    assert "problem in" not in text  # what pydoc says when it cannot import


LOOK_UP = """
import importlib, inspect, sys, typing
from contextlib import suppress
from darkroom.conversion.dataframe import TensorFlowAccessor
looked_up = 0
for package in ("", ".input", ".training", ".options", ".components"):
    module = importlib.import_module(f"darkroom{package}")
    public = [getattr(module, name) for name in module.__all__ if name != "__version__"]
    for found in (*public, TensorFlowAccessor.to_tfrecord, TensorFlowAccessor.to_tfr):
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


def test_a_notebook_completes_the_options_of_a_dataframes_method():
    own, other = map(inspect.signature, (TensorFlowAccessor.to_tfrecord, darkroom.convert))
    # Of both the first parameter is the frame.
    assert [(each.name, each.kind, each.default) for each in own.parameters.values()][1:] == [
        (each.name, each.kind, each.default) for each in other.parameters.values()
    ][1:]
    shown = inspect.getdoc(TensorFlowAccessor.to_tfrecord)
    assert all(f"\n    {name}: " in shown for name in [*own.parameters][1:])


def test_without_extras_a_name_that_needs_one_is_not_there_and_says_why(tmp_path):
    (tmp_path / "saved_model.pb").touch()
    (tmp_path / "a.png").touch()
    model, image = str(tmp_path), str(tmp_path / "a.png")
    script = f"""
import darkroom, darkroom.components
from darkroom import load
print(hasattr(darkroom, "ImageManifest"), getattr(darkroom.components, "ManifestGen", None))
def fetch_name(): darkroom.components.ManifestGen
def import_name(): from darkroom import ImageManifest
def ask_model(): darkroom.predict({model!r}, {image!r})
def open_records(): load("records", image_size=(8, 8))
def use_flink(): darkroom.convert({image!r}, "records", runner="FlinkRunner")
def set_option(): darkroom.convert({image!r}, "records", beam_options={{"direct_num_workers": 2}})
for fail in (fetch_name, import_name, ask_model, open_records, use_flink, set_option):
    try:
        fail()
    except darkroom.DarkroomError as error:
        print(type(error).__name__, error.exit_code, error.message)
"""
    first, *errors = run(script).splitlines()
    assert first == "False None"
    tf = "3 The module tensorflow needs the extra 'tf', which is not installed."
    names = [error.partition(" ")[0] for error in errors]
    assert names == ["MissingNameError", *["MissingExtraError"] * 5]
    assert all("needs the extra 'tfx', which is not installed." in error for error in errors[:2])
    beam = "3 The module apache_beam needs the extra 'beam', which is not installed."
    assert [error.partition(" ")[2] for error in errors[2:]] == [tf, tf, beam, beam]


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
        ("tf", (3, 13), True, "in a checkout pip install '.[tf]'"),
    ],
)
def test_the_hint_for_a_missing_extra_fits_this_python(extra, python, pip, words):
    hint = describe_install(extra, python)
    assert (f"pip install 'darkroom-data[{extra}]'" in hint) == pip
    assert words in hint
    assert ("TFX" in hint) == (extra == "tfx")
