from __future__ import annotations

from functools import partial

import numpy as np
import pytest
import tensorflow as tf

from darkroom.input.opening import open_files
from darkroom.options.input import InputOptions
from darkroom.profiling.meter import InputMeter, InputTiming
from darkroom.profiling.stages import measure_stages, time_in_turn
from darkroom.profiling.verdict import STAGES

pytestmark = [pytest.mark.tensorflow, pytest.mark.usefixtures("simple_decoder")]

BATCH, STEP = 3, 0.25


class FakeClock:
    """A clock that moves only when something is said to take time."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> tf.Tensor:
        now = tf.numpy_function(lambda: np.float64(self.now), [], tf.float64)
        return tf.ensure_shape(now, ())

    def wait(self, seconds: float) -> None:
        self.now += seconds

    def make_batches(self, count: int, seconds: float) -> tf.data.Dataset:
        """Batches that take these seconds to make. Nothing makes them ahead."""

        def wait(number: np.ndarray) -> np.ndarray:
            self.wait(seconds)
            return number

        def make(value: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
            made = tf.numpy_function(wait, [value], tf.int64)
            return tf.ensure_shape(made, value.shape), value

        return tf.data.Dataset.range(count * BATCH).batch(BATCH).map(make)


@pytest.mark.parametrize(("input_seconds", "share"), [(0.0, 0.0), (STEP, 0.5), (3 * STEP, 0.75)])
def test_waiting_is_the_time_between_asking_for_a_batch_and_getting_it(input_seconds, share):
    clock = FakeClock()
    meter, seen = InputMeter(clock), []
    for images, labels in meter.watch(clock.make_batches(16, input_seconds)):
        clock.wait(STEP)
        np.testing.assert_array_equal(images, labels)
        seen += labels.numpy().tolist()
    assert seen == list(range(16 * BATCH))
    timing = meter.take()
    # The first batch is not counted: the clock of the meter starts when it is there.
    assert timing == InputTiming(15 * (STEP + input_seconds), 15 * input_seconds, 15, 15 * BATCH)
    assert timing.waiting_share == share
    assert timing.images_per_second == BATCH / (STEP + input_seconds)
    assert meter.take() == InputTiming()


def test_a_graph_that_takes_batches_is_measured_as_well():
    clock = FakeClock()
    meter = InputMeter(clock)
    watched = meter.watch(clock.make_batches(8, STEP))

    @tf.function(autograph=True)
    def run() -> tf.Tensor:
        total = tf.constant(0, tf.int64)
        for _, labels in watched:
            total += tf.reduce_sum(labels)
        return total

    assert run() == sum(range(8 * BATCH))
    assert meter.take() == InputTiming(7 * STEP, 7 * STEP, 7, 7 * BATCH)


def test_by_the_clock_of_the_machine_batches_stay_as_they_are():
    meter = InputMeter()
    batches = tf.data.Dataset.range(4).batch(1).map(lambda each: (each, each))
    watched = meter.watch(batches)
    assert watched.element_spec == batches.element_spec
    # No thread takes them ahead, and waits instead of the training.
    assert watched.options().experimental_optimization.inject_prefetch is False
    assert len(list(watched)) == 4
    timing = meter.take()
    assert (timing.num_batches, timing.num_images) == (3, 3)
    assert 0 <= timing.waited_seconds <= timing.seconds


def test_timings_of_epochs_add_up():
    both = InputTiming(2.0, 0.5, 10, 640) + InputTiming(3.0, 1.5, 5, 320)
    assert both == InputTiming(5.0, 2.0, 15, 960)
    assert both.waiting_share == pytest.approx(0.4)
    assert both.images_per_second == pytest.approx(192)
    assert InputTiming().waiting_share == InputTiming().images_per_second == 0


def _photographs(helpers, tmp_path, height=240, width=320):
    rng = np.random.default_rng(0)
    records = []
    for number in range(12):
        pixels = rng.integers(0, 255, (height, width, 3), np.uint8)
        encoded = tf.io.encode_jpeg(pixels, quality=95).numpy()
        records.append(
            helpers.make_example({"image/encoded": encoded, "image/class/label": number % 2})
        )
    return open_files(helpers.write_split(tmp_path, "train", records))


def test_a_stage_costs_the_difference_to_the_pipeline_before(helpers, tmp_path):
    source = _photographs(helpers, tmp_path)
    options = InputOptions((32, 32), batch_size=8, augment="none", repeat=None, shard=(1, 2))
    # The one that ends with resizing was faster than the one before: that stage costs nothing.
    seconds = dict(zip(STAGES, (1.2, 2.4, 12.0, 11.75, 13.2, 14.4), strict=True))

    def measure(runs):
        assert all(run() >= 0 for run in runs.values())
        return {name: seconds[name] for name in runs}

    costs = measure_stages(source, options, measure=measure)
    assert tuple(costs.seconds) == STAGES
    expected = (0.1, 0.1, 0.8, 0.0, 0.1, 0.1)
    assert tuple(costs.seconds.values()) == pytest.approx(expected)
    assert costs.slowest == "decode"
    half = measure_stages(source, options, 6, lambda runs: {name: seconds[name] for name in runs})
    assert half.total_seconds == pytest.approx(2 * costs.total_seconds)


def test_each_run_counts_with_the_fastest_of_rounds_in_turn():
    taken, order = {"a": iter((3.0, 1.0, 2.0)), "b": iter((1.0, 5.0, 4.0))}, []

    def run(name):
        order.append(name)
        return next(taken[name])

    assert time_in_turn({name: partial(run, name) for name in taken}) == {"a": 1.0, "b": 1.0}
    assert order == ["a", "b"] * 3


@pytest.mark.long
def test_decoding_noise_is_the_slowest_stage(helpers, tmp_path):
    # To decode one takes several times as long as all else.
    source = _photographs(helpers, tmp_path, 1500, 2000)
    options = InputOptions((32, 32), batch_size=8, augment="none", scaled_decoding=False)
    costs = measure_stages(source, options)
    assert costs.slowest == "decode"
    assert all(seconds >= 0 for seconds in costs.seconds.values())
