"""The examples for Airflow, Dagster and Prefect, each in an environment of its own."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from PIL import Image

from ..environments import make_environment

pytestmark = pytest.mark.newest

ROOT = Path(__file__).parents[2]
DARKROOM = ["-e", f"{ROOT}[tf]"]


class Orchestrator(NamedTuple):
    """An orchestrator and the example for it.

    Attributes:
        packages: What its environment has.
        example: File in examples/.
        pause: The pause before another try, as it is in the example, and a shorter one.
        retry: What it logs when it will try again.
    """

    packages: list[str]
    example: str
    pause: tuple[str, str]
    retry: str


ORCHESTRATORS = {
    # It starts the program `darkroom` of the environment of the tests.
    "airflow": Orchestrator(
        ["apache-airflow"], "airflow_dag.py", ("seconds=30", "seconds=1"), "new_state=up_for_retry"
    ),
    "dagster": Orchestrator(
        ["dagster", *DARKROOM],
        "dagster_assets.py",
        ("seconds_to_wait=30", "seconds_to_wait=1"),
        "STEP_UP_FOR_RETRY",
    ),
    # Prefect 3.8.8 does not start with FastAPI 0.159.1.
    "prefect": Orchestrator(
        ["prefect", "fastapi<0.155", *DARKROOM],
        "prefect_flow.py",
        ("[30, 60, 120]", "[1, 1, 1]"),
        "Retry ",
    ),
}
Run = Callable[[Path, Path], subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module", params=ORCHESTRATORS)
def name(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture(scope="module")
def run(name: str, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Runs the example of an orchestrator on a source, into a folder."""
    programs = make_environment(name, ORCHESTRATORS[name].packages)
    home = tmp_path_factory.mktemp(name)
    text = (ROOT / "examples" / ORCHESTRATORS[name].example).read_text()
    assert ORCHESTRATORS[name].pause[0] in text
    script = home / "dags" / ORCHESTRATORS[name].example
    script.parent.mkdir()
    script.write_text(text.replace(*ORCHESTRATORS[name].pause))
    environment = {
        **{key: value for key, value in os.environ.items() if key != "PYTHONPATH"},
        "HOME": str(home),
        "AIRFLOW_HOME": str(home),
        "AIRFLOW__CORE__DAGS_FOLDER": str(home / "dags"),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "DARKROOM": str(Path(sys.executable).with_name("darkroom")),
        "DAGSTER_HOME": str(home),
        "PREFECT_HOME": str(home),
        "PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS": "300",
        "DO_NOT_TRACK": "1",
    }
    (home / "dagster.yaml").write_text("telemetry:\n  enabled: false\n")

    def start(*command: str, **more: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [str(programs / command[0]), *command[1:]],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=environment | more,
            cwd=home,
            timeout=900,
        )

    def run_airflow(source: Path, folder: Path) -> subprocess.CompletedProcess[str]:
        values = {"source": str(source), "folder": str(folder), "epochs": 10}
        return start("airflow", "dags", "test", "photos", "-c", json.dumps(values))

    def run_dagster(source: Path, folder: Path) -> subprocess.CompletedProcess[str]:
        command = ["dagster", "asset", "materialize", "-f", str(script), "--select", "*"]
        return start(*command, PHOTOS_SOURCE=str(source), PHOTOS_FOLDER=str(folder))

    def run_prefect(source: Path, folder: Path) -> subprocess.CompletedProcess[str]:
        return start("python", str(script), str(source), str(folder))

    if name == "airflow":
        assert (made := start("airflow", "db", "migrate")).returncode == 0, made.stdout
    return {"airflow": run_airflow, "dagster": run_dagster, "prefect": run_prefect}[name]


@pytest.fixture(scope="module")
def images(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of dark and light images, with a list of them."""
    folder, rng = tmp_path_factory.mktemp("images"), np.random.default_rng(0)
    rows = ["split,image_uri,label"]
    for number in range(52):
        pixels = rng.integers(-30, 30, (24, 20, 3)) + (40, 200)[number % 2]
        Image.fromarray(pixels.astype(np.uint8)).save(folder / f"{number}.png")
        split, label = "TRAIN" if number < 40 else "VALIDATION", ("dark", "light")[number % 2]
        rows.append(f"{split},{number}.png,{label}")
    (folder / "images.csv").write_text("\n".join(rows) + "\n")
    return folder


def test_images_become_a_model(run: Run, name: str, images: Path, tmp_path: Path):
    done = run(images / "images.csv", tmp_path)
    assert done.returncode == 0, done.stdout
    dataset = json.loads((tmp_path / "records/dataset.json").read_text())
    assert (dataset["rows"], dataset["written"]) == (52, 52)
    assert json.loads((tmp_path / "report/report.json").read_text())["blessed"] is True
    assert (tmp_path / "training/model/saved_model.pb").is_file()
    assert ORCHESTRATORS[name].retry not in done.stdout


def test_bad_data_stops_the_run_at_once(run: Run, name: str, images: Path, tmp_path: Path):
    leaking = images / "leaking.csv"
    shutil.copy(images / "0.png", images / "copy.png")
    leaking.write_text((images / "images.csv").read_text() + "VALIDATION,copy.png,dark\n")
    done = run(leaking, tmp_path)
    assert done.returncode != 0
    report = json.loads((tmp_path / "report/report.json").read_text())
    assert report["blessed"] is False
    assert [each["check"] for each in report["findings"] if each["policy"] == "fail"] == ["leakage"]
    assert not (tmp_path / "training").exists()
    assert ORCHESTRATORS[name].retry not in done.stdout


def test_what_may_be_there_later_is_tried_again(run: Run, name: str, tmp_path: Path):
    done = run(tmp_path / "later.csv", tmp_path / "output")
    assert done.returncode != 0
    assert done.stdout.count(ORCHESTRATORS[name].retry) == 3, done.stdout
