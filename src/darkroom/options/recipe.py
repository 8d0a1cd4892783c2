"""How a model learns: the learning-rate schedule, the loss, and the balance of labels."""

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
        more="Not used, as the next five, for a model that comes compiled.",
        resume=LEARNED,
    )
    schedule: str = option(
        COSINE,
        "Learning-rate schedule: down to a hundredth along a cosine, or constant.",
        group="training",
        choices=SCHEDULES,
        runtime=True,
        more="It is planned for all `epochs`: with more of them, it follows the new plan.",
        resume=LEARNED,
    )
    warmup_ratio: float = option(
        0.1,
        "Share of all batches in which the learning rate warms up from 0.",
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
        "Gradient clipping: the largest global norm of the gradients; 0 for any.",
        group="training",
        least=0,
        most=1e6,
        runtime=True,
        resume=LEARNED,
    )
    label_smoothing: float = option(
        0.0,
        "Label smoothing: the share of each label spread evenly over all labels.",
        group="training",
        least=0,
        most=0.9,
        runtime=True,
        more="In training and in the eval loss.",
    )
    balance: str = option(
        NO_BALANCE,
        "Balance of rare labels: none, class weights in the loss, more frequent sampling, or the "
        "prior of each label.",
        group="training",
        choices=BALANCES,
        runtime=True,
        more="With `prior`, training multiplies each probability by the share of its label, and "
        "the model does not. With all three, every label counts the same in the eval loss, too, "
        "which chooses the best epoch. Accuracies count images.",
    )
