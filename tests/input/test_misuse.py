"""Wrong arguments of `load`: each ends in an error of ours, before anything is read."""

from __future__ import annotations

import inspect
from collections.abc import Sequence

import pytest

from darkroom.errors import DarkroomError
from darkroom.input.loading import load
from darkroom.options.input import InputOptions

pytestmark = pytest.mark.tensorflow

THING = object()
NUMBERS = (None, -1, 1.5, "5", b"5", [], THING, True, float("nan"), 10**30)
CASES = [
    *[("source", value) for value in (None, 5, b"x", [], {}, THING, "", "\0", "none", "/dev/null")],
    *[("image_size", value) for value in (*NUMBERS, 0, (8,), (8, 0), (8, "8"), (8, 10**30), "8x8")],
    *[("batch_size", value) for value in (*NUMBERS[1:], 0)],
    *[("cycle_length", value) for value in (*NUMBERS, 0)],
    *[("block_length", value) for value in (*NUMBERS, 0)],
    *[("shuffle_records", value) for value in NUMBERS],
    *[("shuffle_bytes", value) for value in NUMBERS],
    *[("num_threads", value) for value in NUMBERS],
    *[("prefetch", value) for value in NUMBERS],
    *[("ram_budget_bytes", value) for value in (*NUMBERS, 0, 5)],
    *[("seed", value) for value in NUMBERS],
    *[("repeat", value) for value in (*NUMBERS[1:], 0)],
    *[("num_classes", value) for value in NUMBERS[1:]],
    *[("shard", value) for value in (*NUMBERS, (0, 0), (1, 1), (0,), (0, 1, 2), ("0", "1"))],
    *[("training", value) for value in (None, "no", 5, [], THING)],
    *[("verify", value) for value in (None, "no", 5, [], THING)],
    *[("stage", value) for value in (None, "no", 5, [], THING)],
    *[("cache_dir", value) for value in (5, b"x", [], THING, "", "\0")],
    *[("manifest", value) for value in (5, "x", [], {}, THING, {"seed": 1})],
    *[("resize", value) for value in (None, 5, [], THING, "", "crop")],
    *[("augment", value) for value in (5, [], THING, "", "flop")],
    *[("record_cache", value) for value in (None, 5, [], THING, "", "\0", "gs://x")],
    *[("deterministic", value) for value in (None, 5, "no", [], THING)],
    *[("scaled_decoding", value) for value in (None, 5, "no", [], THING)],
    *[("drop_remainder", value) for value in (None, 5, "no", [], THING)],
    *[("shard_by", value) for value in (None, 5, [], THING, "", "row")],
    *[("dtype", value) for value in (None, 5, [], THING, "", "int8")],
    *[("service", value) for value in (5, b"x", [], THING, "\0")],
    *[("options", value) for value in (5, {}, THING, {"repeat": 1})],
    *[("service_sharding", value) for value in (None, 5, [], THING, "", "on")],
    *[("service_job_name", value) for value in (5, b"x", [], THING, "", "\0", "without a service")],
]


def _end(source: str, name: str, value: object) -> str:
    """Returns how a call ends: the class of its error, or "accepted"."""
    try:
        values = {"source": source, "image_size": (8, 8), name: value}
        parameters = inspect.signature(load).parameters
        if name not in parameters:
            values["options"] = InputOptions((8, 8), **{name: values.pop(name)})
        load(**values)
    except DarkroomError as error:
        return "defect" if error.exit_code == DarkroomError.exit_code else type(error).__name__
    except Exception as error:  # noqa: BLE001  any other one is what is looked for
        return f"{type(error).__name__}: {error}"
    return "accepted"


def _find_others(source: str, names: Sequence[str] = ()) -> list[tuple[str, str, str]]:
    """Returns the calls that do not end in an error of ours: all, or those of some arguments."""
    cases = [case for case in CASES if not names or case[0] in names]
    ends = ((name, f"{value!s:.40}", _end(source, name, value)) for name, value in cases)
    return [end for end in ends if not end[2].endswith("Error") or ":" in end[2]]


def test_load_refuses_wrong_arguments_for_a_dataset(helpers, write_dataset):
    assert len(CASES) > 100
    assert _find_others(write_dataset({"train": helpers.make_rows(2)})) == []


def test_load_refuses_wrong_arguments_for_a_list(image_set):
    assert _find_others(str(image_set.csv), ("manifest", "verify", "cache_dir", "shard")) == []
