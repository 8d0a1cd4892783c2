"""`darkroom run` and `darkroom demo`: from options to a run on this machine and its summary."""

from __future__ import annotations

import json
import os
import sqlite3
import sys
import time
import urllib.parse
from collections.abc import Mapping
from contextlib import closing, nullcontext
from typing import Any, TextIO

from darkroom import storage
from darkroom.errors import DataError, build_missing_extra_error
from darkroom.manifest.sources import find_sources
from darkroom.pipelines.config import METADATA_FILE, PipelineConfig, make_config, merge_options
from darkroom.runtime import logs, progress
from darkroom.runtime.lazy_names import is_installed
from darkroom.storage import ledger
from darkroom.storage.locks import FolderLock

LOG_FILE = "log.txt"
_RUN_NAMES = (METADATA_FILE, LOG_FILE, "artifacts/", "checkpoints/", "inputs/", "pushed/")
_HINT = "Choose another --root."

_DEMO_IMAGES = "images"
_DEMO_RUN = "run"
_DEMO_OPTIONS: Mapping[str, Any] = {
    "image_size": (16, 16),
    "augment": "none",  # a mirrored 2 is not a 2
    "epochs": 8,
    "min_accuracy": 0.97,
}
DEMO_POLICIES = {"leakage": "warn", "label_conflicts": "warn"}


def run_pipeline(values: Mapping[str, Any], *, as_json: bool, overwrite: bool) -> int:
    """Runs the pipeline of options by name.

    Args:
        values: Fields of `PipelineConfig`, and `config`: path of a TOML file with more of them.
        as_json: Whether standard output gets one JSON object and nothing else.
        overwrite: Whether a root with other data may be used. Files of the user's are never
            replaced.

    Returns:
        The exit code.

    Raises:
        DarkroomError: The run could not start, or a component failed.
    """
    merged = merge_options(values)
    for name in ("data", "root", "push_to", "schema", "label_map"):
        if merged.get(name) is not None:
            merged[name] = storage.absolute(merged[name])
    return _run(make_config(merged), as_json=as_json, overwrite=overwrite)


def run_demo(root: str, policies: Mapping[str, str], *, as_json: bool) -> int:
    """Writes the demo's images and runs the pipeline on them; see `run_pipeline`."""
    from darkroom.pipelines.local.demo import write_demo_dataset

    root = storage.absolute(root)
    hint = "Move them, or choose another folder: darkroom demo --root DIR."
    ledger.check_alone(root, {_DEMO_IMAGES, _DEMO_RUN}, hint)
    source = write_demo_dataset(storage.join(root, _DEMO_IMAGES))
    config = PipelineConfig(
        data=str(source),
        root=storage.join(root, _DEMO_RUN),
        policies={**DEMO_POLICIES, **policies},
        **_DEMO_OPTIONS,
    )
    code = _run(config, as_json=as_json, overwrite=False)
    if not as_json:
        print(f"\nNext       {sys.prefix}/bin/darkroom run --data YOUR_IMAGES --root runs/first")
    return code


def _run(config: PipelineConfig, *, as_json: bool, overwrite: bool) -> int:
    if not overwrite:
        hint = "Choose another --root, or use it with --overwrite."
        ledger.check_alone(config.root, _RUN_NAMES, hint)
    find_sources(config.data)  # fails before TFX is loaded, which takes seconds
    if not is_installed("tfx"):
        # Nothing has been written yet.
        raise build_missing_extra_error("The module tfx", "tfx")
    storage.make_folder(config.root)
    log_path = storage.join(config.root, LOG_FILE)
    with FolderLock(config.root):
        _claim_root(config.root)
        with logs.redirect_output(log_path) as out:
            return _run_reported(config, log_path, out, as_json=as_json)


def _claim_root(root: str) -> None:
    """Checks that what a run writes to is new, or of an earlier run in this folder."""
    # Version 0.1.0 left no ledger.
    is_older = not ledger.is_listed(root, METADATA_FILE) and _has_our_metadata(root)
    names = dict.fromkeys(_RUN_NAMES, ledger.ANY)
    ledger.claim(root, names, _RUN_NAMES if is_older else (), _HINT)


def _has_our_metadata(root: str) -> bool:
    """Tells whether a folder has a database of ML Metadata that knows our artifacts."""
    path = storage.join(root, METADATA_FILE)
    if not os.path.isfile(path):
        return False
    query = "SELECT 1 FROM Type WHERE name = 'darkroom.ImageManifest'"
    uri = f"file:{urllib.parse.quote(path)}?mode=ro"
    try:
        with closing(sqlite3.connect(uri, uri=True)) as connection:
            return bool(connection.execute(query).fetchall())
    except sqlite3.Error:
        return False


def _run_reported(config: PipelineConfig, log_path: str, out: TextIO, *, as_json: bool) -> int:
    started = time.monotonic()
    error: DataError | None = None
    with nullcontext() if as_json else progress.use(progress.make_sink(out)):
        with progress.step("Loading TFX and TensorFlow"):
            from darkroom.pipelines.local import summary as summaries
            from darkroom.pipelines.local.pinning import pin_inputs
            from darkroom.pipelines.local_runner import run_locally
            from darkroom.training.models import check_model
            from darkroom.validation.gate import GateError
        # A wrong model fails now, not after the data has been converted.
        check_model(config.model, config.weights)
        config = pin_inputs(config)
        try:
            run_locally(config)
        except GateError as stop:
            error = stop
    summary = summaries.read_summary(config, log_path, time.monotonic() - started)
    if as_json:
        print(json.dumps(summary.to_dict()), file=out)
    else:
        print(summaries.format_summary(summary), file=out)
    return 1 if error else summary.exit_code
