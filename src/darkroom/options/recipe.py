"""How a model learns: the rate and its course, the loss, and what rare labels count."""

from __future__ import annotations

from dataclasses import dataclass

from darkroom.options.fields import LEARNED, option

COSINE, CONSTANT = SCHEDULES = ("cosine", "constant")
NO_BALANCE, WEIGHTS, SAMPLING, PRIOR = BALANCES = ("none", "weights", "sampling", "prior")


@dataclass(frozen=True, kw_only=True)
class RecipeFields:
    """How a model learns; benchmarks/lab/training.md measures each default."""

    learning_rate: float = option(
        3e-3,
        "Highest learning rate of the AdamW optimizer.",
        group="training",
        runtime=True,
        more="Not used, as the next six, for a model that comes compiled.",
        resume=LEARNED,
    )
    schedule: str = option(
        COSINE,
        "Course of the learning rate: down to nothing, or constant.",
        group="training",
        choices=SCHEDULES,
        runtime=True,
        more="It is planned for all `epochs`: with more of them, it follows the new plan.",
        resume=LEARNED,
    )
    warmup_ratio: float = option(
        0.1,
        "Share of all batches in which the learning rate rises from 0.",
        group="training",
        least=0,
        most=1,
        runtime=True,
        resume=LEARNED,
    )
    weight_decay: float = option(
        0.01,
        "Weight decay of the AdamW optimizer; 0 for none.",
        group="training",
        least=0,
        most=1,
        runtime=True,
        more="Biases and normalisation have none.",
        resume=LEARNED,
    )
    clip_norm: float = option(
        1.0,
        "Largest norm of the gradient of all weights together; 0 for any.",
        group="training",
        least=0,
        most=1e6,
        runtime=True,
        resume=LEARNED,
    )
    label_smoothing: float = option(
        0.0,
        "Share of a label that counts for all labels alike.",
        group="training",
        least=0,
        most=0.9,
        runtime=True,
        more="In training and in the eval loss.",
    )
    balance: str = option(
        NO_BALANCE,
        "What rare labels count: as they come (none), or as much as others, by weights of the "
        "loss, by sampling, or by the prior of each label.",
        group="training",
        choices=BALANCES,
        runtime=True,
        more="With `prior`, training multiplies each probability by the share of its label, and "
        "the model does not. With all three, every label counts the same in the eval loss, too, "
        "which chooses the best epoch. Accuracies count images.",
    )
