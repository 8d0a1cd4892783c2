"""The state of the files of a pipeline's model: its weights, and the code that builds it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from darkroom import storage
from darkroom.components.file_state import Check, FileState, accept
from darkroom.components.parameters import MODEL_FINGERPRINT_KEY
from darkroom.components.user_code import fingerprint_sources, read_sources
from darkroom.options.training import APPLICATIONS_PREFIX, CONFIG_KEY, IMAGENET
from darkroom.training.networks.weights import find_state_file

__all__ = ["fingerprint_model"]


def fingerprint_model(model: str, weights: str | None, check: Check = accept) -> str:
    """Returns the state of a model's files: its weights, and the code that builds it.

    The code is the module of the function and the user's modules that it imports.

    Args:
        model: The model, as its option names it.
        weights: The weights, as their option names them.
        check: Called with the path of the weights; may raise any error.
    """
    states = []
    if weights and weights != IMAGENET:
        check(weights)
        if storage.exists(weights):
            states.append(repr(storage.stat_file(find_state_file(weights))))
    module, colon, _ = model.partition(":")
    if colon and not model.startswith(APPLICATIONS_PREFIX):
        # Empty for an unknown module: the error comes when the model is built.
        states.append(fingerprint_sources(read_sources(module)))
    return "-".join(states)


def _read_model(properties: Mapping[str, Any], check: Check) -> str:
    options = json.loads(properties["custom_config"])[CONFIG_KEY]
    return fingerprint_model(options["model"], options.get("weights"), check)


# Trainer has the text inside of `custom_config`.
MODEL_STATE = FileState("Trainer", "model", MODEL_FINGERPRINT_KEY, _read_model)
