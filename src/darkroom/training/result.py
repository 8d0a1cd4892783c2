"""The result of a training, and the file that marks one as done."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from darkroom import storage
from darkroom.evaluation.report.result import Evaluation
from darkroom.evaluation.report.write import PAGE_FILE
from darkroom.evaluation.scores.serving import GRAPH_FILE, MODEL_FOLDER
from darkroom.profiling.verdict import VERDICT_MARKDOWN
from darkroom.runtime.json_values import build_value, format_json
from darkroom.runtime.result import Fact, Outcome, Result, list_facts
from darkroom.training.recipe.hints import format_for_python
from darkroom.training.state.folder import RESULT_FILE
from darkroom.training.state.history import Exported, format_exported


@dataclass(frozen=True)
class TrainingResult(Result):
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

    def describe(self) -> Outcome:
        """Returns what it says to people, with hints for the command line."""
        return self._describe(self.hints)

    def _repr_html_(self) -> str:
        """Returns it as a notebook shows it, with hints for Python."""
        return self._describe([f"{format_for_python(hint)}." for hint in self.hints]).to_card()

    def _describe(self, hints: Sequence[str]) -> Outcome:
        metrics = ", ".join(f"{name} {value:.4f}" for name, value in self.metrics.items())
        stages = storage.join(self.checkpoint_dir, VERDICT_MARKDOWN)
        evaluated = self.evaluation.describe()
        facts = {
            "Input": f"{self.verdict}\n{stages}" if self.verdict else "",
            "History": self.checkpoint_dir,
            "Model": self.model_dir,
            "Next": "\n".join(hints),
        }
        rows = [
            *(["Already complete: nothing was done."] if self.already_complete else []),
            Fact("Epoch", format_exported(self.exported)),
            Fact("Metrics", metrics),
            *evaluated.rows,
            *list_facts(facts),
        ]
        return evaluated._replace(rows=rows)


@dataclass(frozen=True)
class _Saved:
    """The content of `training.json`."""

    plan: Mapping[str, Any]
    result: Mapping[str, Any]


def write_result(folder: str, plan: Mapping[str, Any], result: TrainingResult) -> None:
    """Marks the training in a folder as done.

    Args:
        folder: Its folder.
        plan: Values for JSON that decide the model.
        result: The result.
    """
    text = format_json({"plan": plan, "result": result.to_dict()})
    storage.write_bytes(storage.join(folder, RESULT_FILE), text)


def read_result(folder: str, plan: Mapping[str, Any]) -> TrainingResult | None:
    """Returns the result of an earlier run with the same plan; None if none finished.

    A result without its model does not count: the model is then exported again from the checkpoint.
    """
    path = storage.join(folder, RESULT_FILE)
    model_dir = storage.join(folder, MODEL_FOLDER)
    if not (storage.exists(path) and storage.exists(storage.join(model_dir, GRAPH_FILE))):
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
