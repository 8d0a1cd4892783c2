"""The interface of a component, filled: its inputs and properties, and a channel of each output."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from tfx.types import channel_utils
from tfx.types.artifact import Artifact
from tfx.types.component_spec import ChannelParameter, ComponentSpec


def list_channels(*, optional: bool = False, **types: type[Artifact]) -> dict[str, Any]:
    """Returns inputs or outputs by name.

    Args:
        optional: Whether a component may lack them.
        types: The type of the artifacts of each.
    """
    return {name: ChannelParameter(type=kind, optional=optional) for name, kind in types.items()}


def fill_spec(
    kind: type[ComponentSpec], *inputs: Any, without: Collection[str] = (), **properties: Any
) -> Any:
    """Returns the interface of a component with its values.

    Args:
        kind: The class of the interface.
        inputs: Its inputs in the order of the interface; None for one that is left out.
        without: The optional outputs that this component does not have.
        properties: Its properties; None for one that is left out.
    """
    outputs = {
        name: channel_utils.as_channel([each.type()])
        for name, each in kind.OUTPUTS.items()
        if name not in without
    }
    given = {**dict(zip(kind.INPUTS, inputs, strict=True)), **properties}
    taken = {name: value for name, value in given.items() if value is not None}
    return kind(**taken, **outputs)
