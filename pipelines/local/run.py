"""`darkroom run` and `darkroom demo`: from options to a run on this machine and its summary."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Mapping, Set
from contextlib import nullcontext
from typing import Any

from darkroom import storage
from darkroom.errors import DataError, OutputError, build_missing_extra_error
from darkroom.manifest.sources import find_sources
from darkroom.pipelines.config import METADATA_FILE, PipelineConfig, make_config, merge_options
from darkroom.pipelines.local.summary import RunSummary, format_summary
from darkroom.runtime import logs, progress
from darkroom.runtime.lazy_names import is_installed
from darkroom.storage.locks import LOCK_FILE, FolderLock
from darkroom.validation.gate import GateError

LOG_FILE = "log.txt"
_RUN_NAMES = frozenset(
    (METADATA_FILE, LOG_FILE, LOCK_FILE, "artifacts", "checkpoints", "inputs", "pushed")
)
_STEP_NAMES = frozenset((LOG_FILE, LOCK_FILE, "pushed", "records", "report", "training"))

_DEMO_IMAGES = "images"
_DEMO_RUN = "run"
_DEMO_STEPS = "run-without-tfx"
_DEMO_OPTIONS: Mapping[str, Any] = {
    "image_size": (16, 16),
    "augment": "none",  # a mirrored 2 is not a 2
    "epochs": 8,
    "min_accuracy": 0.97,
}
_ADDED_BY_TFX = (
    "a step is done again only when its input changes, the data is compared with a schema, and the "
    "same pipeline runs on Kubeflow and Vertex AI"
)
DEMO_POLICIES = {"leakage": "warn", "label_conflicts": "warn"}


def run_pipeline(values: Mapping[str, Any], *, as_json: bool, overwrite: bool) -> int:
    """Runs the pipeline of options by name.

    Args:
        values: Fields of `PipelineConfig`, and `config`: path of a TOML file with more of them.
        as_json: Whether standard output gets one JSON object and nothing else.
        overwrite: Whether a root with other data may be used.

    Returns:
        The exit code.

    Raises:
        DarkroomError: The run could not start, or a component failed.
    """
    merged = merge_options(values)
    for name in ("data", "root", "push_to", "schema", "label_map"):
        if merged.get(name) is not None:
            merged[name] = storage.absolute(merged[name])
    config = make_config(merged)
    if not overwrite:
        hint = "Choose another --root, or use it with --overwrite."
        _check_root(config.root, _RUN_NAMES, hint)
    return _run(config, _run_with_tfx, as_json=as_json)


def run_demo(
    root: str,
    *,
    as_json: bool,
    policies: Mapping[str, str] | None = None,
    without_tfx: bool = False,
) -> int:
    """Writes the demo's images and runs the pipeline on them; see `run_pipeline`.

    Args:
        root: Folder for everything.
        as_json: Whether standard output gets one JSON object and nothing else.
        policies: What findings of checks do to the run, where they differ from the demo's own.
        without_tfx: Whether to do the steps on the core and TensorFlow alone, as is done where TFX
            is not installed.

    Raises:
        MissingExtraError: Neither TFX nor TensorFlow is installed.
    """
    from darkroom.pipelines.local.demo import write_demo_dataset

    without_tfx = without_tfx or not is_installed("tfx")
    if without_tfx and not is_installed("tensorflow"):
        raise build_missing_extra_error("The demo", "tf")
    root = storage.absolute(root)
    hint = "Move them, or choose another folder: darkroom demo --root DIR."
    _check_root(root, {_DEMO_IMAGES, _DEMO_RUN, _DEMO_STEPS}, hint)
    source = write_demo_dataset(storage.join(root, _DEMO_IMAGES))
    config = PipelineConfig(
        data=str(source),
        root=storage.join(root, _DEMO_STEPS if without_tfx else _DEMO_RUN),
        policies={**DEMO_POLICIES, **(policies or {})},
        **_DEMO_OPTIONS,
    )
    _check_root(config.root, _STEP_NAMES if without_tfx else _RUN_NAMES, hint)
    code = _run(config, _run_without_tfx if without_tfx else _run_with_tfx, as_json=as_json)
    if not as_json:
        print(f"\n{_format_next(without_tfx=without_tfx)}")
    return code


def _format_next(*, without_tfx: bool) -> str:
    program = f"{sys.prefix}/bin/darkroom"
    if not without_tfx:
        return f"Next       {program} run --data YOUR_IMAGES --root runs/first"
    return (
        f"Next       {program} convert YOUR_IMAGES --output-dir records\nWith TFX   {_ADDED_BY_TFX}"
    )


def _run(
    config: PipelineConfig,
    perform: Callable[[PipelineConfig, str], tuple[RunSummary, int]],
    *,
    as_json: bool,
) -> int:
    find_sources(config.data)  # fails before TFX is loaded, which takes seconds
    storage.make_folder(config.root)
    log_path = storage.join(config.root, LOG_FILE)
    with FolderLock(config.root), logs.redirect_output(log_path) as out:
        with nullcontext() if as_json else progress.use(progress.make_sink(out)):
            summary, code = perform(config, log_path)
        print(json.dumps(summary.to_dict()) if as_json else format_summary(summary), file=out)
    return code


def _run_with_tfx(config: PipelineConfig, log_path: str) -> tuple[RunSummary, int]:
    """Runs the pipeline; returns its summary and the exit code."""
    started = time.monotonic()
    with progress.step("Loading TFX and TensorFlow"):
        from darkroom.pipelines.local.latest_run import read_summary
        from darkroom.pipelines.local.pinning import pin_inputs
        from darkroom.pipelines.local_runner import run_locally
        from darkroom.training.models import check_model
    # A wrong model fails now, not after the data has been converted.
    check_model(config.model, config.weights)
    config = pin_inputs(config)
    is_stopped = False
    try:
        run_locally(config)
    except GateError:
        is_stopped = True
    summary = read_summary(config, log_path, time.monotonic() - started)
    return summary, DataError.exit_code if is_stopped else summary.exit_code


def _run_without_tfx(config: PipelineConfig, log_path: str) -> tuple[RunSummary, int]:
    from darkroom.pipelines.local.steps import run_steps

    summary = run_steps(config, log_path)
    return summary, summary.exit_code


def _check_root(root: str, own_names: Set[str], hint: str) -> None:
    """Checks that a folder is empty, or has only the files of an earlier run."""
    if storage.exists(root) and not storage.is_folder(root):
        raise OutputError(f"{root} is a file.", "Choose a folder for --root.")
    foreign = [name for name in storage.list_folder(root) if name not in own_names]
    if foreign:
        raise OutputError(f"{root} has other data: {foreign[:5]}.", hint)
