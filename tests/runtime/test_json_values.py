"""JSON of darkroom's own is read by the annotations of what it holds."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Annotated, Any, TypedDict

import pytest

from darkroom.runtime.json_values import build_value, parse_json


@dataclass(frozen=True)
class Part:
    name: str
    share: float | None = None


class Costs(TypedDict, total=False):
    seconds: Mapping[str, float]


def check_not_empty(found: Mapping[str, float]) -> None:
    if not found:
        raise ValueError("it is empty")


@dataclass(frozen=True)
class Whole:
    number: int
    is_done: bool
    pair: tuple[float, float]
    parts: tuple[Part, ...]
    texts: Sequence[str]
    costs: Costs
    entry: Annotated[Mapping[str, float], check_not_empty]
    anything: Mapping[str, Any]


WHOLE = Whole(
    3,
    True,
    (0.5, 1.0),
    (Part("a", 0.25), Part("b")),
    ("x", "naïve"),
    {"seconds": {"read": 2.0}},
    {"loss": 1.0},
    {"size": [1, 2], "none": None},
)


def test_what_was_written_is_read():
    assert parse_json(json.dumps(asdict(WHOLE)).encode(), Whole) == WHOLE


def test_a_whole_number_is_a_float_where_one_is_expected():
    assert build_value([1, 0], tuple[float, float]) == (1.0, 0.0)
    assert isinstance(build_value(1, float), float)
    assert math.isnan(parse_json(b"NaN", float))


def test_what_may_be_left_out():
    assert build_value({"name": "a"}, Part) == Part("a")
    assert build_value({}, Costs) == {}


def list_places(value, path=()):
    """Yields the path of each value in a structure, and of the structure itself."""
    yield path
    items = enumerate(value) if isinstance(value, list) else ()
    for key, each in value.items() if isinstance(value, dict) else items:
        yield from list_places(each, (*path, key))


def replace_at(value, path, new):
    if not path:
        return new
    copy = list(value) if isinstance(value, list) else dict(value)
    copy[path[0]] = replace_at(copy[path[0]], path[1:], new)
    return copy


@pytest.mark.parametrize("new", [None, "x", 5, -1.5, [], {}, [1], True, 1 << 70, "\ud800"])
def test_every_value_of_another_type_is_refused(new):
    written = json.loads(json.dumps(asdict(WHOLE)))
    for path in list_places(written):
        forged = json.dumps(replace_at(written, path, new)).encode()
        try:
            found = parse_json(forged, Whole)
        except ValueError:
            continue
        # It fits, and is of the types that the annotations say.
        assert type(found.number) is int
        assert type(found.is_done) is bool
        assert [type(each) for each in found.pair] == [float, float]
        assert all(isinstance(each, Part) and isinstance(each.name, str) for each in found.parts)
        assert all(each.share is None or type(each.share) is float for each in found.parts)
        assert all(isinstance(each, str) for each in found.texts)
        assert all(type(each) is float for each in found.costs.get("seconds", {}).values())
        assert found.entry
        assert all(type(each) is float for each in found.entry.values())
        assert isinstance(found.anything, dict)


@pytest.mark.parametrize(
    ("data", "kind", "message"),
    [
        (b"{", Part, "Expecting"),
        (b"\xff", Part, "decode"),
        (rb'{"name": "\ud800"}', Part, "surrogates not allowed"),
        (b"[" * 100_000, Part, "nested too deeply"),
        (b"5", Part, "it is 5, expected an object"),
        (b'{"share": 1}', Part, "it: 'name' is missing"),
        (b'{"name": "a", "more": 1}', Part, "it: 'more' is unknown"),
        (b'[{"name": 5}]', tuple[Part, ...], r"\[0\]\.name is 5, expected text"),
        (b"[1, 2, 3]", tuple[float, float], "expected 2 values"),
        (b"{}", Annotated[Mapping[str, float], check_not_empty], "it is empty"),
    ],
)
def test_the_text_says_where(data, kind, message):
    with pytest.raises(ValueError, match=message):
        parse_json(data, kind)
