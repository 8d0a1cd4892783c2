"""Compiles a configuration of darkroom's pipeline into the spec that Kubeflow or Vertex runs.

It adds run-time parameters with defaults to the job of `job.py` for any pipeline.
"""

from __future__ import annotations

import json
from typing import Any

from darkroom.components.parameters import PARAMETERS
from darkroom.manifest.label_map import resolve_labels
from darkroom.options.checks import encode_json
from darkroom.options.pipeline import FINGERPRINTS
from darkroom.options.training import APPLICATIONS_PREFIX
from darkroom.pipelines.beam_arguments import make_beam_args
from darkroom.pipelines.compilation.check import do_tasks_read_labels, name_baseline, parse_version
from darkroom.pipelines.compilation.job import finish_documents, make_job
from darkroom.pipelines.config import PipelineConfig
from darkroom.pipelines.pipeline import create_pipeline
from darkroom.training.models import check_model

_TYPES = {str: "STRING", int: "NUMBER_INTEGER", float: "NUMBER_DOUBLE"}
# The first version of Kubeflow Pipelines whose form and server know the values of a parameter.
_LITERALS = (2, 16)
_DESCRIPTION = (
    "darkroom: from a list of images to records that were checked, and a model. The report on the "
    "data is the output validation_html of ImageValidator; ModelReport says how good the model is."
)
_INPUTS_SPEC = "--json_serialized_inputs_spec_args"


def make_documents(config: PipelineConfig, target: str) -> list[dict[str, Any]]:
    """Returns the content of the compiled file of a configuration, one dict for each document.

    It reads nothing but the label map, and connects to no server.

    Args:
        config: A configuration that was checked for the target; see `compilation.check`. Its
            values are the defaults of the run-time parameters. With a `source_fingerprint`,
            ManifestGen's outputs may come from the cache, too.
        target: `kubeflow` or `vertex`.

    Returns:
        For Kubeflow the pipeline spec and, when there is any, the platform spec; for Vertex the job
        spec.

    Raises:
        UsageError: A value cannot work on the target.
    """
    config = name_baseline(config, target)
    beam_args = make_beam_args(config)
    # A user's own model may be in the image alone.
    if config.model.startswith(APPLICATIONS_PREFIX):
        check_model(config.model)
    compiled_in = not do_tasks_read_labels(config, target)
    pipeline = create_pipeline(
        config,
        resolve_labels(config.manifest).labels if compiled_in else None,
        beam_args=beam_args,
        push_dir=config.push_to or "",
    )
    # Of nodes that read a path. Weights are a run-time parameter: whoever runs the file may name
    # some. Where ManifestGen runs each time, Trainer has new input anyway.
    reads_no_weights = config.weights is None and not config.source_fingerprint
    cached = {
        "ImportSchemaGen": False,
        # The cache does not know the folder where it pushes; and whoever runs the file may name
        # such a folder.
        "Pusher": False,
        "ModelRegistrar": False,
        "ManifestGen": bool(config.source_fingerprint),
        "Trainer": reads_no_weights or bool(config.model_fingerprint),
    }
    job = make_job(pipeline, config, target, is_cached=lambda node: cached.get(node.id, True))
    spec = job["pipelineSpec"]
    spec["pipelineInfo"]["description"] = _DESCRIPTION
    _add_parameters(spec, config)
    return finish_documents(job, config, target)


def _add_parameters(spec: dict[str, Any], config: PipelineConfig) -> None:
    """Makes each parameter an input of the pipeline and of the tasks that use it."""
    pipeline_inputs = spec["root"].setdefault("inputDefinitions", {}).setdefault("parameters", {})
    # Without a value, no cache would compare a fingerprint, so a field for it would do nothing.
    names = {*config.parameters, *(name for name in FINGERPRINTS if getattr(config, name))}
    taken = [each for each in PARAMETERS if each.name in names]
    for parameter in taken:
        kind = {"parameterType": _TYPES[parameter.kind]}
        default = parameter.encode(getattr(config, parameter.name))
        told: dict[str, Any] = {**kind, "defaultValue": default, "isOptional": True}
        if (
            (choices := parameter.field.option.choices)
            and config.kfp
            and parse_version(config.kfp) >= _LITERALS
        ):
            told["literals"] = list(choices)
        pipeline_inputs[parameter.name] = told
        # A parameter that is a whole property replaces it; any other is passed beside its property.
        name = parameter.name if parameter.path else parameter.key
        task_inputs = spec["components"][parameter.component]["inputDefinitions"]["parameters"]
        task_inputs[name] = kind
        task = spec["root"]["dag"]["tasks"][parameter.component]
        if parameter.path:
            # Taken out of its property: the UI shows both, and only one would be right.
            value = task["inputs"]["parameters"][parameter.key]["runtimeValue"]
            tree = json.loads(value["constant"])
            table, key = parameter.find(tree)
            table.pop(key, None)
            value["constant"] = encode_json(tree)
        task["inputs"]["parameters"][name] = {"componentInputParameter": parameter.name}
    for component in {parameter.component for parameter in taken}:
        # The argument from which the entrypoint knows the types of its inputs.
        args = spec["deploymentSpec"]["executors"][f"{component}_executor"]["container"]["args"]
        inputs = spec["components"][component]["inputDefinitions"]
        args[args.index(_INPUTS_SPEC) + 1] = json.dumps(inputs, sort_keys=True)
