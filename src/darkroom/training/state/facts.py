"""How a model was made, collected from the folder of its training."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from darkroom import storage
from darkroom.data.splits import Commits, DataPart, list_record_splits
from darkroom.evaluation.report.facts import (
    FACTS_FILE,
    Facts,
    HistoryEntry,
    InputCosts,
    describe_code,
    encode_facts,
)
from darkroom.options.training import EFFICIENTNET_LITE, IMAGENET, TrainingOptions
from darkroom.profiling.verdict import VERDICT_JSON
from darkroom.training.state.course import choose_patience, plan_phases
from darkroom.training.state.history import ALL_PHASE, PHASE, TOP_PHASE, read_history


def collect_facts(
    folder: str,
    options: TrainingOptions,
    exported: int,
    data: Mapping[str, Sequence[DataPart]],
) -> Facts:
    """Returns how the model of a training was made, which has just been done.

    Args:
        folder: Its folder, with the history and the cost of the input.
        options: The options of the training.
        exported: The epoch, from 1, whose weights the model has.
        data: By split, the name, fingerprint and number of records of each part.
    """
    history = read_history(folder)
    try:
        costs = storage.read_json(storage.join(folder, VERDICT_JSON), InputCosts)
    except (*storage.UNUSABLE, ValueError):
        costs = InputCosts()  # the features of a base were read from memory
    return Facts(
        recipe=_describe_recipe(options, history),
        history=history,
        exported_epoch=exported,
        input=costs,
        data=data,
        code=describe_code(options.model),
    )


def _describe_recipe(options: TrainingOptions, history: Sequence[HistoryEntry]) -> dict[str, Any]:
    """Returns the options with the training's choices where they leave them open."""
    first = plan_phases(options)[0].name
    chosen: dict[str, Any] = {"early_stopping_patience": choose_patience(options, first)}
    if options.model == EFFICIENTNET_LITE and options.weights is None:
        chosen["weights"] = IMAGENET
    if options.fine_tune_epochs is None:
        chosen["fine_tune_epochs"] = sum(
            entry.get(PHASE) in (TOP_PHASE, ALL_PHASE) for entry in history
        )
    return {**options.to_dict(), **chosen}


def write_facts(folder: str, options: TrainingOptions, exported: int, commits: Commits) -> None:
    """Writes `facts.json`, for a training whose model is evaluated elsewhere.

    Args:
        folder: The folder of the training.
        options: The options of the training.
        exported: The epoch, from 1, whose weights the model has.
        commits: The commits of the data by its root; None for records of another program.
    """
    known = {root: each for root, each in commits.items() if each}
    data = {name: split.data for name, split in list_record_splits(known).items()}
    facts = collect_facts(folder, options, exported, data)
    storage.write_bytes(storage.join(folder, FACTS_FILE), encode_facts(facts))
