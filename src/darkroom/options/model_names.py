"""How a model is named: our own, one of Keras, or a function; without loading any of them."""

from __future__ import annotations

from darkroom.errors import UsageError

SMALL_CNN = "small_cnn"
APPLICATIONS_PREFIX = "keras.applications:"


def check_model_name(spec: str) -> None:
    """Checks that a text may name a model. Whether there is one of that name is not looked up.

    Raises:
        UsageError: It cannot.
    """
    module, colon, function = spec.partition(":")
    is_name = colon and function.isidentifier() and all(map(str.isidentifier, module.split(".")))
    if spec != SMALL_CNN and not is_name:
        raise UsageError(
            f"model is {spec!r}, expected {SMALL_CNN}, {APPLICATIONS_PREFIX}NAME or "
            "package.module:function."
        )
