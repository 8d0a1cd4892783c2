"""The result of a training, and the file that marks one as done."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from darkroom import storage
from darkroom.evaluation.report.result import Evaluation, format_evaluation
from darkroom.evaluation.report.write import PAGE_FILE
from darkroom.evaluation.scores.serving import MODEL_FOLDER
from darkroom.profiling.verdict import VERDICT_MARKDOWN
from darkroom.runtime import cards
from darkroom.runtime.json_values import build_value
from darkroom.training.recipe.hints import format_for_python, format_hints
from darkroom.training.state.folder import RESULT_FILE
from darkroom.training.state.history import Exported, format_exported


@dataclass(frozen=True)
class TrainingResult:
    """The result of a training.

    Attributes:
        epochs: Number of epochs done.
        best_epoch: The epoch, from 1, with the lowest loss on the eval split.
        exported_epoch: The epoch that the model's weights are from.
        metrics: Losses and metrics of the exported epoch, by Keras's names.
        checkpoint_dir: The folder of checkpoints, history and TensorBoard's files.
        model_dir: The folder of the SavedModel.
        evaluation: How good the exported model is on the test split, or without one on the eval
            split.
        verdict: Whether input slowed down the training, and which part of it; None if nothing was
            left to train, or the head alone was trained.
        already_complete: Whether an earlier run had done everything.
        hints: Hints how to improve the model, a sentence each.
    """

    epochs: int
    best_epoch: int
    exported_epoch: int
    metrics: dict[str, float]
    checkpoint_dir: str
    model_dir: str
    evaluation: Evaluation
    verdict: str | None = None
    already_complete: bool = False
    hints: Sequence[str] = ()

    @property
    def exported(self) -> Exported:
        """Which epoch the model's weights are from."""
        return Exported(self.exported_epoch, self.epochs, self.best_epoch)

    def to_dict(self) -> dict[str, Any]:
        """Returns the result as values that JSON knows."""
        return {**asdict(self), "evaluation": self.evaluation.to_dict()}

    def __repr__(self) -> str:
        return (
            f"TrainingResult(model_dir={self.model_dir!r}, best_epoch={self.best_epoch}, "
            f"epochs={self.epochs}, evaluation={self.evaluation!r})"
        )

    def _repr_html_(self) -> str:
        """Returns the epoch of the model and how good it is, as a notebook shows them."""
        card = cards.make_card(
            f"Epoch {format_exported(self.exported)}",
            self.to_dict() | {"evaluation": None, "hints": None},
            "Already complete: nothing was done." if self.already_complete else None,
            *(f"Next: {format_for_python(hint)}." for hint in self.hints),
        )
        return card + self.evaluation._repr_html_()


@dataclass(frozen=True)
class _Saved:
    """The content of `training.json`."""

    plan: Mapping[str, Any]
    result: Mapping[str, Any]


def format_training(result: TrainingResult) -> str:
    """Returns the result as lines for a person."""
    metrics = ", ".join(f"{name} {value:.4f}" for name, value in result.metrics.items())
    head = "Already complete: nothing was done.\n" if result.already_complete else ""
    stages = storage.join(result.checkpoint_dir, VERDICT_MARKDOWN)
    verdict = f"Input      {result.verdict}\n           {stages}\n" if result.verdict else ""
    return (
        f"{head}Epoch      {format_exported(result.exported)}\nMetrics    {metrics}\n"
        f"{format_evaluation(result.evaluation)}\n{verdict}"
        f"History    {result.checkpoint_dir}\nModel      {result.model_dir}"
        f"{format_hints(result.hints)}"
    )


def write_result(folder: str, plan: Mapping[str, Any], result: TrainingResult) -> None:
    """Marks the training in a folder as done.

    Args:
        folder: Its folder.
        plan: Values for JSON that decide the model.
        result: The result.
    """
    text = json.dumps({"plan": plan, "result": result.to_dict()}, indent=1) + "\n"
    storage.write_bytes(storage.join(folder, RESULT_FILE), text.encode())


def read_result(folder: str, plan: Mapping[str, Any]) -> TrainingResult | None:
    """Returns the result of an earlier run with the same plan; None if none finished.

    A result without its model does not count: the model is then exported again from the checkpoint.
    """
    path = storage.join(folder, RESULT_FILE)
    model_dir = storage.join(folder, MODEL_FOLDER)
    if not (storage.exists(path) and storage.exists(storage.join(model_dir, "saved_model.pb"))):
        return None
    try:
        saved = storage.read_json(path, _Saved)
        if saved.plan != plan:
            return None
        evaluation = Evaluation.from_dict(saved.result.get("evaluation", {}))
        # The folder may have been moved.
        page = storage.join(folder, PAGE_FILE)
        evaluation = replace(evaluation, model_dir=model_dir, report_path=page)
        result = build_value({**saved.result, "evaluation": asdict(evaluation)}, TrainingResult)
    except (*storage.UNUSABLE, ValueError):
        # Not a file that we wrote. The checkpoints say how far the training is.
        return None
    return replace(
        result,
        checkpoint_dir=folder,
        model_dir=model_dir,
        evaluation=evaluation,
        already_complete=True,
    )
