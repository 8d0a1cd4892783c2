"""`darkroom compile`: from options to a file that a cluster runs."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any

from darkroom import storage
from darkroom.errors import StorageError, UsageError
from darkroom.options.targets import KUBEFLOW, VERTEX
from darkroom.pipelines.compilation.checks import check_config
from darkroom.pipelines.config import PipelineConfig, make_config, merge_options
from darkroom.pipelines.credentials import check_credentials

# Kubeflow's and Vertex's clients tell the form by the ending.
_ENDINGS = {KUBEFLOW: (".yaml", ".yml"), VERTEX: (".json",)}


def run_compile(values: Mapping[str, Any], *, as_json: bool) -> int:
    """Compiles the pipeline of options by name.

    Args:
        values: Fields of `PipelineConfig`, `config` (path of a TOML file with more of them),
            `target` and `output`.
        as_json: Whether standard output gets one JSON object.

    Returns:
        The exit code.

    Raises:
        UsageError: A value is wrong; see `compile_pipeline`.
        OSError: The file cannot be written.
    """
    check_credentials(values)  # before a message shows a value
    values = dict(values)
    target, output = values.pop("target"), values.pop("output")
    # Unlike `darkroom run` this leaves paths alone: they must mean the same in a container.
    merged = merge_options(values)
    check_credentials(merged)  # with what the file of options says
    config = make_config(merged)
    _check_output(output, target)
    write_compiled(config, target, output)
    if as_json:
        print(json.dumps({"output": output, "target": target, "root": config.root}))
    else:
        print(f"Compiled for {target}: {output}")
    return 0


def write_compiled(config: PipelineConfig, target: str, path: str) -> None:
    """Writes the file of a configuration for a target; it appears complete or not at all.

    Raises:
        UsageError: A value is wrong; see `compile_pipeline`.
        OSError: The file cannot be written.
    """
    storage.write_bytes(path, format_compiled(config, target).encode())


def format_compiled(config: PipelineConfig, target: str) -> str:
    """Returns the text of the file of a configuration for a target.

    Raises:
        UsageError: A value is wrong; see `compile_pipeline`.
    """
    check_config(config, target)  # before the runners load TFX, which takes seconds
    from darkroom.pipelines import kubeflow_runner, vertex_runner

    if target == KUBEFLOW:
        return kubeflow_runner.format_for_kubeflow(config)
    return vertex_runner.format_for_vertex(config)


def _check_output(path: str, target: str) -> None:
    endings = _ENDINGS[target]
    if not path.endswith(endings):
        raise UsageError(
            f"The output is {path!r}; for {target} its name must end in {' or '.join(endings)}.",
            f"Give -o pipeline{endings[0]}.",
        )
    # Said here, and not seconds later with the name of a part that could not be written.
    folder = os.path.dirname(storage.absolute(path))
    if not storage.is_remote(path) and not storage.is_folder(folder):
        raise StorageError(f"The folder {folder} is not there.", "Make it, or change -o.")
    if not storage.is_remote(path) and storage.is_folder(path):
        raise StorageError(f"The output {path} is a folder.", "Give the name of a file with -o.")
