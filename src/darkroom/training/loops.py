"""The two ways to go through an epoch: Keras's `fit`, and a loop of our own with a gradient tape.

Both take the model's loss, optimizer and metrics from `compile`, and leave the metrics of the epoch
in the model. They give the same weights and losses.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, Protocol

import keras
import tensorflow as tf

StepHook = Callable[[int], None]


class Loop(Protocol):
    """A way to train and to evaluate a compiled model."""

    def train_epoch(
        self, batches: Any, step: int, num_steps: int, end_step: StepHook | None
    ) -> None:
        """Trains on batches, adding to the model's metrics.

        Args:
            batches: (images, labels); what is left of the epoch.
            step: Batches of the epoch that were done before.
            num_steps: Batches of the whole epoch.
            end_step: Called with the number of batches done in the epoch, after each execution.
        """

    def evaluate(self, batches: Any) -> dict[str, float]:
        """Returns loss and metrics over batches (images, labels)."""


class FitLoop:
    """Keras's own loop; a model's own `train_step` is used.

    Args:
        model: A compiled Keras model whose metrics are built.
        strategy: The strategy in whose scope the model was built, of one process.
    """

    def __init__(self, model: Any, strategy: Any) -> None:
        self._model = model
        self._strategy = strategy

    def train_epoch(
        self, batches: Any, step: int, num_steps: int, end_step: StepHook | None
    ) -> None:
        """See `Loop`."""
        if step >= num_steps:
            return
        variables = self._model.metrics_variables
        values = [variable.numpy() for variable in variables]

        def restore_metrics(epoch: int, logs: object = None) -> None:
            # Keras has just reset them, but the epoch may be one that goes on.
            for variable, value in zip(variables, values, strict=True):
                variable.assign(value)

        hooks: dict[str, Any] = {"on_epoch_begin": restore_metrics}
        if end_step is not None:
            # Only when needed: with it, Keras waits for the device after each execution.
            hooks["on_train_batch_end"] = lambda batch, logs: end_step(
                min(step + batch + 1, num_steps)
            )
        self._model.fit(
            batches,
            # Where Keras has to find the end by itself, it counts one step of the optimizer too
            # many: that counter does not wait for the batch that there is not.
            steps_per_epoch=num_steps - step,
            callbacks=[keras.callbacks.LambdaCallback(**hooks)],
            shuffle=False,  # The dataset shuffles.
            verbose=0,
        )

    def evaluate(self, batches: Any) -> dict[str, float]:
        """See `Loop`."""
        if self._strategy.num_replicas_in_sync > 1:
            # Of the last batch a device may get nothing, with which Keras does not reckon.
            return TapeLoop(self._model, self._strategy).evaluate(batches)
        with warnings.catch_warnings():
            # Keras takes the end of a dataset whose length it was not told for a mistake.
            warnings.filterwarnings("ignore", "Your input ran out of data")
            found: dict[str, float] = self._model.evaluate(batches, verbose=0, return_dict=True)
        return found


class TapeLoop:
    """A loop with `tf.GradientTape`, for what `fit` cannot do: several processes, own steps.

    Args:
        model: A compiled Keras model whose metrics are built.
        strategy: The strategy in whose scope the model was built.
        steps_per_execution: Batches that one call of TensorFlow trains on.
    """

    def __init__(self, model: Any, strategy: Any, steps_per_execution: int = 1) -> None:
        self._model = model
        self._strategy = strategy
        self._steps_per_execution = steps_per_execution
        # Keras averages the loss over a device's share and divides by their number, so that the
        # sum over the devices is the loss of the whole batch.
        self._loss = next(metric for metric in model.metrics if metric.name == "loss")
        self._train = self._make_execution(self._train_step)
        self._evaluate = self._make_execution(self._evaluate_step)

    def train_epoch(
        self, batches: Any, step: int, num_steps: int, end_step: StepHook | None
    ) -> None:
        """See `Loop`."""
        for done in self._execute(self._train, batches):
            if end_step is not None:
                end_step(min(step + done, num_steps))

    def evaluate(self, batches: Any) -> dict[str, float]:
        """See `Loop`."""
        self._model.reset_metrics()
        for _ in self._execute(self._evaluate, batches):
            pass
        found: dict[str, float] = self._model.get_metrics_result()
        return found

    def _execute(self, execution: Any, batches: Any) -> Any:
        """Calls an execution until the batches end; yields the batches done."""
        iterator = iter(batches)
        done = 0
        while int(execution(iterator)):
            done += self._steps_per_execution
            yield done

    def _make_execution(self, step: Callable[[Any, Any], None]) -> Any:
        """Returns a function of an iterator that does some steps, and returns how many."""
        # AutoGraph is for the loop below; in a step it would rewrite the user's model.
        plain_step = tf.autograph.experimental.do_not_convert(step)

        def execute(iterator: Any) -> Any:
            num_steps = tf.constant(0)
            for _ in tf.range(self._steps_per_execution):
                batch = iterator.get_next_as_optional()
                if batch.has_value():
                    self._strategy.run(plain_step, args=batch.get_value())
                    num_steps += 1
            return num_steps

        return tf.function(execute, reduce_retracing=True)

    def _train_step(self, images: Any, labels: Any) -> None:
        model = self._model
        with tf.GradientTape() as tape:
            predictions = model(images, training=True)
            loss = model.compute_loss(x=images, y=labels, y_pred=predictions, training=True)
            scaled = model.optimizer.scale_loss(loss)
        gradients = tape.gradient(scaled, model.trainable_variables)
        model.optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
        self._measure(images, labels, predictions, loss)

    def _evaluate_step(self, images: Any, labels: Any) -> None:
        def evaluate() -> Any:
            predictions = self._model(images, training=False)
            loss = self._model.compute_loss(x=images, y=labels, y_pred=predictions, training=False)
            self._measure(images, labels, predictions, loss)
            return True

        # TensorFlow's convolutions give wrong shapes for a batch of no images.
        tf.cond(tf.shape(images)[0] > 0, evaluate, lambda: False)

    def _measure(self, images: Any, labels: Any, predictions: Any, loss: Any) -> None:
        mean = loss * tf.cast(self._strategy.num_replicas_in_sync, loss.dtype)
        self._loss.update_state(mean, sample_weight=tf.shape(images)[0])
        self._model.compute_metrics(images, labels, predictions, sample_weight=None)
