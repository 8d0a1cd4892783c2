"""How a model was made, as rows of names and values for the page and the card."""

from __future__ import annotations

from darkroom.evaluation.report.facts import Facts

# The phases of a history after that of the head.
_FINE_TUNING = ("top", "all")

_Rows = list[tuple[str, str]]


def list_input(facts: Facts) -> _Rows:
    """Returns the cost of the input: the verdict, and the cost of each stage if it was measured."""
    if not facts.input:
        return []
    stages = facts.input.get("microseconds_an_image") or {}
    return [
        ("verdict", str(facts.input.get("verdict", ""))),
        *((f"{name}, µs an image", f"{value:,.0f}") for name, value in stages.items()),
    ]


def list_recipe(facts: Facts) -> _Rows:
    """Returns the options of the training, and its duration.

    An option is "default" where the user gave no value and the training chose one.
    """
    if not facts.recipe:
        return []
    reason = "the last" if facts.recipe.get("export") == "last" else "lowest val_loss"
    epochs = f"{facts.exported_epoch} of {len(facts.history)} ({reason})"
    values = {name: _format(value) for name, value in facts.recipe.items()}
    tuned = sum(str(entry.get("phase")) in _FINE_TUNING for entry in facts.history)
    for name, done in (("epochs", len(facts.history) - tuned), ("fine_tune_epochs", tuned)):
        # A training may end early.
        if facts.recipe.get(name):
            values[name] = f"{done} of {values[name]}"
    return [("exported epoch", epochs), *values.items()]


def list_data(facts: Facts) -> _Rows:
    """Returns the parts of the data with their fingerprints."""
    return [
        (
            f"{split}: {part.get('name')}",
            f"{part.get('records'):,} records, fingerprint {part.get('fingerprint')}",
        )
        for split, parts in facts.data.items()
        for part in parts
    ]


def _format(value: object) -> str:
    if isinstance(value, list | tuple):
        return " x ".join(map(str, value))
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "default" if value is None else str(value)
