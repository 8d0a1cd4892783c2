"""How a model was made, as rows of names and values for the page and the card."""

from __future__ import annotations

from darkroom.evaluation.facts import Facts

Rows = list[tuple[str, str]]


def list_input(facts: Facts) -> Rows:
    """Returns what the input cost: the verdict, and the cost of each stage if it was measured."""
    if not facts.input:
        return []
    stages = facts.input.get("microseconds_an_image") or {}
    return [
        ("verdict", str(facts.input.get("verdict", ""))),
        *((f"{name}, µs an image", f"{value:,.0f}") for name, value in stages.items()),
    ]


def list_recipe(facts: Facts) -> Rows:
    """Returns the options of the training, and how long it went on."""
    if not facts.recipe:
        return []
    reason = "the last" if facts.recipe.get("export") == "last" else "lowest val_loss"
    epochs = f"{facts.best_epoch} of {len(facts.history)} ({reason})"
    return [("exported epoch", epochs), *((k, _format(v)) for k, v in facts.recipe.items())]


def list_data(facts: Facts) -> Rows:
    """Returns the parts of the data with their fingerprints."""
    return [
        (
            f"{split}: {part.get('name')}",
            f"{part.get('records'):,} records, fingerprint {part.get('fingerprint')}",
        )
        for split, parts in facts.data.items()
        for part in parts
    ]


def list_code(facts: Facts) -> Rows:
    """Returns versions and hashes of what trained."""
    return [*facts.code.items()]


def _format(value: object) -> str:
    if isinstance(value, list | tuple):
        return " x ".join(map(str, value))
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "none" if value is None else str(value)
