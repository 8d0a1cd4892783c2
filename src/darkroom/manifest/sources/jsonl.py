"""JSON Lines with flat objects: `{"split": "TRAIN", "image_uri": "a.jpg", "label": "cat"}`."""

from __future__ import annotations

import json
import posixpath
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from typing import Any

import msgspec

from darkroom.dataset.read_as import ReadAs
from darkroom.dataset.rejects import PLANNED_FIELDS, REJECT_FIELDS
from darkroom.dataset.schema import SINGLE_TARGETS, Columns, Kind, Schema, infer_schema
from darkroom.errors import DataError, RejectError
from darkroom.manifest.sources.base import Row, Source
from darkroom.manifest.sources.embedded import check_cells
from darkroom.manifest.sources.text import TextFile
from darkroom.manifest.sources.typed import as_value, find_label_fault, infer_kind, list_types
from darkroom.options.source import DEFAULT_SOURCE_ENCODING

_SAMPLE_LINES = 100
_OURS = {"split": Kind.SPLIT, "id": Kind.ID, "span": Kind.SPAN}
_LEFT_OUT = {*REJECT_FIELDS, *PLANNED_FIELDS} - {"id", "span"}


class JsonlSource(Source):
    """Reads a JSON Lines file; see `Source`.

    A list that darkroom wrote, of rejects or of all planned rows, is read as a list of images:
    reasons are left out, other columns are unpacked, and the ids keep every image's key.
    """

    def __init__(
        self, path: str, columns: Columns, encoding: str = DEFAULT_SOURCE_ENCODING
    ) -> None:
        self.name = path
        self.base = self.identity_base = posixpath.dirname(path)
        self._file = TextFile(path, encoding, newline="\n")
        samples = self._read_samples()
        self._columns = columns
        self._is_ours = any(
            samples[0].keys() >= {*fields} for fields in (REJECT_FIELDS, PLANNED_FIELDS)
        )
        # A column of the list may have the name that the row has for one of its own.
        schema = columns.schema
        inputs = [name for name, _ in schema.inputs] if schema else _find_inputs(samples)
        self._roles = {name: f"{name} of the row" for name in _OURS if name in inputs}
        samples = [self._unpack(sample) for sample in samples]
        names = list(dict.fromkeys(name for sample in samples for name in sample))
        kinds = {name: infer_kind(sample.get(name) for sample in samples) for name in names}
        if self._is_ours:
            schema = self._rename_roles(columns.schema or infer_schema(names, kinds))
            if columns.named_targets:
                others = [each for each in schema.columns if each[0] != schema.label]
                schema = Schema(tuple(others))
            columns = replace(columns, schema=schema)
            # The first rejects need not have all of them.
            names = list(dict.fromkeys((*names, *dict(schema.columns), *columns.named_targets)))
        self.schema = columns.find_schema(names, kinds)
        cells = {name: [each.get(name) for each in samples] for name in names}
        check_cells(path, self.schema, cells, f"pandas.read_json({path!r}, lines=True)")
        unread = tuple(name for name in names if name not in dict(self.schema.columns))
        remarks = ("a list that darkroom wrote",) if self._is_ours else ()
        self.read_as = ReadAs("JSON Lines", encoding=encoding, unread=unread, remarks=remarks)

    def _read_samples(self) -> list[dict[str, Any]]:
        """Returns the first objects.

        Raises:
            DataError: There is none, or a line is too long: it may be a whole file.
        """
        samples: list[dict[str, Any]] = []
        fault = ""
        for line, found in self._objects():
            if isinstance(found, dict):
                samples.append(found)
            else:
                fault = fault or f" Line {line}: {found:.200}."
            if len(samples) == _SAMPLE_LINES:
                break
        if not samples:
            raise DataError(
                f"{self.name} has no JSON object.{fault}",
                'Expected one on each line, such as {"split": "TRAIN", "image_uri": "a.jpg", ...}.',
            )
        return samples

    def rows(self) -> Iterator[Row]:
        """Yields one row for each line that is not blank."""
        kinds, label = dict(self.schema.columns), self.schema.label
        types = {name: list_types(kind) for name, kind in kinds.items()}

        def find_fault(found: dict[str, Any]) -> RejectError | None:
            """Returns why the first value that does not fit its column cannot be used."""
            for name, value in found.items():
                if name == label and isinstance(value, list):
                    if fault := find_label_fault(value, kinds[name]):
                        return fault
                elif not isinstance(value, types.get(name, object)):
                    got = f"{type(value).__name__} {value!r:.80}"
                    expected = f"column {name!r}: expected {kinds[name].value}"
                    return RejectError("bad_value", f"{expected}, got {got}")
            return None

        for row, (line, found) in enumerate(self._objects(), start=1):
            if not isinstance(found, dict):
                yield Row(row, [], RejectError("bad_value", f"line {line}: {found}"))
                continue
            found = self._unpack(found)
            values = [as_value(found.get(name), kind) for name, kind in kinds.items()]
            yield Row(row, values, find_fault(found))

    def _unpack(self, found: dict[str, Any]) -> dict[str, Any]:
        """Returns an object of a list of ours as a row of its source was; others as they are.

        There, several labels or numbers are JSON in one text, by `format_target`. A label that only
        begins like that stays.
        """
        if not self._is_ours:
            return found
        kept = {self._roles.get(k, k): v for k, v in found.items() if k not in _LEFT_OUT}
        extra = kept.pop("extra", None)
        kept |= extra if isinstance(extra, dict) else {}
        label = kept.get("label")
        if isinstance(label, str) and label.startswith("["):
            with suppress(ValueError):
                values = json.loads(label)
                kept |= self._columns.spread(values)
        return kept

    def _rename_roles(self, schema: Schema) -> Schema:
        """Returns a schema with the names that these lists have for what a row is."""
        labels = dict.fromkeys(SINGLE_TARGETS, "label")
        names = {Kind.SPLIT: "split", Kind.IMAGE: "image_uri", **labels, Kind.OBJECTS: "objects"}
        columns = {names.get(kind, name): kind for name, kind in schema.columns}
        ours = {self._roles.get(name, name): kind for name, kind in _OURS.items()}
        return Schema(tuple({**columns, **ours}.items()))

    def _objects(self) -> Iterator[tuple[int, dict[str, Any] | str]]:
        """Yields the number of every line that is not blank, and its value.

        For a line that holds no object the value is the problem with it.
        """
        for line, text in enumerate(self._file.lines(), start=1):
            if text.strip():
                yield line, parse_line(text)


def parse_line(text: str) -> dict[str, Any] | str:
    """Returns the object that a line holds, or the problem with it."""
    try:
        value = decode_json(text)
    except (json.JSONDecodeError, RecursionError) as error:
        return f"expected an object: {error}"
    except ValueError as error:
        # Python reads no number of more than 4,300 digits, and says so differently.
        return "it has a number of too many digits" if "digits" in f"{error}" else f"{error}"
    return value if isinstance(value, dict) else f"expected an object: {value}"


def _make_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Returns an object of JSON; of a key that occurs twice, neither value is the right one.

    Raises:
        ValueError: A key occurs twice.
    """
    found = dict(pairs)
    if len(found) != len(pairs):
        names = [name for name, _ in pairs]
        repeated = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"the key {repeated!r} occurs twice")
    return found


# Making one for each line would take as long as reading the line.
_DECODER = json.JSONDecoder(object_pairs_hook=_make_object)


def decode_json(text: str) -> Any:
    """Returns the value of a JSON text.

    Raises:
        ValueError: It is not JSON, or a key occurs twice.
        RecursionError: It is too deep.
    """
    try:
        # In a third of the time, but of a key that occurs twice, one is lost with its colon.
        value = msgspec.json.decode(text)
        if "\\" not in text and msgspec.json.encode(value).count(b":") == text.count(":"):
            return value
    except (ValueError, OverflowError, RecursionError):
        pass  # Python's own reads more, and its errors are those of the list.
    return _DECODER.decode(text)


def _find_inputs(samples: list[dict[str, Any]]) -> set[str]:
    """Returns the columns that rows of a list of ours have beside their own."""
    found = (sample.get("extra") for sample in samples)
    return {name for extra in found if isinstance(extra, dict) for name in extra}
