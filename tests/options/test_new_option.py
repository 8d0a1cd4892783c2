"""A new option is one field: a copy of the package gets one, and shows it everywhere."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from ..warm_python import WarmPython

ROOT = Path(__file__).parents[2]
FIELD = """\
    ema_decay: float = option(
        0.5, "Decay of the averaged weights.", group="training", least=0, most=1, runtime=True
    )
"""
TOML = (
    'data = "gs://b/images.csv"\nroot = "gs://b/run"\nimage = "r.example/d:1"\nema_decay = 0.75\n'
)
SCRIPT = """
import contextlib, io, json, sys

import darkroom
from darkroom.cli.parser import build_parser
from darkroom.components.parameters import PARAMETERS
from darkroom.errors import UsageError
from darkroom.pipelines.config import make_config, merge_options

sys.path.insert(0, sys.argv[2])
import options_page

help = io.StringIO()
with contextlib.redirect_stdout(help), contextlib.suppress(SystemExit):
    build_parser().parse_args(["run", "--help"])
flag = build_parser().parse_args(["run", "--ema-decay", "0.25"]).ema_decay
config = make_config(merge_options({"config": sys.argv[1]}))
try:
    make_config({"data": "d", "root": "r", "ema_decay": 2})
except UsageError as error:
    message = error.message
json.dump(
    {
        "package": darkroom.__file__,
        "help": " ".join(help.getvalue().split()),
        "flag": flag,
        "toml": [config.ema_decay, config.training.to_dict()["ema_decay"]],
        "train": build_parser().parse_args(
            ["train", "--data=d", "--checkpoint-dir=c", "--ema-decay=0"]
        ).ema_decay,
        "error": message,
        "parameters": [
            [p.kind.__name__, p.component, p.property, p.path]
            for p in PARAMETERS
            if p.name == "ema_decay"
        ],
        "page": options_page.format_page(""),
        "doc": type(config).__doc__,
    },
    sys.stdout,
)
"""
# The process has imported the other package, and TFX, which takes long.
COMPILE = """
import sys

for name in [name for name in sys.modules if name.partition(".")[0] == "darkroom"]:
    del sys.modules[name]
from darkroom.cli import main

sys.exit(main(sys.argv[1:]))
"""


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the package with one field more; the folder for PYTHONPATH."""
    folder = tmp_path_factory.mktemp("package")
    ignore = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "src" / "darkroom", folder / "darkroom", ignore=ignore)
    for name in ("components", "pipelines"):
        shutil.copytree(ROOT / name, folder / "darkroom" / name, ignore=ignore)
    path = folder / "darkroom" / "options" / "training.py"
    before, mark, after = path.read_text().partition("    epochs: int = option(")
    assert mark
    path.write_text(f"{before}{FIELD}{mark}{after}")
    (folder / "run.toml").write_text(TOML)
    return folder


def test_a_new_field_is_a_flag_a_toml_key_a_parameter_and_a_row_of_the_page(package: Path):
    tools = str(ROOT / "tools" / "docs")
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", SCRIPT, str(package / "run.toml"), tools],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(package)},
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["package"] == str(package / "darkroom" / "__init__.py")
    assert "--ema-decay NUMBER Decay of the averaged weights (default: 0.5)" in found["help"]
    assert (found["flag"], found["train"], found["toml"]) == (0.25, 0.0, [0.75, 0.75])
    assert found["error"] == "ema_decay is 2, expected a number from 0 to 1."
    assert found["parameters"] == [
        ["float", "Trainer", "custom_config", ["darkroom", "ema_decay"]],
    ]
    row = (
        "| `ema_decay`<br>`--ema-decay` | `0.5` | Decay of the averaged weights. From 0 to 1. "
        "*Run-time.* |"
    )
    assert row in found["page"].splitlines()
    assert "\n    ema_decay: Decay of the averaged weights.\n" in found["doc"]


@pytest.mark.tfx
def test_a_new_field_is_an_input_of_the_compiled_pipeline(package: Path, warm_python: WarmPython):
    pytest.importorskip("tfx")
    output = package / "pipeline.json"
    (package / "compile.py").write_text(COMPILE)
    done = warm_python.run(
        *(package / "compile.py", "compile", "--target", "vertex"),
        *("--config", package / "run.toml", "-o", output, "--set=parameters=epochs,ema_decay"),
        env={**os.environ, "PYTHONPATH": str(package)},
    )
    assert done.returncode == 0, done.stderr
    spec = json.loads(output.read_text())["pipelineSpec"]
    parameter = spec["root"]["inputDefinitions"]["parameters"]["ema_decay"]
    assert parameter == {
        "parameterType": "NUMBER_DOUBLE",
        "defaultValue": 0.75,
        "isOptional": True,
    }
    trainer = spec["root"]["dag"]["tasks"]["Trainer"]["inputs"]["parameters"]
    assert trainer["ema_decay"] == {"componentInputParameter": "ema_decay"}
    constant = json.loads(trainer["custom_config"]["runtimeValue"]["constant"])
    assert "ema_decay" not in constant["darkroom"]
    assert "batch_size" in constant["darkroom"]
