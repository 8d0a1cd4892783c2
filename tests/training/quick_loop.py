"""A loop that trains without images and without a graph, where the network does not matter."""

from __future__ import annotations

from typing import Any

import numpy as np


class QuickLoop:
    """Trains towards weights of 0, with the model's optimizer; see `loops.Loop`.

    The second step of an epoch and the last depend on the weights and on the state of the
    optimizer, as those of a real loop. The others only count: outside of a graph a step is slow.

    Args:
        model: A compiled Keras model whose metrics are built.
    """

    def __init__(self, model: Any) -> None:
        self._model = model

    def train_epoch(self, batches: Any, step: int, num_steps: int, end_step: Any) -> None:
        variables, optimizer = self._model.trainable_variables, self._model.optimizer
        loss = next(metric for metric in self._model.metrics if metric.name == "loss")
        for done in range(step + 1, num_steps + 1):
            loss.update_state(self._measure())
            if done in (2, num_steps):
                optimizer.apply_gradients([(variable.value, variable) for variable in variables])
            else:
                optimizer.iterations.assign_add(1)
            if end_step is not None:
                end_step(done)
        optimizer.finalize_variable_values(variables)

    def evaluate(self, batches: Any) -> dict[str, float]:
        loss = self._measure()
        return {"loss": loss, "accuracy": 1 / (1 + loss)}

    def _measure(self) -> float:
        return float(sum(np.square(weights).sum() for weights in self._model.get_weights()))
