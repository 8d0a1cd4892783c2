"""Two ways to run an epoch: Keras's `fit`, and our own loop with a gradient tape.

Both use the loss, the optimizer and the metrics that the model was compiled with, and leave the
metrics of the epoch in the model. They give the same weights and losses.
"""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import keras
import tensorflow as tf

from darkroom.errors import DataError
from darkroom.options.training import TrainingOptions
from darkroom.runtime import progress
from darkroom.training.devices.environment import Cluster
from darkroom.training.devices.placement import DevicePlacement

StepHook = Callable[[int], None]
# To read the loss takes a millisecond, and waits for the device.
_LOSS_SECONDS = 1.0
# The most images that an error about the loss names.
_NAMED = 3


class DivergedError(Exception):
    """The loss is not a finite number.

    Attributes:
        batches: The numbers of the batches, from 0, one of which has it.
        loss: Its value.
    """

    def __init__(self, batches: range, loss: float) -> None:
        super().__init__(batches, loss)
        self.batches, self.loss = batches, loss

    def explain(self, epoch: int, names: Sequence[str], options: TrainingOptions) -> DataError:
        """Returns an error that says where that was, and what to try.

        Args:
            epoch: Number of the epoch, from 1.
            names: The images of the batches; empty texts where they have no names.
            options: The options of the training.
        """
        place = f"batch {self.batches.stop}"
        if len(self.batches) > 1:
            place = f"one of the batches {self.batches.start + 1} to {self.batches.stop}"
        known, images = [name for name in names if name], ""
        if known:
            more = f" and {len(known) - _NAMED:,} more" if len(known) > _NAMED else ""
            images = f", whose images are {', '.join(known[:_NAMED])}{more}"
        precision = "" if options.precision == "float32" else ", or --precision float32"
        return DataError(
            f"The loss is {self.loss:g} in {place} of epoch {epoch}{images}.",
            f"Use a lower --learning-rate than {options.learning_rate:g}{precision}, or look at "
            "these images. Training again in this folder resumes before these batches.",
        )


def _finish_epoch(model: Any) -> None:
    """Does the same as Keras's `fit` at its end: an optimizer may have averaged the weights."""
    model.optimizer.finalize_variable_values(model.trainable_variables)


def _check_finite(loss: float, before: int, done: int) -> None:
    if not math.isfinite(loss):
        raise DivergedError(range(before, done), loss)


def show_batches(
    end_step: StepHook | None, model: Any, cluster: Cluster, step: int, num_steps: int
) -> StepHook | None:
    """Makes a hook also show the batches that are done, and the loss so far, to who looks on.

    Args:
        end_step: The hook, if there is one.
        model: The model that is trained.
        cluster: The processes that train it.
        step: Number of batches of the epoch that were done before.
        num_steps: Number of batches in the whole epoch.

    Returns:
        The hook; `end_step` itself where lines are kept, as in a log.
    """
    if not progress.is_live():
        return end_step
    shown_at, loss = time.monotonic(), ""

    def show(done: int) -> None:
        nonlocal shown_at, loss
        if end_step is not None:
            end_step(done)
        # All processes would have to take part.
        if cluster.num_workers == 1 and time.monotonic() - shown_at >= _LOSS_SECONDS:
            shown_at, loss = time.monotonic(), f"loss {model.get_metrics_result()['loss']:.4f}"
        progress.advance(done, num_steps, "batches", step, loss)

    return show


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
        """Trains on batches and updates the model's metrics.

        Args:
            batches: (images, labels), or with weights of images: the rest of the epoch.
            step: Number of batches of the epoch that were done before.
            num_steps: Number of batches in the whole epoch.
            end_step: Called with the number of batches done in the epoch, after each execution.

        Raises:
            DivergedError: The loss is not a finite number. `end_step` is not called any more.
        """
        if step >= num_steps:
            _finish_epoch(self._model)
            return
        variables = self._model.metrics_variables
        values = [variable.numpy() for variable in variables]

        def restore_metrics(epoch: int, logs: object = None) -> None:
            # Keras has just reset them, but this may be the rest of an epoch.
            for variable, value in zip(variables, values, strict=True):
                variable.assign(value)

        before = step

        def end_execution(batch: int, logs: dict[str, Any]) -> None:
            nonlocal before
            done = min(step + batch + 1, num_steps)
            # The mean of the epoch so far. The user's own step may have no loss.
            _check_finite(float(logs.get("loss", 0.0)), before, done)
            before = done
            if end_step is not None:
                end_step(done)

        # With the second one, Keras waits for the device after each execution.
        hooks = {"on_epoch_begin": restore_metrics, "on_train_batch_end": end_execution}
        self._model.fit(
            batches,
            # If Keras has to find the end itself, it counts one step of the optimizer too many,
            # because the counter does not wait for the batch that does not exist.
            steps_per_epoch=num_steps - step,
            callbacks=[keras.callbacks.LambdaCallback(**hooks)],
            shuffle=False,  # The dataset shuffles.
            verbose=0,
        )

    def evaluate(self, batches: Any) -> dict[str, float]:
        """Returns the loss and the metrics over batches, by the names that training shows."""
        if self._strategy.num_replicas_in_sync > 1:
            # A device may get nothing of the last batch, which Keras cannot handle.
            return TapeLoop(self._model, self._strategy).evaluate(batches)
        with warnings.catch_warnings():
            # Keras warns about the end of a dataset if it does not know the length.
            warnings.filterwarnings("ignore", "Your input ran out of data")
            found: dict[str, float] = self._model.evaluate(batches, verbose=0, return_dict=True)
        return found


class TapeLoop:
    """A loop with `tf.GradientTape`, for cases that `fit` cannot handle, as several processes.

    Args:
        model: A compiled Keras model whose metrics are built.
        strategy: The strategy in whose scope the model was built.
        steps_per_execution: Batches that one call of TensorFlow trains on.
    """

    def __init__(self, model: Any, strategy: Any, steps_per_execution: int = 1) -> None:
        self._model = model
        self._strategy = strategy
        self._steps_per_execution = steps_per_execution
        # Keras averages the loss over the share of a device and divides it by the number of
        # devices, so the sum over all devices is the loss of the whole batch.
        self._loss = next(metric for metric in model.metrics if metric.name == "loss")
        self._train = self._make_execution(self._train_step)
        self._evaluate = self._make_execution(self._evaluate_step)

    def train_epoch(
        self, batches: Any, step: int, num_steps: int, end_step: StepHook | None
    ) -> None:
        """See `FitLoop.train_epoch`."""
        before = step
        for done, loss in self._execute(self._train, batches):
            _check_finite(loss, before, before := min(step + done, num_steps))
            if end_step is not None:
                end_step(before)
        _finish_epoch(self._model)

    def evaluate(self, batches: Any) -> dict[str, float]:
        """See `FitLoop.evaluate`."""
        self._model.reset_metrics()
        for _ in self._execute(self._evaluate, batches):
            pass
        found: dict[str, float] = self._model.get_metrics_result()
        return found

    def _execute(self, execution: Any, batches: Any) -> Any:
        """Calls an execution until the batches end.

        Yields:
            The number of batches done, and a loss that is finite if theirs are.
        """
        iterator = iter(batches)
        done = 0
        while True:
            taken, loss = execution(iterator)
            if not int(taken):
                return
            done += self._steps_per_execution
            yield done, float(loss)

    def _make_execution(self, step: Callable[..., Any]) -> Any:
        """Returns a function of an iterator: how many batches it took, and their losses as one."""
        # AutoGraph should rewrite the loop below, but not the user's model in a step.
        plain_step = tf.autograph.experimental.do_not_convert(step)

        def execute(iterator: Any) -> Any:
            """Takes the next batches, and fewer at the end; returns how many, and their losses."""
            num_steps, total = tf.constant(0), tf.constant(0.0)
            for _ in tf.range(self._steps_per_execution):
                batch = iterator.get_next_as_optional()
                if batch.has_value():
                    losses = self._strategy.run(plain_step, args=batch.get_value())
                    # Those of this process: for those of all, they would have to wait.
                    total += tf.add_n(self._strategy.experimental_local_results(losses))
                    num_steps += 1
            return num_steps, total

        return tf.function(execute, reduce_retracing=True)

    def _train_step(self, images: Any, labels: Any, weights: Any = None) -> Any:
        """Trains on a device's share of a batch; returns the loss, float32 []."""
        model = self._model
        with tf.GradientTape() as tape:
            predictions = model(images, training=True)
            loss = self._compute_loss(images, labels, predictions, weights, training=True)
            scaled = model.optimizer.scale_loss(loss)
        gradients = tape.gradient(scaled, model.trainable_variables)
        model.optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
        self._measure(images, labels, predictions, loss, weights)
        return tf.cast(loss, tf.float32)

    def _evaluate_step(self, images: Any, labels: Any, weights: Any = None) -> Any:
        """Evaluates a device's share of a batch, which may be empty; returns the loss."""

        def evaluate() -> Any:
            predictions = self._model(images, training=False)
            loss = self._compute_loss(images, labels, predictions, weights, training=False)
            self._measure(images, labels, predictions, loss, weights)
            return tf.cast(loss, tf.float32)

        # TensorFlow's convolutions return wrong shapes for an empty batch.
        return tf.cond(tf.shape(images)[0] > 0, evaluate, lambda: tf.constant(0.0))

    def _compute_loss(
        self, images: Any, labels: Any, predictions: Any, weights: Any, *, training: bool
    ) -> Any:
        return self._model.compute_loss(
            x=images, y=labels, y_pred=predictions, sample_weight=weights, training=training
        )

    def _measure(self, images: Any, labels: Any, predictions: Any, loss: Any, weights: Any) -> None:
        mean = loss * tf.cast(self._strategy.num_replicas_in_sync, loss.dtype)
        self._loss.update_state(mean, sample_weight=tf.shape(images)[0])
        self._model.compute_metrics(images, labels, predictions, sample_weight=weights)


Loop = FitLoop | TapeLoop


def make_loop(model: Any, name: str, placement: DevicePlacement, steps_per_execution: int) -> Loop:
    """Returns the loop that trains a model.

    Args:
        model: A compiled Keras model whose metrics are built.
        name: As in the option `loop`.
        placement: Where it is trained.
        steps_per_execution: Batches that one call of TensorFlow trains on.
    """
    # Keras 3 cannot fit in several processes: it treats a value per device as a plain tensor.
    if name == "custom" or placement.cluster.num_workers > 1:
        return TapeLoop(model, placement.strategy, steps_per_execution)
    return FitLoop(model, placement.strategy)
