"""Trainer: TFX's own, with a driver that notices changed code and files."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from typing import Any

from tfx.components.trainer import component as tfx_component
from tfx.components.util import udf_utils
from tfx.dsl.components.base import executor_spec
from tfx.proto import trainer_pb2
from tfx.types import channel
from tfx.types.standard_component_specs import MODULE_FILE_KEY, MODULE_PATH_KEY

from darkroom import storage
from darkroom.components.file_state import TRAINING_STATE
from darkroom.components.state_driver import TAKEN_BY_EACH_RUN, TrainingDriver
from darkroom.components.trainer import executor
from darkroom.errors import UsageError


class DescribingTrainer(tfx_component.Trainer):
    """TFX's Trainer, whose outputs say how good the model is, and how it was made."""

    EXECUTOR_SPEC = executor_spec.ExecutorClassSpec(executor.Executor)


class Trainer(DescribingTrainer):
    """Trains by a `run_fn`; each run looks whether its code or its files have changed.

    The code is the module of `run_fn` and the user's modules that it imports. The files are those
    that `custom_config` names, as weights to start from, and those in `files`. Packages that pip
    installed are not looked at.

    Component `outputs` contains:
      - `model`: `standard_artifacts.Model`, with the custom properties `labels`, `eval_accuracy`,
        `dataset_fingerprint` and, of the SavedModel, `sha256`, as far as they are known.
      - `model_run`: `standard_artifacts.ModelRun`, the other files of the training, with the same.
    """

    DRIVER_CLASS = TrainingDriver

    def __init__(
        self,
        examples: channel.BaseChannel,
        *,
        run_fn: str | None = None,
        module_file: str | None = None,
        base_model: channel.BaseChannel | None = None,
        schema: channel.BaseChannel | None = None,
        transform_graph: channel.BaseChannel | None = None,
        hyperparameters: channel.BaseChannel | None = None,
        train_args: trainer_pb2.TrainArgs | None = None,
        eval_args: trainer_pb2.EvalArgs | None = None,
        custom_config: Mapping[str, Any] | None = None,
        files: Sequence[str | os.PathLike[str]] = (),
        fingerprint: str | None = None,
        **more: Any,
    ) -> None:
        """Makes the component.

        Args:
            examples: `Examples` of ImageToTFRecord.
            run_fn: Path of the function that trains, as in "package.module.run_fn". This or
                `module_file` is needed.
            module_file: Python file with a function `run_fn`.
            base_model: `Model` to start from, as a Resolver finds it.
            schema: `Schema` for `run_fn`.
            transform_graph: `TransformGraph` for `run_fn`.
            hyperparameters: `HyperParameters` for `run_fn`.
            train_args: Splits and steps to train on.
            eval_args: Splits and steps to evaluate on.
            custom_config: Options for `run_fn`, values that JSON knows.
            files: More files and folders that `run_fn` reads. A local one must exist.
            fingerprint: State of code and files, which caches compare. With None each run takes it.
                A text is used as it is.
            **more: Further arguments of TFX's Trainer in this version of TFX.

        Raises:
            UsageError: One of the local `files` does not exist.
        """
        paths = [os.fspath(each) for each in files]
        # A run would take a missing file for an unchanged one.
        for path in paths:
            if not storage.is_remote(path) and not storage.exists(path):
                message = f"files has {path!r}, which does not exist."
                raise UsageError(message, storage.suggest_near(path))
        super().__init__(
            examples=examples,
            run_fn=run_fn,
            module_file=module_file,
            base_model=base_model,
            schema=schema,
            transform_graph=transform_graph,
            hyperparameters=hyperparameters,
            train_args=train_args,
            eval_args=eval_args,
            custom_config=custom_config,
            **more,
        )
        properties = self.spec.exec_properties
        self._module_file = properties.get(MODULE_FILE_KEY)
        # TFX's constructor makes its own spec, which has no such properties.
        properties["files"] = json.dumps(paths)
        properties[TRAINING_STATE.key] = TAKEN_BY_EACH_RUN if fingerprint is None else fingerprint

    def _resolve_pip_dependencies(self, pipeline_root: str) -> None:
        """Packs the module file; TFX would do so in the first run of the component alone."""
        if self._module_file and udf_utils.should_package_user_modules():
            self.spec.exec_properties[MODULE_FILE_KEY] = self._module_file
            self._pip_dependencies: list[object] = []
            udf_utils.add_user_module_dependency(self, MODULE_FILE_KEY, MODULE_PATH_KEY)
        super()._resolve_pip_dependencies(pipeline_root)
