"""Executor of ModelRegistrar."""

from __future__ import annotations

from typing import Any

from absl import logging
from tfx.dsl.components.base import base_executor
from tfx.types import artifact_utils

from darkroom import storage
from darkroom.evaluation.report.write import PAGE_FILE
from darkroom.steps.places import name_place
from darkroom.steps.registry import register_version


class Executor(base_executor.BaseExecutor):
    """Registers a model that was pushed."""

    def Do(
        self,
        input_dict: dict[str, list[Any]],
        output_dict: dict[str, list[Any]],
        exec_properties: dict[str, Any],
    ) -> None:
        """Registers the model, unless Pusher pushed none; a registry that is down is a warning.

        Args:
            input_dict: `pushed_model`: a PushedModel; `page`: a ModelPage.
            output_dict: Empty.
            exec_properties: `registry`, `model_name` and `run`.

        Raises:
            DarkroomError: See `register_version`.
        """
        pushed = artifact_utils.get_single_instance(input_dict["pushed_model"])
        place = pushed.get_string_custom_property("pushed_destination")
        if not place:
            logging.info("Nothing is registered: no model was pushed.")
            return
        if not storage.is_remote(place):  # a version in the artifact, or a path
            place = storage.join(pushed.uri, place)
        folder = artifact_utils.get_single_uri(input_dict["page"])
        name, run = exec_properties["model_name"], exec_properties["run"]
        uri, page = map(name_place, (place, storage.join(folder, PAGE_FILE)))
        register_version(exec_properties["registry"], name, folder, uri=uri, page=page, run=run)
