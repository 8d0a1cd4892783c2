"""`darkroom compile`: from options to a file that a cluster runs."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from darkroom import storage
from darkroom.errors import UsageError
from darkroom.options.compiled.credentials import check_credentials
from darkroom.options.targets import KUBEFLOW, VERTEX
from darkroom.pipelines.compilation.check import (
    check_cluster,
    check_config,
    list_warnings,
    merge_checked_options,
)
from darkroom.pipelines.compilation.text import format_documents
from darkroom.pipelines.config import make_cluster_config, make_config
from darkroom.runtime import progress
from darkroom.storage import ledger

# Kubeflow's and Vertex's clients tell the format by the ending.
_ENDINGS = {KUBEFLOW: (".yaml", ".yml"), VERTEX: (".json",)}


def run_compile(values: Mapping[str, Any], *, as_json: bool) -> int:
    """Compiles the pipeline of options by name.

    Args:
        values: Fields of `PipelineConfig`, `config` (path of a TOML file with more of them),
            `target` and `output`. With `pipeline`, the function of a user's own pipeline, fields
            of `ClusterConfig`.
        as_json: Whether standard output gets one JSON object.

    Returns:
        The exit code.

    Raises:
        OutputError: The output is a folder.
        UsageError: A value is wrong; see `compile_pipeline`.
        OSError: The file cannot be written.
    """
    check_credentials(values)  # before a message shows a value
    values = dict(values)
    target, output = values.pop("target"), storage.expand_home(values.pop("output"))
    # Unlike `darkroom run` this leaves paths alone: they must mean the same in a container.
    merged = merge_checked_options(values)
    compile_it = _compile_own if "pipeline" in merged else _compile_ours
    if not output.endswith(endings := _ENDINGS[target]):
        raise UsageError(
            f"The output is {output!r}; for {target} its name must end in {' or '.join(endings)}.",
            f"Give -o pipeline{endings[0]}.",
        )
    # Like every compiler, this replaces what the user names.
    ledger.check_output_file(storage.absolute(output), overwrite=True)
    with progress.use(progress.make_sink(sys.stderr)):
        text, root, warnings = compile_it(merged, target)
    storage.write_bytes(output, text.encode())
    if as_json:
        told = {"output": output, "target": target, "root": root or None}
        print(json.dumps({**told, "warnings": warnings}))
    else:
        print(f"Compiled for {target}: {output}")
    return 0


def _compile_ours(values: Mapping[str, Any], target: str) -> tuple[str, str, list[str]]:
    """Returns the text of the compiled file, its root, and its warnings."""
    config = make_config(values, target)
    check_config(config, target)
    warnings = list_warnings(config, target)
    _tell(warnings)
    with progress.step("Loading TFX"):
        from darkroom.pipelines.compilation.spec import make_documents
    with progress.step("Compiling"):
        text = format_documents(make_documents(config, target), target)
    return text, config.root, warnings


def _compile_own(values: Mapping[str, Any], target: str) -> tuple[str, str, list[str]]:
    """Returns the same of the user's own pipeline."""
    given = dict(values)
    function = given.pop("pipeline")
    if not isinstance(function, str):
        raise UsageError("pipeline is not text.", "Give package.module:function.")
    config = make_cluster_config(given)
    check_cluster(config, target)
    with progress.step("Loading TFX"):
        from darkroom.pipelines.compilation import own
    pipeline = own.load_pipeline(function, config.root)
    warnings = own.list_own_warnings(pipeline, config, target)
    _tell(warnings)
    with progress.step("Compiling"):
        text = format_documents(own.make_own_documents(pipeline, config, target), target)
    return text, own.find_root(pipeline, config), warnings


def _tell(warnings: Sequence[str]) -> None:
    for warning in warnings:
        progress.note(f"Warning: {warning}")
